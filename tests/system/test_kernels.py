"""Kernels of the package as a whole: how their sources are written, what their machine code does not do."""

import ast
from pathlib import Path

import numba
import numpy as np
import pytest
from numba import config
from numba.core import caching, codegen

import nclone_env
from nclone_env.env.compiled.step import step_range
from nclone_env.jit import cache_folder, kernel, sources
from nclone_env.jit.notice import Notice, kernels_in
from nclone_env.level.build import build_room
from nclone_env.plan.archive import explore
from nclone_env.sim.entities import drone
from nclone_env.sim.frame import start, tick
from nclone_env.sim.session import Session, play_worlds
from nclone_env.train.policies.mlp_kernels import gradient

from ..processes import run_module
from ..sim.hashing import run_hash
from .test_robustness import PACKS

compiled_only = pytest.mark.skipif(bool(config.DISABLE_JIT), reason="needs compiled kernels")
DECORATORS = {"kernel", "called_kernel", "numeric_kernel"}


def kernels_of(source: str) -> list[ast.FunctionDef]:
    """Return the functions of a source that are kernels by their decorator."""
    functions = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef))
    return [node for node in functions if DECORATORS & {ast.unparse(name) for name in node.decorator_list}]


def bounds(index: ast.expr) -> list[ast.expr | None]:
    """Return the numbers of an index: those of each axis, and the ends of slices."""
    if isinstance(index, ast.Tuple):
        return [part for item in index.elts for part in bounds(item)]
    return [index.lower, index.upper] if isinstance(index, ast.Slice) else [index]


def counts_from_the_end(function: ast.FunctionDef) -> list[str]:
    """Return the items and slices of a kernel with a negative number as an index."""
    items = [node for node in ast.walk(function) if isinstance(node, ast.Subscript)]
    negative = (ast.unparse(item) for item in items for part in bounds(item.slice) if isinstance(part, ast.UnaryOp))
    return sorted(negative)


def early_returns_beside_each(function: ast.FunctionDef) -> list[ast.Return]:
    """Return the returns other than the last statement of a kernel, if it has a loop over ``each``."""
    loops = [node.iter for node in ast.walk(function) if isinstance(node, ast.For) and isinstance(node.iter, ast.Call)]
    if not any(ast.unparse(loop.func) == "each" for loop in loops):
        return []
    return [node for node in ast.walk(function) if isinstance(node, ast.Return) and node is not function.body[-1]]


def test_how_kernels_are_written():
    """The fast way compiles no index that counts from the end; Numba types ``each`` on all Pythons only so."""
    kernels = {
        f"{path}: {function.name}": function
        for path in Path(nclone_env.__file__).parent.rglob("*.py")
        for function in kernels_of(path.read_text(encoding="utf-8"))
    }
    assert len(kernels) > 400
    assert {name: found for name, function in kernels.items() if (found := counts_from_the_end(function))} == {}
    assert [name for name, function in kernels.items() if early_returns_beside_each(function)] == []


def test_how_a_kernel_is_not_written():
    """Negative control."""
    lines = "if a[-1]:", "    return 0", "for name in each(NAMES):", "    a[0, -2:] += b[:, -1] + a[1, 2:]"
    (function,) = kernels_of("\n    ".join(("@kernel\ndef f(a, b):", *lines)))
    assert counts_from_the_end(function) == ["a[-1]", "a[0, -2:]", "b[:, -1]"]
    assert len(early_returns_beside_each(function)) == 1


def test_plain_python_gives_the_same_bytes():
    assert run_module("tests.sim.hashing", "40", NUMBA_DISABLE_JIT="1")[0] == run_hash(40)


@pytest.mark.slow
def test_bounds_checks_find_nothing():
    """All runs record worlds in the same way, so that the kernel is compiled with checks once, and kept."""
    checked = {"NUMBA_BOUNDSCHECK": "1"}
    assert run_module("tests.sim.bounds", **checked) == ["checked"]
    printed, folder = run_module("tests.sim.hashing", "1500", **checked)
    assert printed == run_hash(1500)
    assert Path(folder) != cache_folder()
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


@pytest.mark.slow
def test_both_ways_give_the_same_worlds():
    assert run_module("tests.sim.hashing", "1500", NCLONE_ENV_PLAIN_JIT="1")[0] == run_hash(1500)


def test_what_is_in_a_kernel():
    inside = kernels_in(step_range.py_func)
    assert {tick.py_func, drone.move_zaps.py_func} <= inside  # through modules and closures
    assert len(inside) > 250
    assert kernels_in(drone.move_zaps.py_func) < inside


def test_what_was_announced_is_not_announced_again(capsys, monkeypatch):
    monkeypatch.setenv("NCLONE_ENV_QUIET", "0")
    said = Notice()
    said.begin(step_range.py_func)
    assert "compiling step_range" in capsys.readouterr().err
    said.end(is_done=True)
    said.begin(tick.py_func)
    assert capsys.readouterr().err == ""
    Notice().begin(tick.py_func)
    assert "compiling tick" in capsys.readouterr().err


def reached(function) -> set:
    """Return the functions that the digest of a kernel covers."""
    found, pending = {function}, [function]
    for each in pending:  # which grows
        new = [callee for callee in sources._described(each)[1] if callee not in found]
        found.update(new)
        pending += new
    return found


@compiled_only
@pytest.mark.parametrize("called", [tick, step_range, gradient, explore])
def test_digests_cover_every_kernel_inside_and_no_other_module(called):
    """What Numba follows, but not what a module of theirs imports."""
    inside = {function for function in kernels_in(called.py_func) if not sources._is_digested(function)}
    covered = reached(called.py_func)
    assert len(inside) > 1
    assert inside <= covered
    modules = {function.__module__ for function in covered}
    assert not modules & {"nclone_env.render.looks", "nclone_env.config", "nclone_env.errors"}
