"""Kernels inside others are typed and lowered once, in any process, and again only after an edit that they reach.

Machines of one architecture share a cache: keys contain no path, no modification time and no exact processor.
"""

import os
import shutil

import pytest
from llvmlite.binding import get_host_cpu_name
from numba import config, types

from nclone_env.jit import called_kernel, kernel
from nclone_env.jit.dispatcher import IS_PLAIN
from nclone_env.jit.folder import PART_SUFFIX
from nclone_env.jit.target import X86_BASELINES, target

from ..processes import origins

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
if len(sys.argv) > 2:  # a machine with another processor, which lacks some features
    import llvmlite.binding
    features = llvmlite.binding.get_host_cpu_features()
    features.update(dict.fromkeys(sys.argv[3:], False))
    llvmlite.binding.get_host_cpu_name = lambda: sys.argv[2]
    llvmlite.binding.get_host_cpu_features = lambda: features
for number in range(int(sys.argv[1])):  # types are numbered in the order of their creation
    from_dtype(np.dtype([(f"other{number}", float)]))

import summed
records = np.ones(4, np.dtype([("x", float), ("y", float)]))
print(summed.total(records), sum(summed.total.stats.cache_hits.values()))
kernels = summed.both, summed.doubled, summed.tripled
print(*[sum(each.inner.stats.cache_misses.values()) for each in kernels])
"""


def start(folder, cache, *arguments, kernels=KERNELS, **variables):
    """Start a process with these kernels."""
    (folder / "summed.py").write_text(kernels)
    (folder / "main.py").write_text(MAIN)
    process = next(origins())
    process.begin(folder / "main.py", *arguments, NCLONE_ENV_CACHE_DIR=str(cache), **variables)
    return process


def ended(process):
    """Return the total, the number of cache hits, and which of the three kernels inside were compiled."""
    total, hits, *misses = process.end()[0].split()
    return float(total), int(hits), [int(miss) for miss in misses]


def run(folder, kernels=KERNELS, other_types=0, **variables):
    """Run a process with these kernels and return their total, and which of the three inside were compiled."""
    total, _, misses = ended(start(folder, folder / "cache", other_types, kernels=kernels, **variables))
    return total, misses


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


@pytest.mark.skipif(target().processor not in X86_BASELINES, reason="needs kernels for x86-64")
def test_processes_of_two_machines_share_a_folder(tmp_path, monkeypatch):
    """They write at once, from sources in folders and of times of their own."""
    for name in ("NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES"):
        monkeypatch.delenv(name, raising=False)
    machines = {"x86-64": (), "nehalem": ("adx", "aes", "sha")}

    def play():
        processes = []
        for number, (machine, lacking) in enumerate(machines.items()):
            (tmp_path / machine).mkdir(exist_ok=True)
            processes.append(start(tmp_path / machine, tmp_path / "cache", 0, machine, *lacking))
            os.utime(tmp_path / machine / "summed.py", (1000 * number, 1000 * number))
        return [ended(process) for process in processes]

    assert {total for total, _, _ in play()} == {20.0}
    (kernels,) = (tmp_path / "cache").iterdir()
    assert sorted(path.suffix for path in kernels.iterdir()) == [".nbc", *[PART_SUFFIX] * 3]  # nothing else is left
    assert play() == [(20.0, 1, [0, 0, 0])] * 2


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
