"""Results of searches on disk, by level."""

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import numpy as np
import pytest

from nclone_env.level import array_cache
from nclone_env.train.levels import solution_store
from nclone_env.train.levels.solution_store import SolutionStore

INPUTS = {"a": np.arange(9, dtype=np.uint8), "b": np.zeros(0, np.uint8), "c": np.arange(300).astype(np.uint8)}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    place = tmp_path / "cache" / "levels"
    monkeypatch.setattr(array_cache, "folder", lambda: place)
    monkeypatch.delenv(array_cache.LIMIT_VARIABLE, raising=False)
    return place


def write(name="search", inputs=INPUTS):
    with closing(SolutionStore(name)) as store:
        for digest, each in inputs.items():
            store.write(digest, each)
        return equal(store.read(inputs), inputs)


def read(name="search", digests="abc"):
    with closing(SolutionStore(name)) as store:
        return store.read(digests)


def equal(found, inputs):
    return found.keys() == inputs.keys() and all(np.array_equal(found[digest], inputs[digest]) for digest in inputs)


def test_what_was_written_is_read_by_level_and_search():
    assert read() == {}
    assert write()
    assert equal(read(), INPUTS)
    assert equal(read(digests="xca"), {digest: INPUTS[digest] for digest in "ac"})
    assert read("another search") == {}, "the negative control"


@pytest.mark.parametrize("size", [0, 100, 3000])
def test_a_damaged_database_is_replaced(folder, size):
    write()
    file = folder / "solutions.sqlite"
    file.write_bytes(file.read_bytes()[:size].ljust(8192, b"\x55"))
    assert read() == {}
    assert write()
    assert equal(read(), INPUTS)


def test_a_damaged_row_counts_as_missing(folder):
    write()
    with closing(sqlite3.connect(folder / "solutions.sqlite")) as rows, rows:
        rows.execute("UPDATE solutions SET inputs = x'789c00' WHERE length(inputs) > 100")
    assert equal(read(), {digest: INPUTS[digest] for digest in "ab"})


def test_several_at_once():
    with ThreadPoolExecutor(8) as executor:
        assert all(executor.map(lambda number: write(inputs={f"{number}": INPUTS["c"]}), range(40)))
    assert len(read(digests=map(str, range(50)))) == 40


@pytest.mark.parametrize("reason", ["limit", "foreign", "no folder"])
def test_without_a_folder_they_stay_in_memory(folder, monkeypatch, reason):
    if reason == "limit":
        monkeypatch.setenv(array_cache.LIMIT_VARIABLE, "0")
    elif reason == "foreign":
        folder.mkdir(parents=True)
        folder.chmod(0o777)
    else:
        folder.parent.mkdir()
        folder.write_bytes(b"a file")
    assert write()
    assert read() == {}
    assert not (folder / "solutions.sqlite").exists()


def test_a_database_that_cannot_be_opened_is_left_alone(folder):
    (folder / "solutions.sqlite").mkdir(parents=True)
    assert write()
    assert (folder / "solutions.sqlite").is_dir()


def test_the_oldest_go_beyond_the_limit(monkeypatch):
    monkeypatch.setattr(solution_store, "_MOST", 2)
    write()
    assert equal(read(), {digest: INPUTS[digest] for digest in "bc"})
