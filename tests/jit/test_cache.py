"""Kernels outside the package are cached, and compiled again when anything they consist of was edited."""

import os

import pytest
from numba import config

from nclone_env.jit import cache_folder, compiler_digest, kernel
from nclone_env.jit.cache import CodeFiles, KernelCache

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


compiled_only = pytest.mark.skipif(bool(config.DISABLE_JIT), reason="needs compiled kernels")


def run(folder, kernels: str, helper: str, **variables: str) -> list[str]:
    """Return what the kernels print, their result and the number of cache hits, in a process of their own."""
    (folder / "user_kernels.py").write_text(kernels)
    (folder / "user_helper.py").write_text(helper)
    own = {
        "NCLONE_ENV_CACHE_DIR": os.fspath(folder / "cache"),
        "PYTHONPATH": f"{REPOSITORY}:{folder}",
        "PYTHONDONTWRITEBYTECODE": "1",  # an edit within a second and of equal length is not noticed by .pyc files
    }
    return run_module("user_kernels", **own, **variables)


@compiled_only
@pytest.mark.parametrize("locators", ["", "UserWideCacheLocator"])
def test_an_edited_kernel_is_compiled_again_and_an_unedited_one_is_not(tmp_path, locators):
    """Numba's own ways to place caches, by public variables, make no difference."""
    own = {"NUMBA_CACHE_LOCATOR_CLASSES": locators, "NUMBA_CACHE_DIR": str(tmp_path / "numba")} if locators else {}
    edited = KERNELS.replace("+ 1", "+ 2")
    assert run(tmp_path, KERNELS, HELPER, **own) == ["111", "0"]
    assert run(tmp_path, edited, HELPER, **own) == ["112", "0"]
    assert run(tmp_path, edited, HELPER, **own) == ["112", "1"]
    assert run(tmp_path, edited, HELPER.replace("100", "200"), **own) == ["212", "0"]
    assert run(tmp_path, KERNELS, HELPER, **own) == ["111", "1"]  # each version has files of its own


IMPORTS = """
from enum import IntEnum
from nclone_env.jit import numeric_kernel

class Number(IntEnum):
    LARGE = 100
"""
OTHERS = {
    "enumeration": ("x + 100", "x + Number.LARGE", "LARGE = 100", "LARGE = 300"),
    "decorator": ("x + 100", "x * 3.7 + 100.0 - 37.0", "@kernel\ndef", "@numeric_kernel\ndef"),
}


@compiled_only
@pytest.mark.parametrize("edit", OTHERS)
def test_what_a_kernel_consists_of_beside_its_code(tmp_path, edit):
    body, used, old, new = OTHERS[edit]
    helper = IMPORTS + HELPER.replace(body, used)
    assert run(tmp_path, KERNELS, helper)[1:] == ["0"]
    assert run(tmp_path, KERNELS, helper)[1:] == ["1"]
    assert old in helper
    assert run(tmp_path, KERNELS, helper.replace(old, new))[1:] == ["0"]


@compiled_only
@pytest.mark.parametrize("variables", [{}, {"NUMBA_OPT": "0"}])
def test_what_cannot_be_cached_works(tmp_path, variables):
    """Code with the address of a large array, or that Numba does not optimise."""
    helper = f"import numpy as np\nLARGE = np.full(300_000, 100)\n{HELPER.replace('100', 'LARGE[7]')}"
    for _ in range(2):
        assert run(tmp_path, KERNELS, helper, **variables) == ["111", "0"]


def test_kernels_are_cached_in_the_folder_of_the_package():
    assert KernelCache(run, {}).cache_path == os.fspath(cache_folder())
    assert cache_folder().name == compiler_digest()


def test_a_kernel_from_an_interactive_session_is_not_cached():
    scope: dict = {"__name__": "__main__"}
    exec("def f(x):\n    return x + 1", scope)
    assert KernelCache(scope["f"], {}).cache_path is None
    assert kernel(scope["f"])(1) == 2


def test_ways_to_compile_have_files_of_their_own(monkeypatch):
    from nclone_env.jit import cache

    names = {KernelCache(run, options)._files._name for options in ({}, {"forceinline": True})}
    monkeypatch.setattr(cache, "IS_PLAIN", not cache.IS_PLAIN)
    names |= {KernelCache(run, options)._files._name for options in ({}, {"forceinline": True})}
    assert len(names) == 4


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
