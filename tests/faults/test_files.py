"""Temporary files: whose they are, when they are removed, and what errors say."""

import errno
import os
import random
import signal
import time
from pathlib import Path

import numpy as np
import pytest

from nclone_env import _arrays, _files
from nclone_env._files import fill_file, naming, remove_temporaries, temporary_beside, write_file

from ..processes import REPOSITORY
from .scenes import SCENES

LAYOUT = {"numbers": np.dtype(np.int64)}


@pytest.fixture
def new_process(monkeypatch):
    """What a process remembers of folders is forgotten."""
    _files.remove_temporaries_once.cache_clear()
    yield
    _files.remove_temporaries_once.cache_clear()


def test_the_page_has_a_row_for_each_kind_of_file():
    text = (REPOSITORY / "docs" / "operation" / "security.md").read_text()
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line[:1] == "|"]
    first = next(number for number, row in enumerate(cells) if row[0] == "kind of file") + 2
    rows, total = cells[first : first + len(SCENES)], cells[first + len(SCENES)]
    assert [row[0] for row in rows] == [scene.name for scene in SCENES]
    assert total == ["all", *(str(sum(map(int, column))) for column in list(zip(*rows))[1:])]


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.usefixtures("new_process")
def test_what_dead_processes_left_is_removed_by_the_next_write(tmp_path):
    (tmp_path / ".nclone_env-0123abcd.run.mp4").write_text("half")
    (tmp_path / ".nclone_env-0123abcd.pack-recordings").mkdir()
    (tmp_path / ".nclone_env-0123abcd.pack-recordings" / "a").write_text("half")
    others = [".nclone_env", ".1-0123abcd.run.mp4", "nclone_env-x"]
    for name in others:
        (tmp_path / name).write_text("mine")
    write_file(tmp_path / "new", b"")
    assert names(tmp_path) == sorted([*others, "new"])


@pytest.mark.parametrize("folder", [False, True])
def test_what_is_being_written_is_left_alone(tmp_path, folder):
    with temporary_beside(tmp_path / "a", folder) as temporary:
        remove_temporaries(tmp_path)
        assert temporary.exists()
        child = os.fork()
        if child == 0:
            remove_temporaries(tmp_path)
            os._exit(0)
        os.waitpid(child, 0)
        assert temporary.exists()
    assert names(tmp_path) == []


def test_a_file_taken_for_abandoned_before_it_was_locked_is_made_again(tmp_path, monkeypatch):
    taken = []

    def lock(descriptor, real=_files.lock_descriptor):
        if not taken:
            taken.extend(tmp_path.iterdir())
            remove_temporaries(tmp_path)
        return real(descriptor)

    monkeypatch.setattr(_files, "lock_descriptor", lock)
    write_file(tmp_path / "a", b"x")
    assert len(taken) == 1
    assert names(tmp_path) == ["a"]


def test_names_may_be_as_long_as_the_system_allows(tmp_path):
    for name in ("x" * 251 + ".txt", "ä" * 125 + ".txt"):
        write_file(tmp_path / name, b"")
        fill_file(tmp_path / name, lambda temporary: temporary.with_suffix(".txt").write_text("suffix"))
        assert (tmp_path / name).read_text() == "suffix"


def test_errors_name_the_file_and_not_its_temporary_one(tmp_path):
    missing = tmp_path / "missing" / "a"
    with pytest.raises(FileNotFoundError) as error:
        write_file(missing, b"")
    assert error.value.filename == str(missing)
    with pytest.raises(OSError, match="ends early") as error, naming(missing):
        raise OSError("the writer ends early")
    assert (error.value.errno, error.value.filename) == (errno.EIO, str(missing))
    with pytest.raises(OSError, match="full") as error, naming(missing):
        raise OSError(errno.ENOSPC, "full", "source", None, str(tmp_path / ".nclone_env-0123abcd.a"))
    assert (error.value.filename, error.value.filename2) == (str(missing), None)
    with pytest.raises(PermissionError) as error, naming(missing):
        raise PermissionError(errno.EACCES, "no", "other")
    assert error.value.filename == "other"


def use_library(number, seed):
    """Ask for arrays again and again, and end with 1 if one is wrong."""
    dice, damaged = random.Random(seed), _arrays.counts.damaged
    while True:
        size = dice.randrange(1, 6) * 30_000
        found = _arrays.cached_arrays(
            "killed", f"{size}", LAYOUT, lambda size=size: {"numbers": np.full(size, size, np.int64)}
        )
        if len(found["numbers"]) != size or not (found["numbers"] == size).all() or _arrays.counts.damaged > damaged:
            os._exit(1)


def library_under_kills(kills, seed):
    """Kill readers and writers of the library at random times; return the codes of their exits."""
    dice, codes, running = random.Random(seed), [], []
    while len(codes) < kills:
        while len(running) < 3:
            child = os.fork()
            if child == 0:
                try:
                    use_library(len(codes), dice.random())
                finally:
                    os._exit(2)
            running.append(child)
        time.sleep(dice.uniform(0, 0.02))
        victim = running.pop(dice.randrange(3))
        os.kill(victim, signal.SIGKILL)
        codes.append(os.waitstatus_to_exitcode(os.waitpid(victim, 0)[1]))
    for child in running:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    return codes


@pytest.mark.parametrize("kills", [10, pytest.param(80, marks=pytest.mark.slow)])
def test_the_level_library_survives_kills_at_any_time(tmp_path, monkeypatch, new_process, kills):
    monkeypatch.setenv("NCLONE_ENV_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv(_arrays.LIMIT_VARIABLE, "2")  # files are written and removed all the time
    codes = library_under_kills(kills, seed=0)
    assert set(codes) == {-signal.SIGKILL}, "none has seen a wrong or a damaged array"
    _arrays.cached_arrays("last", "", LAYOUT, lambda: {"numbers": np.zeros(9)})
    assert not [name for name in names(tmp_path / "levels") if name.startswith(".")]
    assert sum(size for _, size in _arrays.files()) <= 2_000_000


@pytest.mark.usefixtures("new_process")
def test_a_clock_that_went_back_harms_no_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("NCLONE_ENV_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv(_arrays.LIMIT_VARIABLE, "1")
    later = time.time() + 86400 * 400
    for content in "abcdef":
        found = _arrays.cached_arrays("future", content, LAYOUT, lambda: {"numbers": np.arange(30_000)})
        assert (found["numbers"] == np.arange(30_000)).all()
        for path, _ in _arrays.files():
            os.utime(path, (later, later))
    assert sum(size for _, size in _arrays.files()) <= 1_000_000


@pytest.mark.parametrize("name", [".", "/"])
def test_a_folder_without_a_name_is_no_file(name):
    with pytest.raises(IsADirectoryError) as raised:
        write_file(Path(name), b"")
    assert raised.value.filename == name
