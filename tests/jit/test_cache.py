"""Kernels outside the package are cached, and compiled again when anything they consist of was edited.

Code that came with the package is used where it is right, and nowhere else.
"""

import itertools
import json
import os
import pickle
import zlib

import numba
import pytest
from numba import config

from nclone_env.jit import cache, cache_folder, kernel
from nclone_env.jit.cache import CodeFiles, KernelCache
from nclone_env.jit.folder import CODE_SUFFIX, PART_SUFFIX
from nclone_env.jit.notice import say_once
from nclone_env.jit.sources import compiler_digest
from nclone_env.jit.target import target

from ..processes import run_copy

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
    own = {"NCLONE_ENV_CACHE_DIR": os.fspath(folder / "cache")}
    return run_copy(folder / "user_kernels.py", **own, **variables)[0].split()


@compiled_only
@pytest.mark.parametrize("locators", ["", pytest.param("UserWideCacheLocator", marks=pytest.mark.slow)])
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


BY_ADDRESS = """
import sys
import numpy as np
from nclone_env.jit import address_of, call_at, kernel

@kernel
def double(out):
    if out[0] > 50:
        raise ValueError("more than", 50)
    out[0] = out[0] + out[0]

@kernel
def through(address, out):
    call_at(address, (out,))

values = [np.full(1, 21, np.dtype(name)) for name in sys.argv[1:]]
for value in values:
    double(value * 0)  # all are loaded before the first address is asked for
for value in values:
    through(address_of(double, value), value)
hits = sum(double.stats.cache_hits.values())
large, said = np.full(1, 51, values[0].dtype), []
for call in (lambda: double(large), lambda: through(address_of(double, large), large)):
    try:
        call()
    except ValueError as error:
        said.append(error.args)
sys.stdout.write(f"{[value.item() for value in values]} {hits} {said}")
"""


@compiled_only
@pytest.mark.parametrize("plain", ["", "1"])
def test_codes_of_several_processes_keep_apart_and_may_raise(tmp_path, plain):
    """Numba counts the functions of a process, so equal numbers are those of other types."""
    path = tmp_path / "kernels.py"
    path.write_text(BY_ADDRESS)
    own = {"NCLONE_ENV_CACHE_DIR": os.fspath(tmp_path / "cache"), "NCLONE_ENV_PLAIN_JIT": plain}
    for names, results in (
        (["int64"], "[42] 0"),
        (["float64"], "[42.0] 0"),
        (["int64", "float64"], "[42, 42.0] 2"),
        (["float64", "int64"], "[42.0, 42] 2"),
    ):
        assert run_copy(path, *names, **own)[0] == f"{results} {[('more than', 50)] * 2}"


def test_kernels_are_cached_in_the_folder_of_the_package():
    assert KernelCache(run, {}).cache_path == os.fspath(cache_folder())
    assert cache_folder().name == compiler_digest()


def test_a_kernel_from_an_interactive_session_is_not_cached():
    scope: dict = {"__name__": "__main__"}
    exec("def f(x):\n    return x + 1", scope)
    assert KernelCache(scope["f"], {}).cache_path is None
    assert kernel(scope["f"])(1) == 2


def test_ways_to_compile_have_files_of_their_own(monkeypatch):
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


