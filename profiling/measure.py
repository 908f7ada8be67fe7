"""What the scripts share: the machine line, timers, turns, fresh processes."""

from __future__ import annotations

import gc
import multiprocessing
import os
import platform
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import llvmlite.binding
import numba
import numpy as np

import nclone_env
from nclone_env.level import level_sets
from nclone_env.machine import available_cores
from nclone_env.memory.measure.process import resident_bytes

T = TypeVar("T")

_FORCED = "OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"
"""Variables that force a kernel of OpenBLAS, often one for processors ten years older."""
BASIC_SETS = ("first-steps", "hazards", "jumps")
"""The sets of one idea a level, 16 levels in all, that most measurements and tests are about."""


def describe() -> str:
    """Return one line about machine and versions."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    model = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine())
    return (
        f"{model}, {available_cores()} cores, {platform.system()}; Python {platform.python_version()}, "
        f"NumPy {np.__version__}, Numba {numba.__version__}, nclone_env {nclone_env.__version__}"
    )


def blas_kernel() -> str:
    """Return the name of the kernel of SciPy's BLAS; call it in a fresh process."""
    import scipy.linalg  # noqa: F401 - loads the library
    import threadpoolctl

    kernels = [library.get("architecture") for library in threadpoolctl.threadpool_info()]
    return next(filter(None, kernels), "unknown")


def compiled_for(processor: str) -> dict[str, str]:
    """Return the environment variables of processes whose kernels are compiled for a processor.

    Args:
        processor: LLVM's name of one, or ``host`` for exactly this one.
    """
    if processor == "host":
        return {"NUMBA_CPU_NAME": llvmlite.binding.get_host_cpu_name()}
    return {"NUMBA_CPU_NAME": processor, "NUMBA_CPU_FEATURES": ""}


def timed(call: Callable[[], T], clock: Callable[[], float] = time.perf_counter) -> tuple[T, float]:
    """Call a function; return its result and the seconds it took.

    Args:
        call: the function.
        clock: ``time.process_time`` leaves out the time that other processes take.
    """
    started = clock()
    result = call()
    return result, clock() - started


def timings(runs: int, call: Callable[[], object]) -> np.ndarray:
    """Return (runs,) float64: the seconds of each of several calls, after one that is not timed."""
    call()
    return np.array([timed(call)[1] for _ in range(runs)])


def best_of(runs: int, call: Callable[[], object]) -> float:
    """Return the seconds of the fastest of several calls, after one that is not timed."""
    return float(timings(runs, call).min())


def turns(count: int, tasks: Sequence[Callable[[], float]]) -> np.ndarray:
    """Return (count, tasks) float64: what the tasks return, taking turns, so that background load affects all alike."""
    return np.array([[task() for task in tasks] for _ in range(count)])


def ratios(table: np.ndarray) -> np.ndarray:
    """Return (tasks,) float64: for each column of :func:`turns` the median of its ratio to the first, turn by turn."""
    return np.median(table / table[:, :1], axis=0)


def process_bytes() -> int:
    """Return the memory of this process after a garbage collection: PSS without file pages."""
    gc.collect()
    return resident_bytes().data


def in_fresh_process(function: Callable[..., T], *arguments: Any) -> T:
    """Return the result of a function in a new interpreter, with the BLAS kernel of this processor."""
    for name in _FORCED:
        os.environ.pop(name, None)
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as executor:
        return executor.submit(function, *arguments).result()


def basic_sets() -> dict[str, tuple[str, ...]]:
    """Return the level names of each of ``BASIC_SETS``."""
    sets = level_sets()
    return {name: sets[name] for name in BASIC_SETS}
