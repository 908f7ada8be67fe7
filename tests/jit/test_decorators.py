"""Kernels plain, compiled and bounds-checked; what compiled kernels must not do."""

from pathlib import Path
from typing import NamedTuple

import numba
import numpy as np
import pytest
from numba.core import caching, codegen, config

from nclone_env.jit import called_kernel, kernel, specialised
from nclone_env.jit.decorators import type_of
from nclone_env.jit.dispatcher import IS_PLAIN
from nclone_env.level.build import build_room
from nclone_env.sim.frame import play, start, tick
from nclone_env.sim.session import Session, play_worlds

from ..processes import run_module
from ..sim.hashing import run_hash
from ..system.test_robustness import PACKS

compiled_only = pytest.mark.skipif(bool(config.DISABLE_JIT), reason="needs compiled kernels")
fast_only = pytest.mark.skipif(IS_PLAIN, reason="needs the fast compilation")


def test_plain_python_gives_the_same_bytes():
    assert run_module("tests.sim.hashing", "40", NUMBA_DISABLE_JIT="1")[0] == run_hash(40)


@pytest.mark.slow
def test_bounds_checks_find_nothing(tmp_path):
    """All runs record worlds in the same way, so that the kernel is compiled with checks only once."""
    checked = {"NUMBA_BOUNDSCHECK": "1", "NCLONE_ENV_CACHE_DIR": str(tmp_path)}
    assert run_module("tests.sim.bounds", **checked) == ["checked"]
    printed, folder = run_module("tests.sim.hashing", "1500", **checked)
    assert printed == run_hash(1500)
    assert Path(folder).parent == tmp_path
    assert any(Path(folder).iterdir())
    assert run_module("tests.sim.robustness", "200", "500", *PACKS, **checked)[0] == "levels"
    words = run_module("tests.fuzz", "--target", "map", "--tries", "300", "--seconds", "60", **checked)
    assert words[-10:-8] == ["map", "300"]


def compiled(dispatcher, decorator, *arguments):
    """Compile a kernel, its callees linked in, without the cache (which drops what can be inspected)."""
    fresh = decorator(dispatcher.py_func)
    fresh._cache = caching.NullCache()
    fresh.compile(tuple(numba.typeof(argument) for argument in arguments))
    return fresh


@pytest.fixture(scope="module")
def session():
    return Session(build_room())


@pytest.fixture(scope="module", params=["start", pytest.param("frame", marks=pytest.mark.slow)])
def compiled_now(request, session):
    """A kernel compiled now, with the decorator of the package: the first moment of an episode, or the whole frame."""
    arguments = {"start": (start, 0), "frame": (tick, np.uint8(0))}
    dispatcher, last = arguments[request.param]
    return compiled(dispatcher, kernel, session.levels, session.worlds, 0, last)


@compiled_only
def test_a_compiled_kernel_allocates_nothing(compiled_now):
    """Without Numba's run-time memory manager no array can be made and no reference is counted."""
    (code,) = compiled_now.inspect_llvm().values()
    assert "define" in code
    assert "NRT_" not in code


@compiled_only
def test_the_cached_frame_allocates_nothing(session, monkeypatch):
    """Machine code names what it calls."""
    loaded, load = [], codegen.CPUCodeLibrary._set_compiled_object

    def watched(library, code):
        loaded.append(bytes(code))
        load(library, code)

    monkeypatch.setattr(codegen.CPUCodeLibrary, "_set_compiled_object", watched)
    session.tick(0)  # compiles it, unless it is cached
    inputs = np.zeros((1, 1), np.uint8)
    kernel(play_worlds.py_func).compile(tuple(map(numba.typeof, (session.levels, session.worlds, inputs))))
    assert b"play_worlds" in loaded[-1]
    assert b"NRT_" not in loaded[-1]


@compiled_only
def test_an_ordinary_compilation_counts_references(session):
    """Negative control."""
    ordinary = compiled(start, numba.njit(nogil=True), session.levels, session.worlds, 0, 0)
    (code,) = ordinary.inspect_llvm().values()
    assert "NRT_" in code


