"""Machines of one architecture share a cache: keys contain no path, no modification time and no exact processor."""

import os
import subprocess
import sys

import pytest
from numba import config

from nclone_env.jit.dispatcher import IS_PLAIN
from nclone_env.jit.target import X86_BASELINES, target

from ..processes import REPOSITORY

pytestmark = pytest.mark.skipif(
    bool(config.DISABLE_JIT) or IS_PLAIN or target().processor not in X86_BASELINES, reason="needs kernels for x86-64"
)
MACHINES = {"x86-64": "", "nehalem": "adx aes sha"}
"""Names of their processors, and what they lack of the features of the one at hand."""
KERNELS = """
from nclone_env.jit import kernel

@kernel
def part(values, index):
    return values[index] * 2.0

@kernel
def total(values):
    result = 0.0
    for index in range(len(values)):
        result += part(values, index)
    return result
"""
MAIN = """
import sys
import llvmlite.binding
features = llvmlite.binding.get_host_cpu_features()
features.update(dict.fromkeys(sys.argv[2:], False))
llvmlite.binding.get_host_cpu_name = lambda: sys.argv[1]
llvmlite.binding.get_host_cpu_features = lambda: features

import numpy as np
from shared_kernels import total
results = [total(np.arange(100, dtype=kind)) for kind in ("f8", "i8")]
print(*results, sum(total.stats.cache_hits.values()))
"""


@pytest.fixture
def folder(tmp_path):
    """The sources in a folder of each machine, with times of their own."""
    for number, machine in enumerate(MACHINES):
        place = tmp_path / machine
        place.mkdir()
        for name, text in (("shared_kernels", KERNELS), ("main", MAIN)):
            (place / f"{name}.py").write_text(text)
            os.utime(place / f"{name}.py", (1000 * number, 1000 * number))
    return tmp_path


def start(folder, machine):
    """Start a process of a machine."""
    place, cache = folder / machine, folder / "cache"
    environment = {**os.environ, "PYTHONPATH": f"{REPOSITORY}{os.pathsep}{place}", "NCLONE_ENV_CACHE_DIR": str(cache)}
    for name in ("NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES"):
        environment.pop(name, None)
    command = [sys.executable, "-m", "main", machine, *MACHINES[machine].split()]
    return subprocess.Popen(command, cwd=place, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def ended(process):
    out, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors.decode()
    assert errors == b""
    return out.split()


def test_processes_of_two_machines_share_a_folder(folder):
    processes = [start(folder, machine) for machine in MACHINES]
    assert {tuple(ended(process)[:2]) for process in processes} == {(b"9900.0", b"9900.0")}
    files = sorted((folder / "cache").rglob("*.nbc"))
    assert len(files) == 2  # one for each type of argument, of the last process that wrote it
    for machine in MACHINES:
        assert ended(start(folder, machine))[2] == b"2"
    (kernels,) = (folder / "cache").iterdir()
    parts = sorted(kernels.glob("*.nbp"))
    assert len(parts) == 2
    assert sorted(kernels.iterdir()) == sorted(files + parts)  # nothing else is left
