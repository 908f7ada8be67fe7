"""What every benchmark prints first: machine and versions."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import numba
import numpy as np

import nclone_env


def describe() -> str:
    """Return one line about machine and versions."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    model = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine())
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return (
        f"{model}, {cores} cores, {platform.system()}; Python {platform.python_version()}, NumPy {np.__version__}, "
        f"Numba {numba.__version__}, nclone_env {nclone_env.__version__}"
    )
