"""Kernels inside others are typed and lowered once, in any process, and again only after an edit that they reach."""

import os
import shutil
import subprocess
import sys

import pytest
from llvmlite.binding import get_host_cpu_name
from numba import config, types

from nclone_env.jit import called_kernel, kernel
from nclone_env.jit.dispatcher import IS_PLAIN
from nclone_env.jit.folder import PART_SUFFIX

from ..processes import REPOSITORY

pytestmark = pytest.mark.skipif(bool(config.DISABLE_JIT) or IS_PLAIN, reason="Numba's own way has no parts")
KERNELS = """
from nclone_env.jit import kernel

def scaling(factor):
    @kernel
    def scaled(record):
        return record["x"] * factor
    return scaled

doubled, tripled = scaling(2.0), scaling(3.0)

@kernel
def both(record):
    return doubled(record) + tripled(record)

@kernel
def total(records):
    result = 0.0
    for index in range(len(records)):
        result += both(records[index])
    return result
"""
MAIN = """
import sys
import numpy as np
from numba import from_dtype
for number in range(int(sys.argv[1])):  # types are numbered in the order of their creation
    from_dtype(np.dtype([(f"other{number}", float)]))

import summed
records = np.ones(4, np.dtype([("x", float), ("y", float)]))
print(summed.total(records))
kernels = summed.both, summed.doubled, summed.tripled
print(*[sum(each.inner.stats.cache_misses.values()) for each in kernels])
"""


def run(folder, kernels=KERNELS, other_types=0, **variables):
    """Run a process with these kernels and return their total, and which of the three inside were compiled."""
    (folder / "summed.py").write_text(kernels)
    (folder / "main.py").write_text(MAIN)
    environment = {**os.environ, "PYTHONPATH": f"{REPOSITORY}{os.pathsep}{folder}", **variables}
    command = [sys.executable, "-B", str(folder / "main.py"), str(other_types)]
    environment["NCLONE_ENV_CACHE_DIR"] = str(folder / "cache")
    result, misses = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    return float(result), [int(miss) for miss in misses.split()]


def kept(folder):
    """Return the contents of the parts by name."""
    return {path.name: path.read_bytes() for path in folder.glob(f"cache/*/*{PART_SUFFIX}")}


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """The folder of a process that has compiled the kernels; it is not to be changed."""
    folder = tmp_path_factory.mktemp("parts")
    assert run(folder) == (20.0, [1, 1, 1])
    return folder


@pytest.fixture
def folder(compiled, tmp_path):
    """A copy of it."""
    return shutil.copytree(compiled, tmp_path / "copy")


def test_an_edit_compiles_what_can_reach_it_and_nothing_else(folder):
    assert run(folder, KERNELS.replace("result = 0.0", "result = 1.0")) == (21.0, [0, 0, 0])
    assert run(folder, KERNELS.replace(" + ", " - ")) == (-4.0, [1, 0, 0])
    assert run(folder, KERNELS.replace("scaling(3.0)", "scaling(5.0)")) == (28.0, [1, 0, 1])
    assert run(folder, KERNELS.replace("* factor", "+ factor")) == (28.0, [1, 1, 1])


def test_parts_are_equal_in_every_process(compiled, tmp_path):
    """Otherwise a part would call symbols that those of another process do not define, which ends the process."""
    assert run(tmp_path, other_types=7) == (20.0, [1, 1, 1])
    assert len(kept(tmp_path)) == 3
    assert kept(tmp_path) == kept(compiled)


def test_kernels_for_another_processor_are_made_of_the_same_parts(compiled, folder, tmp_path):
    other = {"NUMBA_CPU_NAME": get_host_cpu_name()}  # not the baseline
    assert run(folder, **other) == (20.0, [0, 0, 0])
    assert len(list(folder.glob("cache/*/*.nbc"))) == 2 * len(list(compiled.glob("cache/*/*.nbc")))
    (tmp_path / "alone").mkdir()
    assert run(tmp_path / "alone", **other) == (20.0, [1, 1, 1])
    assert kept(tmp_path / "alone") == kept(compiled)


@pytest.mark.parametrize(
    "damage", [lambda data: b"", lambda data: data[:-1], lambda data: data[:40] + b"?" + data[41:]]
)
def test_damaged_parts_and_those_that_call_them_are_compiled_again(folder, damage):
    whole = kept(folder)
    for path in folder.glob(f"cache/*/summed.scaled*{PART_SUFFIX}"):
        path.write_bytes(damage(path.read_bytes()))
    for path in folder.glob("cache/*/*.nbc"):
        path.unlink()
    assert run(folder) == (20.0, [1, 1, 1])
    assert kept(folder) == whole


def test_a_part_under_the_name_of_another_is_not_used(folder):
    first, second = folder.glob(f"cache/*/summed.scaled*{PART_SUFFIX}")
    first.write_bytes(second.read_bytes())
    (folder / "summed.py").touch()
    assert run(folder, KERNELS.replace("result = 0.0", "result = 1.0"))[0] == 21.0


def name_of(decorated, *arguments):
    """Return the name of a kernel as a part."""
    from numba.core import compiler

    from nclone_env.jit.parts import part_name

    flags = compiler.Flags()
    decorated.inner.targetdescr.options.parse_as_flags(flags, decorated.inner.targetoptions)
    return part_name(decorated.py_func, arguments, flags)


def half(value):
    return value / 2


def test_a_name_tells_types_and_kinds_of_kernels_apart():
    cases = [(kernel(half), types.int64), (kernel(half), types.float64), (called_kernel(half), types.int64)]
    assert len({name_of(*case) for case in cases}) == 3
    assert name_of(kernel(half), types.int64) == name_of(kernel(half), types.int64)


def test_what_contains_an_address_has_no_name():
    assert name_of(kernel(half), types.Dispatcher(kernel(half))) is None
    something = object()
    assert name_of(kernel(lambda value: value is something), types.int64) is None