@compiled_only
def test_a_compiled_kernel_never_fuses_multiplication_and_addition(compiled_now):
    (code,), (assembly,) = compiled_now.inspect_llvm().values(), compiled_now.inspect_asm().values()
    assert "fmul" in code
    assert "fadd" in code
    assert "llvm.fma" not in code
    assert "llvm.fmuladd" not in code
    assert "fmadd" not in assembly


@compiled_only
def test_kernels_release_the_interpreter_and_keep_strict_arithmetic():
    for dispatcher in (tick, play, start):
        assert dispatcher.targetoptions["nogil"] is True
        assert not dispatcher.targetoptions.get("fastmath", False)
        assert dispatcher.targetoptions["error_model"] == "numpy"


@compiled_only
def test_a_specialised_kernel_is_its_machine_code():
    @kernel
    def half(x):
        return x / 2

    function = specialised(half, 3.0)
    assert function(5.0) == 2.5
    assert function is half.overloads[(numba.float64,)].entry_point


PLAIN, ALIGNED = (np.dtype([("x", "i1"), ("y", "f8")], align=align) for align in (False, True))
PADDED = np.dtype({"names": ["x", "y"], "formats": ["i1", "f8"], "offsets": [0, 8], "itemsize": 16})  # equals ALIGNED


class Two(NamedTuple):
    first: np.ndarray
    second: tuple[int, float]


def frozen(array):
    array.flags.writeable = False
    return array


def test_types_are_those_of_numba():
    """Asked twice, as the second answer is remembered."""
    arrays = [np.zeros(shape, dtype) for shape in (3, (3, 4)) for dtype in (PLAIN, ALIGNED, PADDED, "f8", "u1")]
    arrays += [frozen(np.zeros(3, ALIGNED)), np.zeros((3, 4), ALIGNED).T, np.zeros((3, 4), ALIGNED)[:, ::2]]
    arrays += [np.zeros(25, np.uint8)[1:].view("f8"), np.zeros(3, ALIGNED).view(np.recarray)]
    others = [7, 2.5, True, np.uint8(1), np.zeros(1, ALIGNED)[0], tick, (), (1, 2), (1, 2.0)]
    for argument in (*arrays, *others, *(Two(array, (1, 2.0)) for array in arrays)):
        assert type_of(argument) == type_of(argument) == numba.typeof(argument)
    assert len({type_of(array) for array in arrays}) > 10


def inlined_by_force(inner) -> bool:
    """Return whether a kernel that others call is marked so."""
    (result,) = inner.overloads.values()
    (function,) = (f for f in result.library.get_defined_functions() if f.name == result.fndesc.llvm_func_name)
    return b"alwaysinline" in list(function.attributes)


@fast_only
def test_a_kernel_inside_others_is_compiled_once_and_not_for_python():
    def total(a, b):
        return a + b

    part, seldom = kernel(total), called_kernel(total)

    def totals(x):
        return part(x, 1) + part(x, 2) + part(x, x) + seldom(x, 3)

    whole = kernel(totals)
    assert whole(10) == 11 + 12 + 20 + 13
    assert len(part.inner.overloads) == len(seldom.inner.overloads) == 1  # constants and variables alike
    assert not part.overloads
    assert not seldom.overloads
    assert inlined_by_force(part.inner)
    assert not inlined_by_force(seldom.inner)
    assert part(2, 3) == 5  # from Python as well


@fast_only
def test_a_kernel_inside_others_cannot_be_called_from_python():
    @kernel
    def part(x):
        return x + 1

    @kernel
    def whole(x):
        return part(x)

    assert whole(1) == 2
    with pytest.raises(TypeError, match=r"part: only other kernels can call \.inner; call the kernel itself"):
        part.inner(1)
    (result,) = part.inner.overloads.values()
    for entry in (result.entry_point, part.inner.compile((numba.int64,)), part.inner.compile((numba.float64,))):
        with pytest.raises(TypeError, match="not callable"):
            entry(1)
