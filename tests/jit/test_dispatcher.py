"""Numba's own way to compile gives the same bytes, and is taken where the fast way does not work."""

import ast
import builtins
import importlib
import sys
from pathlib import Path

import numba
import pytest
from numba.core import codegen, config
from numba.core.registry import CPUDispatcher

from nclone_env.jit import dispatcher
from nclone_env.jit.dispatcher import choose_dispatcher, plain_dispatcher

from ..processes import run_copy
from . import both_ways

pytestmark = pytest.mark.skipif(bool(config.DISABLE_JIT), reason="needs compiled kernels")


def test_both_ways_give_the_same_bytes():
    way, plain = run_copy(Path(both_ways.__file__), NCLONE_ENV_PLAIN_JIT="1")[0].split()
    assert way == "plain"
    assert plain == both_ways.results_hash()


@pytest.fixture
def untried(tmp_path, monkeypatch):
    """A cache folder in which this Numba, not known to work, was never tried, and ``jit.inner`` imported again."""
    monkeypatch.delenv("NCLONE_ENV_PLAIN_JIT", raising=False)
    monkeypatch.setattr(dispatcher, "TESTED_VERSIONS", ())
    monkeypatch.setattr(dispatcher, "cache_folder", lambda: tmp_path)
    monkeypatch.setattr(dispatcher, "OPTIONS", dict(dispatcher.OPTIONS))
    monkeypatch.delitem(sys.modules, "nclone_env.jit.inner", raising=False)
    return tmp_path


def test_the_fast_way_is_tried_once(untried, monkeypatch):
    assert choose_dispatcher().__name__ == "KernelDispatcher"
    assert [path.name for path in untried.iterdir()] == ["fast"]
    monkeypatch.setattr(dispatcher, "_try", None)
    assert choose_dispatcher().__name__ == "KernelDispatcher"


def test_a_tested_numba_is_not_tried(untried, monkeypatch):
    monkeypatch.setattr(dispatcher, "TESTED_VERSIONS", (numba.__version__,))
    monkeypatch.setattr(dispatcher, "_try", None)
    assert choose_dispatcher().__name__ == "KernelDispatcher"
    assert not list(untried.iterdir())


def test_the_plain_way_can_be_asked_for(untried, monkeypatch):
    monkeypatch.setenv("NCLONE_ENV_PLAIN_JIT", "1")
    assert choose_dispatcher() is plain_dispatcher
    assert not list(untried.iterdir())


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (codegen, "JITCodeLibrary"),
        (codegen.JITCodeLibrary, "enable_object_caching"),
        (codegen.JITCodeLibrary, "_finalize_dynamic_globals"),
        (CPUDispatcher, "get_call_template"),
    ],
)
def test_a_numba_without_a_private_part_is_used_as_it_is(untried, monkeypatch, owner, name):
    for parent in owner.__mro__ if isinstance(owner, type) else [owner]:
        if name in vars(parent):
            monkeypatch.delattr(parent, name)
    assert choose_dispatcher() is plain_dispatcher
    assert not list(untried.iterdir())


PRIVATE = [
    (statement.module, name.name)
    for statement in ast.parse(Path(dispatcher.__file__).with_name("inner.py").read_text()).body
    if isinstance(statement, ast.ImportFrom) and str(statement.module).partition(".")[0] in ("llvmlite", "numba")
    for name in statement.names
]


@pytest.mark.parametrize(("module", "name"), PRIVATE)
def test_a_numba_without_a_name_that_is_imported_is_used_as_it_is(untried, monkeypatch, module, name):
    real = builtins.__import__

    def without(asked, namespace=None, local=None, names=(), level=0):
        if asked == module and name in (names or ()) and namespace["__name__"] == "nclone_env.jit.inner":
            raise ImportError(f"cannot import name {name!r} from {module!r}")
        return real(asked, namespace, local, names, level)

    monkeypatch.setattr(builtins, "__import__", without)
    assert choose_dispatcher() is plain_dispatcher
    assert not list(untried.iterdir())


def test_a_numba_that_compiles_callees_for_python_is_used_as_it_is(untried, monkeypatch):
    inner = importlib.import_module("nclone_env.jit.inner")
    monkeypatch.setattr(inner, "KernelDispatcher", DispatcherWithoutInner)
    assert choose_dispatcher() is plain_dispatcher
    assert not list(untried.iterdir())


class DispatcherWithoutInner(CPUDispatcher):
    """What remains if Numba no longer asks ``_numba_type_`` for the dispatcher that callers compile."""

    def __init__(self, py_func, targetoptions):
        super().__init__(py_func, targetoptions=targetoptions)
        self.inner = CPUDispatcher(py_func, targetoptions=targetoptions)
