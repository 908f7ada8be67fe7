"""The kernels compiled, plain and bounds-checked; where compiled code is kept; what kernels must not do."""

import shutil
from pathlib import Path

import numba
import numpy as np
import pytest
from numba.core import caching, config

from nclone_env.jit import decorators as _jit
from nclone_env.level.build import build_room
from nclone_env.sim.session import Session
from nclone_env.sim.tick import play, start, tick

from .processes import REPOSITORY, run_module
from .sim.hashing import run_hash

compiled_only = pytest.mark.skipif(bool(config.DISABLE_JIT), reason="needs compiled kernels")


def test_plain_python_gives_the_same_bytes():
    assert run_module("tests.sim.hashing", "40", NUMBA_DISABLE_JIT="1")[0] == run_hash(40)


@pytest.mark.slow
def test_bounds_checks_find_nothing(tmp_path):
    checked = {"NUMBA_BOUNDSCHECK": "1", "NCLONE_ENV_CACHE_DIR": str(tmp_path)}
    assert run_module("tests.sim.bounds", **checked) == ["checked"]
    printed, folder = run_module("tests.sim.hashing", "1500", **checked)
    assert printed == run_hash(1500)
    assert Path(folder).parent == tmp_path
    assert any(Path(folder).iterdir())


def test_bounds_checks_have_a_cache_of_their_own(tmp_path):
    where = "import sys; from nclone_env.jit import cache_folder; sys.stdout.write(str(cache_folder()))"
    (tmp_path / "where.py").write_text(where)
    path = {"NCLONE_ENV_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": f"{REPOSITORY}:{tmp_path}"}
    (folder,) = run_module("where", NUMBA_BOUNDSCHECK="1", **path)
    assert Path(folder).is_dir()
    assert Path(folder).parent == tmp_path / "cache"
    assert Path(folder).name != _jit.source_digest()


def test_the_cache_folder_changes_with_any_source_file(tmp_path, monkeypatch):
    package = tmp_path / "package"
    shutil.copytree(REPOSITORY / "nclone_env", package, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(_jit, "_PACKAGE", package)
    digests = set()
    for change in ("", "# a comment\n", "# another\n"):
        path = package / "sim" / "geometry.py"
        path.write_text(path.read_text() + change)
        digests.add(_jit.source_digest.__wrapped__())
    (package / "new.py").write_text("")
    digests.add(_jit.source_digest.__wrapped__())
    assert len(digests) == 4
    assert all(len(digest) == 16 and int(digest, 16) >= 0 for digest in digests)


def test_an_unwritable_cache_falls_back_to_a_temporary_folder(tmp_path, monkeypatch):
    blocker = tmp_path / "file"
    blocker.write_text("")
    monkeypatch.setenv("NCLONE_ENV_CACHE_DIR", str(blocker))
    folder = _jit.cache_folder.__wrapped__()
    assert folder.is_dir()
    assert tmp_path not in folder.parents
    folder.rmdir()


def compiled_again(dispatcher, decorator):
    """Compile a kernel that has run, its callees linked in, without the cache (which drops what can be inspected)."""
    fresh = decorator(dispatcher.py_func)
    fresh._cache = caching.NullCache()
    fresh.compile(dispatcher.signatures[0])
    return fresh


@pytest.fixture(scope="module")
def compiled_tick():
    """The frame compiled now, with the decorator of the package."""
    session = Session(build_room())
    start(session.levels, session.worlds, 0, 0)
    tick(session.levels, session.worlds, 0, np.uint8(0))
    return compiled_again(tick, _jit.kernel)


@compiled_only
def test_the_compiled_frame_allocates_nothing(compiled_tick):
    """Without Numba's run-time memory manager no array can be made and no reference is counted."""
    (code,) = compiled_tick.inspect_llvm().values()
    assert "define" in code
    assert "NRT_" not in code
    (code,) = compiled_again(start, numba.njit(nogil=True)).inspect_llvm().values()
    assert "NRT_" in code  # what an ordinary compilation has


@compiled_only
def test_the_compiled_frame_never_fuses_multiplication_and_addition(compiled_tick):
    (code,), (assembly,) = compiled_tick.inspect_llvm().values(), compiled_tick.inspect_asm().values()
    assert "fmul" in code
    assert "llvm.fma" not in code
    assert "llvm.fmuladd" not in code
    assert "fmadd" not in assembly


@compiled_only
def test_kernels_release_the_interpreter_and_keep_strict_arithmetic():
    for dispatcher in (tick, play, start):
        assert dispatcher.targetoptions["nogil"] is True
        assert not dispatcher.targetoptions.get("fastmath", False)
        assert dispatcher.targetoptions["error_model"] == "numpy"


def inlined_by_force(inner) -> bool:
    """Return whether a kernel that others call is marked so."""
    (result,) = inner.overloads.values()
    (function,) = (f for f in result.library.get_defined_functions() if f.name == result.fndesc.llvm_func_name)
    return b"alwaysinline" in list(function.attributes)


@compiled_only
def test_a_kernel_inside_others_is_compiled_once_and_not_for_python():
    def total(a, b):
        return a + b

    part, seldom = _jit.kernel(total), _jit.called_kernel(total)

    def totals(x):
        return part(x, 1) + part(x, 2) + part(x, x) + seldom(x, 3)

    whole = _jit.kernel(totals)
    for dispatcher in (part, seldom, whole):
        dispatcher._cache = caching.NullCache()
    assert whole(10) == 11 + 12 + 20 + 13
    assert len(part.inner.overloads) == len(seldom.inner.overloads) == 1  # constants and variables alike
    assert not part.overloads
    assert not seldom.overloads
    assert inlined_by_force(part.inner)
    assert not inlined_by_force(seldom.inner)
    assert part(2, 3) == 5  # from Python as well