NAME, KEY, CODE = f"step.step_range-0123456789abcdef.{cache.python_tag()}", ("key",), "the code" * 30
MUTANTS = 60


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of shipped code with two files."""
    monkeypatch.setenv("NCLONE_ENV_QUIET", "0")
    folder = tmp_path / "_code"
    folder.mkdir()
    CodeFiles(NAME, lambda: folder).save(KEY, CODE)
    CodeFiles(NAME, lambda: folder).save(("other",), "other code")
    (folder / f"step.step-0123456789abcdef{PART_SUFFIX}").write_bytes(b"a part, which only compiling needs")
    cache.write_manifest(folder, [target().processor])
    if not target().features:
        manifest = json.loads((folder / cache.MANIFEST).read_bytes())
        assert [cache.CodeTarget(*each) for each in manifest["targets"]] == [target()]
    rewrite(folder, targets=[target()])  # with NUMBA_CPU_NAME as well
    monkeypatch.setattr(cache, "FOLDER", folder)
    forget()
    yield folder
    forget()


def forget():
    cache._manifest.cache_clear()
    say_once.cache_clear()


def rewrite(folder, **fields):
    path = folder / cache.MANIFEST
    path.write_text(json.dumps({**json.loads(path.read_bytes()), **fields}))


def load(name=NAME, key=KEY):
    """Load code as a process with an empty cache does."""
    forget()
    return CodeFiles(name, lambda: None).load(key)


def file_of(folder, key=KEY):
    return folder / CodeFiles(NAME, lambda: None)._file_name(key)


def test_it_is_loaded_without_a_cache_and_without_a_word(folder, capsys):
    assert load() == CODE
    assert load(key=("other",)) == "other code"
    assert CodeFiles(NAME, lambda: pytest.fail("the cache was opened")).load(KEY) == CODE
    assert sorted(path.suffix for path in folder.iterdir()) == [".json", CODE_SUFFIX, CODE_SUFFIX]
    assert capsys.readouterr().err == ""


def test_without_valid_code_the_cache_is_used_without_a_word(folder, tmp_path, capsys):
    (tmp_path / "cache").mkdir()
    CodeFiles(NAME, lambda: tmp_path / "cache").save(KEY, "compiled here")
    file_of(folder).write_bytes(b"")
    forget()
    assert CodeFiles(NAME, lambda: tmp_path / "cache").load(KEY) == "compiled here"
    assert capsys.readouterr().err == ""


def test_nothing_is_said_about_kernels_that_have_none(folder, capsys):
    assert load("user_kernels.total-0123456789abcdef.py311") is None
    assert load(key=("arguments of other types",)) is None
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"numba": "0.0.1"}, f"it is for numba 0.0.1, this is {numba.__version__}"),
        ({"python": "py27"}, f"it is for py27, this is {cache.python_tag()}"),
        ({"compiler": "0" * 16}, "it is for another NumPy, or for other settings of Numba (the variables NUMBA_...)"),
        ({"targets": [target()._replace(processor="x86-64-v9")]}, f"it is for x86-64-v9, this is {target().processor}"),
    ],
)
def test_code_for_others_is_not_used(folder, capsys, fields, reason):
    rewrite(folder, **fields)
    assert load() is None
    assert capsys.readouterr().err == f"nclone_env: machine code that came with the package is not used: {reason}\n"


def test_code_of_other_sources_is_not_used(folder, capsys):
    assert load(NAME.replace("0123", "4567")) is None
    assert capsys.readouterr().err.endswith("not used: it is of other sources than those installed\n")


def test_a_reason_is_given_once(folder, capsys, monkeypatch):
    rewrite(folder, numba="0.0.1")
    assert load() is None
    assert CodeFiles(NAME, lambda: None).load(KEY) is CodeFiles(NAME, lambda: None).load(("other",)) is None
    assert capsys.readouterr().err.count("\n") == 1
    monkeypatch.setenv("NCLONE_ENV_QUIET", "1")
    assert load() is None
    assert capsys.readouterr().err == ""


class Executed:
    """Ends the test if it is unpickled."""

    def __reduce__(self):
        return pytest.fail, ("foreign code was unpickled",)


def checked(data: bytes) -> bytes:
    """Return data with the checksum of a file of the cache."""
    return zlib.crc32(data).to_bytes(4, "little") + data


def packed(content) -> bytes:
    """Return a file of the cache with other content."""
    return checked(zlib.compress(pickle.dumps(content)))


def mutants(whole: bytes, other: bytes):
    """Yield damaged, foreign and old contents of a file of code, without end."""
    yield from (b"", b"\0" * 4, other, whole + b"\0", whole[4:], checked(b""), checked(b"no pickle"))
    yield from (whole[:size] for size in (3, 4, 5, -1))
    yield from (packed((KEY, Executed())), packed((KEY, "forged code")), packed(("old", CODE)), packed(KEY))
    yield checked(pickle.dumps((KEY, CODE)))  # of an older format
    yield checked(zlib.compress(b"no pickle"))
    for step in itertools.count(1):
        place = step * 7919 % len(whole)
        yield whole[:place]
        yield whole[:place] + bytes([whole[place] ^ 1 << step % 8]) + whole[place + 1 :]
        yield checked(whole[4:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])


def test_damaged_and_foreign_files_are_never_read(folder, capsys, monkeypatch):
    path = file_of(folder)
    whole, other = path.read_bytes(), file_of(folder, ("other",)).read_bytes()
    unpickled = []
    monkeypatch.setattr(pickle, "loads", unpickled.append)
    for data in itertools.islice(mutants(whole, other), MUTANTS):
        assert data != whole
        path.write_bytes(data)
        assert load() is None
        assert capsys.readouterr().err.endswith(f"{path} is damaged; install the package again\n")
    assert unpickled == []


def test_damaged_and_foreign_files_of_the_cache_are_compiled_again(tmp_path):
    files = CodeFiles(NAME, lambda: tmp_path)
    files.save(KEY, CODE)
    files.save(("other",), "other code")
    path, other = file_of(tmp_path), file_of(tmp_path, ("other",))
    whole = path.read_bytes()
    trusted = (packed((KEY, Executed())), packed((KEY, "forged code")))  # only the owner writes there
    tried = 0
    for data in itertools.islice(mutants(whole, other.read_bytes()), MUTANTS):
        if data not in trusted:
            path.write_bytes(data)
            assert files.load(KEY) in (None, CODE)
            tried += 1
    assert tried == MUTANTS - 2
    path.write_bytes(whole)
    assert files.load(KEY) == CODE


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b"{}",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"files": []}',
        b'{"targets": 1, "files": {}}',
        b'{"targets": [[]], "files": {}}',
        b'{"targets": [], "files": {"a": 1}}',
    ],
)
def test_a_damaged_manifest(folder, capsys, text):
    (folder / cache.MANIFEST).write_bytes(text)
    assert load() is None
    assert capsys.readouterr().err.endswith(f"{folder / cache.MANIFEST} is damaged; install the package again\n")


def test_a_missing_file_and_a_missing_manifest(folder, capsys):
    file_of(folder).unlink()
    assert load() is None
    assert capsys.readouterr().err.endswith(f"{file_of(folder)}: No such file or directory\n")
    (folder / cache.MANIFEST).unlink()
    assert load() is None
    assert capsys.readouterr().err == ""  # as an installation from sources


SHIPPED = """
from nclone_env.jit import kernel

