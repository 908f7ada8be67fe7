"""Kernels outside the package are cached, and compiled again when anything they consist of was edited."""

import os

import pytest
from numba.core import config

from nclone_env.jit import cache_folder, compiler_digest, kernel
from nclone_env.jit.cache import CodeFiles, KernelCache
from nclone_env.sim.frame import tick

from ..processes import REPOSITORY, run_module

KERNELS = """
import sys
from nclone_env.jit import kernel
from user_helper import helper

@kernel
def total(x):
    return helper(x) + 1

sys.stdout.write(f"{total(10)} {sum(total.stats.cache_hits.values())}")
"""
HELPER = """
from nclone_env.jit import kernel

@kernel
def helper(x):
    return x + 100
"""


@pytest.mark.skipif(bool(config.DISABLE_JIT), reason="needs compiled kernels")
def test_an_edited_kernel_is_compiled_again_and_an_unedited_one_is_not(tmp_path):
    variables = {
        "NCLONE_ENV_CACHE_DIR": os.fspath(tmp_path / "cache"),
        "PYTHONPATH": f"{REPOSITORY}:{tmp_path}",
        "PYTHONDONTWRITEBYTECODE": "1",  # an edit within a second and of equal length is not noticed by .pyc files
    }

    def run(kernels: str, helper: str) -> list[str]:
        (tmp_path / "user_kernels.py").write_text(kernels)
        (tmp_path / "user_helper.py").write_text(helper)
        return run_module("user_kernels", **variables)

    assert run(KERNELS, HELPER) == ["111", "0"]
    edited = KERNELS.replace("+ 1", "+ 2")
    assert run(edited, HELPER) == ["112", "0"]
    assert run(edited, HELPER) == ["112", "1"]
    assert run(edited, HELPER.replace("100", "200")) == ["212", "0"]
    assert run(KERNELS, HELPER) == ["111", "1"]  # each version has files of its own


def test_kernels_are_cached_in_the_folder_of_the_package():
    function = getattr(tick, "py_func", tick)
    assert KernelCache(function).cache_path == os.fspath(cache_folder())
    assert cache_folder().name == compiler_digest()


def test_a_kernel_from_an_interactive_session_is_not_cached():
    scope: dict = {"__name__": "__main__"}
    exec("def f(x):\n    return x + 1", scope)
    assert KernelCache(scope["f"]).cache_path is None
    assert kernel(scope["f"])(1) == 2


def test_both_ways_to_compile_have_files_of_their_own(monkeypatch):
    from nclone_env.jit import cache

    function = getattr(tick, "py_func", tick)
    keys = set()
    for is_plain in (False, True):
        monkeypatch.setattr(cache, "IS_PLAIN", is_plain)
        keys.add(cache._Locator(function).get_disambiguator())
    assert len(keys) == 2


class Key(str):
    """Compares by a number that its text does not show."""

    def __eq__(self, other):
        return self.number == other.number

    __hash__ = None


def key(number):
    made = Key("key")
    made.number = number
    return (made,)


def test_code_is_found_by_its_key_alone(tmp_path):
    files = CodeFiles("kernel", lambda: tmp_path)
    files.save(("one",), "code of one")
    files.save(("two",), "code of two")
    assert [files.load((name,)) for name in ("one", "two", "three")] == ["code of one", "code of two", None]
    files.save(key(1), "code of 1")
    assert files.load(key(1)) == "code of 1"
    assert files.load(key(2)) is None, "the text of the keys is the same, and with it the name of the file"


@pytest.mark.parametrize("size", [0, 3, 4, 5, -1])
def test_damaged_code_is_none(tmp_path, size):
    files = CodeFiles("kernel", lambda: tmp_path)
    files.save(("one",), "code")
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    path.write_bytes(whole[:size])
    assert files.load(("one",)) is None
    path.write_bytes(whole)
    assert files.load(("one",)) == "code"
