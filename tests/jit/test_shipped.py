"""Code that came with the package: used where it is right, and nowhere else."""

import itertools
import json
import os
import pickle
import zlib

import numba
import pytest
from numba import config

from nclone_env.jit import shipped
from nclone_env.jit.cache import CodeFiles
from nclone_env.jit.folder import CODE_SUFFIX, PART_SUFFIX
from nclone_env.jit.notice import say_once
from nclone_env.jit.target import target

from ..processes import REPOSITORY, run_module

NAME, KEY, CODE = f"step.step_range-0123456789abcdef.{shipped.python_tag()}", ("key",), "the code" * 30
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
    shipped.write_manifest(folder, [target().processor])
    if not target().features:
        manifest = json.loads((folder / shipped.MANIFEST).read_bytes())
        assert [shipped.CodeTarget(*each) for each in manifest["targets"]] == [target()]
    rewrite(folder, targets=[target()])  # with NUMBA_CPU_NAME as well
    monkeypatch.setattr(shipped, "FOLDER", folder)
    forget()
    yield folder
    forget()


def forget():
    shipped._manifest.cache_clear()
    say_once.cache_clear()


def rewrite(folder, **fields):
    path = folder / shipped.MANIFEST
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
    assert capsys.readouterr().err == ""


def test_there_is_nothing_else(folder):
    assert sorted(path.suffix for path in folder.iterdir()) == [".json", CODE_SUFFIX, CODE_SUFFIX]


def test_it_needs_no_folder(folder):
    assert CodeFiles(NAME, lambda: pytest.fail("the cache was opened")).load(KEY) == CODE


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
        ({"python": "py27"}, f"it is for py27, this is {shipped.python_tag()}"),
        ({"compiler": "0" * 16}, "it is for another NumPy, or NUMBA_BOUNDSCHECK is set"),
        (
            {"targets": [target()._replace(processor="x86-64-v9")]},
            f"it is for x86-64-v9, this is {target().processor}",
        ),
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
    (folder / shipped.MANIFEST).write_bytes(text)
    assert load() is None
    assert capsys.readouterr().err.endswith(f"{folder / shipped.MANIFEST} is damaged; install the package again\n")


def test_a_missing_file_and_a_missing_manifest(folder, capsys):
    file_of(folder).unlink()
    assert load() is None
    assert capsys.readouterr().err.endswith(f"{file_of(folder)}: No such file or directory\n")
    (folder / shipped.MANIFEST).unlink()
    assert load() is None
    assert capsys.readouterr().err == ""  # as an installation from sources


KERNELS = """
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
from nclone_env.jit import shipped
shipped.FOLDER = Path(sys.argv[1])
if len(sys.argv) == 2:
    from shipped_kernels import total
    print(total(10), sum(total.stats.cache_hits.values()))
else:
    shipped.write_manifest(shipped.FOLDER, [shipped.target().processor])
"""


@pytest.mark.skipif(bool(config.DISABLE_JIT), reason="needs compiled kernels")
def test_a_process_runs_shipped_code_or_compiles_what_is_right(tmp_path):
    code, cached = tmp_path / "_code", tmp_path / "cache"
    code.mkdir()
    (tmp_path / "main.py").write_text(MAIN)
    paths = {"PYTHONPATH": f"{REPOSITORY}{os.pathsep}{tmp_path}", "PYTHONDONTWRITEBYTECODE": "1"}
    paths |= {"NUMBA_CPU_NAME": target().processor, "NUMBA_CPU_FEATURES": ""}

    def run(*arguments, factor=1, folder="none"):
        (tmp_path / "shipped_kernels.py").write_text(KERNELS.format(factor=factor))
        return run_module("main", str(code), *arguments, NCLONE_ENV_CACHE_DIR=str(tmp_path / folder), **paths)

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