@kernel
def total(count):
    result = 0
    for number in range(count):
        result += number * {factor}
    return result
"""
MAIN = """
import sys
from pathlib import Path
from nclone_env.jit import cache
cache.FOLDER = Path(sys.argv[1])
if len(sys.argv) == 2:
    from shipped_kernels import total
    print(total(10), sum(total.stats.cache_hits.values()))
else:
    cache.write_manifest(cache.FOLDER, [cache.target().processor])
"""


@pytest.mark.skipif(bool(config.DISABLE_JIT), reason="needs compiled kernels")
def test_a_process_runs_shipped_code_or_compiles_what_is_right(tmp_path):
    code, cached = tmp_path / "_code", tmp_path / "cache"
    code.mkdir()
    (tmp_path / "main.py").write_text(MAIN)
    processor = {"NUMBA_CPU_NAME": target().processor, "NUMBA_CPU_FEATURES": ""}

    def run(*arguments, factor=1, folder="none"):
        (tmp_path / "shipped_kernels.py").write_text(SHIPPED.format(factor=factor))
        own = {"NCLONE_ENV_CACHE_DIR": str(tmp_path / folder), **processor}
        return run_copy(tmp_path / "main.py", code, *arguments, **own)[0].split()

    assert run(folder="cache") == ["45", "0"]
    for path in cached.rglob("*.nbc"):
        path.rename(code / path.name)
    assert run("write") == []
    assert run(folder="one") == ["45", "1"]
    assert run(factor=2, folder="two") == ["90", "0"]  # other sources
    (path,) = code.glob("*.nbc")
    data = path.read_bytes()
    path.write_bytes(data[:-100] + bytes(100))
    assert run(folder="three") == ["45", "0"]
    path.write_bytes(data)
    assert run(folder="four") == ["45", "1"]
    assert not list((tmp_path / "four").rglob("*.nbc"))
