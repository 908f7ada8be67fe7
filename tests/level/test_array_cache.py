"""Arrays in files that all processes map: what is shared, verified, bounded, and survived."""

import multiprocessing
import os
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import numba
import numpy as np
import pytest

from nclone_env.errors import ConfigError
from nclone_env.jit import make_private
from nclone_env.level import array_cache
from nclone_env.level.array_cache import ArrayStore
from nclone_env.level.level_set import LEVEL_HEADER, RUN

LAYOUT = {
    "header": LEVEL_HEADER,
    "odd": np.dtype(np.uint8),
    "runs": RUN,
    "nothing": np.dtype(np.float32),
    "fields": np.dtype(np.float32),
}
MEGABYTE = 1_000_000


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of our own, with the counters at zero; it does not exist yet."""
    place = tmp_path / "levels"
    monkeypatch.setattr(array_cache, "folder", lambda: place)
    monkeypatch.setattr(array_cache, "counts", array_cache.CacheCounts())
    monkeypatch.delenv(array_cache.LIMIT_VARIABLE, raising=False)
    return place


def some_arrays(seed: int = 0, size: int = 1000) -> array_cache.Arrays:
    rng = np.random.default_rng(seed)
    header = np.zeros(3, LEVEL_HEADER)
    header["spawn_x"], header["first_run"] = rng.random(3), rng.integers(0, 99, 3)
    return {
        "header": header,
        "odd": rng.integers(0, 256, (7, 1, 3), np.uint8),
        "runs": np.array([(1, 2, 3, 4), (5, 6, 7, 8)], RUN),
        "nothing": np.zeros((0, 51, 89), np.float32),
        "fields": rng.random(size, np.float32),
    }


def ask(content: str = "one", size: int = 1000, make=some_arrays) -> array_cache.Arrays:
    return array_cache.cached_arrays("things", content, LAYOUT, lambda: make(size=size))


def never(size: int):
    raise AssertionError("the arrays were made although there is a file")


def contents(arrays: array_cache.Arrays) -> dict[str, tuple]:
    return {name: (array.dtype, array.shape, array.tobytes()) for name, array in arrays.items()}


def only_file(folder: Path) -> Path:
    (path,) = folder.iterdir()
    return path


def test_what_is_stored_is_found(folder):
    made, found = ask(), ask(make=never)
    assert contents(made) == contents(found) == contents(some_arrays())
    assert array_cache.counts == array_cache.CacheCounts(file_hits=1, misses=1)
    assert only_file(folder).name.startswith("things-")
    assert [path for path, _ in array_cache.files()] == [only_file(folder)]


def test_compiled_code_cannot_tell_mapped_arrays_from_others(folder, monkeypatch):
    mapped = ask()
    monkeypatch.setenv(array_cache.LIMIT_VARIABLE, "0")
    plain = ask()
    for name in LAYOUT:
        assert numba.typeof(mapped[name]) == numba.typeof(plain[name])
        assert mapped[name].flags.aligned
        assert not mapped[name].flags.writeable
        assert not plain[name].flags.writeable
        assert mapped[name].ctypes.data % 64 == 0
    with pytest.raises(ValueError, match="cannot set WRITEABLE"):
        mapped["odd"].flags.writeable = True


def test_other_contents_have_another_file(folder):
    ask("one")
    ask("two", make=lambda size: some_arrays(seed=1))
    assert contents(ask("two", make=never)) == contents(some_arrays(seed=1))
    assert len(array_cache.files()) == 2


@pytest.mark.parametrize("name", ["VERSION", "module_digest"])
def test_files_of_other_versions_are_not_used(folder, monkeypatch, name):
    ask()
    monkeypatch.setattr(array_cache, name, 0 if name == "VERSION" else lambda module: "f" * 16)
    made = contents(ask(make=lambda size: some_arrays(seed=1)))
    assert made == contents(some_arrays(seed=1))
    assert array_cache.counts == array_cache.CacheCounts(misses=2)


def cut(length):
    return lambda data: data[:length]


def flipped(place):
    return lambda data: data[:place] + bytes([data[place] ^ 16]) + data[place + 1 :]


DAMAGE = {
    "empty": cut(0),
    "cut in the header": cut(40),
    "cut after the header": cut(64),
    "cut by a byte": cut(-1),
    "too long": lambda data: data + b"\0",
    "magic": flipped(0),
    "version": flipped(8),
    "checksum": flipped(12),
    "length": flipped(16),
    "key": flipped(40),
    "description": flipped(70),
    "middle": flipped(1500),
    "last byte": lambda data: data[:-1] + bytes([data[-1] ^ 1]),
    "zeros": lambda data: bytes(len(data)),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_damaged_files_are_replaced(folder, damage):
    ask()
    path = only_file(folder)
    right = path.read_bytes()
    path.unlink()  # a file is never written in place: this process still maps the old one
    path.write_bytes(damage(right))
    assert contents(ask()) == contents(some_arrays())
    assert array_cache.counts == array_cache.CacheCounts(misses=2, damaged=1)
    assert only_file(folder).read_bytes() == right
    ask(make=never)


def test_a_file_under_the_name_of_another_is_not_used(folder):
    ask("one")
    first = only_file(folder)
    ask("two", make=lambda size: some_arrays(seed=1))
    (second,) = set(folder.iterdir()) - {first}
    os.replace(second, first)
    assert contents(ask("one")) == contents(some_arrays())
    assert array_cache.counts.damaged == 1


def test_a_folder_that_cannot_be_written_is_no_error(folder):
    folder.write_text("a file where the folder should be")
    for _ in range(2):
        assert contents(ask()) == contents(some_arrays())
    assert array_cache.counts == array_cache.CacheCounts(misses=2)
    assert array_cache.files() == []
    assert array_cache.clear_cache() == 0


def test_a_full_disk_leaves_nothing_behind(folder, monkeypatch):
    def fail(temporary, path):
        assert temporary.exists()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(array_cache, "_link", fail)
    assert contents(ask()) == contents(some_arrays())
    assert list(folder.iterdir()) == []


def test_without_links_the_file_is_renamed(folder, monkeypatch):
    def refuse(*_):
        raise PermissionError("no links here")

    monkeypatch.setattr(os, "link", refuse)
    ask()
    ask(make=never)
    assert len(list(folder.iterdir())) == 1


def test_the_total_is_bounded_and_the_last_used_stay(folder, monkeypatch):
    monkeypatch.setenv(array_cache.LIMIT_VARIABLE, "1")
    names = {}
    for number, content in enumerate("abc"):
        before = set(folder.iterdir()) if folder.exists() else set()
        ask(content, size=75_000)  # 0.3 MB
        (names[content],) = set(folder.iterdir()) - before
        os.utime(names[content], (number, number))
    ask("a", make=never)
    ask("d", size=75_000)
    left = {path for path, _ in array_cache.files()}
    assert names["a"] in left
    assert names["b"] not in left
    assert names["c"] in left
    assert len(left) == 3
    assert sum(status.st_size for _, status in array_cache.files()) <= MEGABYTE


def test_the_number_of_files_is_bounded(folder, monkeypatch):
    monkeypatch.setattr(array_cache, "MAX_FILES", 2)
    for content in "abc":
        ask(content)
        for path, status in array_cache.files():
            os.utime(path, ns=(0, status.st_mtime_ns - 10**9))
    assert len(array_cache.files()) == 2
    ask("b", make=never)
    ask("c", make=never)


@pytest.mark.parametrize(("limit", "size"), [("0", 10), ("1", 300_000)])
def test_what_does_not_fit_stays_in_memory(folder, monkeypatch, limit, size):
    monkeypatch.setenv(array_cache.LIMIT_VARIABLE, limit)
    assert contents(ask(size=size)) == contents(some_arrays(size=size))
    assert array_cache.files() == []


@pytest.mark.parametrize("text", ["-1", "1.5", "lots", "²"])
def test_a_limit_that_is_no_number(folder, monkeypatch, text):
    monkeypatch.setenv(array_cache.LIMIT_VARIABLE, text)
    with pytest.raises(ConfigError, match=f"NCLONE_ENV_LEVEL_CACHE_MB: expected a whole number of MB, got '{text}'"):
        ask()


def test_what_killed_writers_left_is_removed(folder):
    make_private(folder)
    left, foreign = folder / f".nclone_env-0123abcd.things{array_cache.SUFFIX}", folder / "notes.txt"
    for path in (left, foreign):
        path.write_bytes(b"half of")
    ask()
    assert not left.exists()
    assert foreign.exists()
    assert len(array_cache.files()) == 1


def test_a_folder_that_others_can_write_is_not_used(folder):
    ask()
    folder.chmod(0o777)
    assert contents(ask()) == contents(some_arrays())
    assert array_cache.counts == array_cache.CacheCounts(misses=2)


def test_removed_files_stay_whole_for_those_who_map_them(folder):
    arrays = ask(size=100_000)
    assert array_cache.clear_cache() == 1
    assert array_cache.files() == []
    assert contents(arrays) == contents(some_arrays(size=100_000))


def write_at_once(folder, everybody, answers):
    """Ask for the arrays in a process that makes them while all others do too."""
    array_cache.folder = lambda: Path(folder)

    def make(size):
        everybody.wait(60)
        return some_arrays(size=size)

    arrays = ask(size=50_000, make=make)
    everybody.wait(60)
    maps = Path("/proc/self/maps").read_text().splitlines()
    files = {line.split()[4] for line in maps if line.endswith(array_cache.SUFFIX)}
    answers.put((contents(arrays) == contents(some_arrays(size=50_000)), sorted(files), array_cache.counts))


def test_of_several_writers_at_once_all_map_the_same_file(folder):
    context = multiprocessing.get_context("spawn")
    everybody, answers = context.Barrier(4), context.Queue()
    writers = [context.Process(target=write_at_once, args=(str(folder), everybody, answers)) for _ in range(4)]
    for writer in writers:
        writer.start()
    rows = [answers.get(timeout=60) for _ in writers]
    for writer in writers:
        writer.join()
    assert all(right for right, _, _ in rows)
    assert [counts for _, _, counts in rows] == [array_cache.CacheCounts(misses=1)] * 4
    assert {tuple(files) for _, files, _ in rows} == {(str(only_file(folder).stat().st_ino),)}
    ask(size=50_000, make=never)


MAKER = "nclone_env.level.compile"
SMALL = {"a": np.arange(9, dtype=np.uint8), "b": np.zeros(0, np.uint8), "c": np.arange(300).astype(np.uint8)}


def write_rows(name="things", inputs=SMALL):
    with closing(ArrayStore(name, MAKER, np.uint8)) as store:
        for digest, each in inputs.items():
            store.write(digest, each)
        return same(store.read(inputs), inputs)


def read_rows(name="things", digests="abc"):
    with closing(ArrayStore(name, MAKER, np.uint8)) as store:
        return store.read(digests)


def same(found, inputs):
    return found.keys() == inputs.keys() and all(np.array_equal(found[digest], inputs[digest]) for digest in inputs)


def test_small_arrays_are_read_by_level_and_name(folder):
    assert read_rows() == {}
    assert write_rows()
    assert same(read_rows(), SMALL)
    assert same(read_rows(digests="xca"), {digest: SMALL[digest] for digest in "ac"})
    assert read_rows("others") == {}, "the negative control"


@pytest.mark.parametrize("size", [0, 100, 3000])
def test_a_damaged_database_is_replaced(folder, size):
    write_rows()
    file = folder / array_cache.DATABASE
    file.write_bytes(file.read_bytes()[:size].ljust(8192, b"\x55"))
    assert read_rows() == {}
    assert write_rows()
    assert same(read_rows(), SMALL)


def test_a_damaged_row_counts_as_missing(folder):
    write_rows()
    with closing(sqlite3.connect(folder / array_cache.DATABASE)) as rows, rows:
        rows.execute("UPDATE arrays SET data = x'789c00' WHERE length(data) > 100")
    assert same(read_rows(), {digest: SMALL[digest] for digest in "ab"})


def test_several_threads_write_at_once(folder):
    with ThreadPoolExecutor(8) as executor:
        assert all(executor.map(lambda number: write_rows(inputs={f"{number}": SMALL["c"]}), range(40)))
    assert len(read_rows(digests=map(str, range(50)))) == 40


@pytest.mark.parametrize("reason", ["limit", "foreign", "no folder"])
def test_without_a_folder_they_stay_in_memory(folder, monkeypatch, reason):
    if reason == "limit":
        monkeypatch.setenv(array_cache.LIMIT_VARIABLE, "0")
    elif reason == "foreign":
        folder.mkdir(parents=True)
        folder.chmod(0o777)
    else:
        folder.write_bytes(b"a file")
    assert write_rows()
    assert read_rows() == {}
    assert not (folder / array_cache.DATABASE).exists()


def test_a_database_that_can_only_be_read_is_read(folder, monkeypatch):
    write_rows()
    connect = sqlite3.connect
    monkeypatch.setattr(
        sqlite3, "connect", lambda place, **options: connect(f"file:{place}?mode=ro", uri=True, **options)
    )
    write_rows(inputs={"d": SMALL["c"]})
    assert same(read_rows(digests="abcd"), SMALL), "nothing was written, and nothing raised"


def test_a_database_that_cannot_be_opened_is_left_alone(folder):
    (folder / array_cache.DATABASE).mkdir(parents=True)
    assert write_rows()
    assert (folder / array_cache.DATABASE).is_dir()


def test_the_oldest_small_arrays_go_beyond_the_limit(folder, monkeypatch):
    monkeypatch.setattr(array_cache, "_MAX_ROWS", 2)
    write_rows()
    assert same(read_rows(), {digest: SMALL[digest] for digest in "bc"})
