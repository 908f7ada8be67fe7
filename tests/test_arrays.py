"""Arrays in files that all processes map: what is shared, checked, bounded, and survived."""

import errno
import multiprocessing
import os
from pathlib import Path

import numba
import numpy as np
import pytest

from nclone_env import _arrays
from nclone_env._arrays import ArrayStore
from nclone_env._cache import make_private
from nclone_env._files import lock_descriptor
from nclone_env.errors import ConfigError
from nclone_env.level.compile import LEVEL_HEADER, RUN

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
    monkeypatch.setattr(_arrays, "folder", lambda: place)
    monkeypatch.setattr(_arrays, "counts", _arrays.CacheCounts())
    monkeypatch.delenv(_arrays.LIMIT_VARIABLE, raising=False)
    return place


def some_arrays(seed: int = 0, size: int = 1000) -> _arrays.Arrays:
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


def ask(content: str = "one", size: int = 1000, make=some_arrays) -> _arrays.Arrays:
    return _arrays.cached_arrays("things", content, LAYOUT, lambda: make(size=size))


def never(size: int):
    raise AssertionError("the arrays were made although there is a file")


def contents(arrays: _arrays.Arrays) -> dict[str, tuple]:
    return {name: (array.dtype, array.shape, array.tobytes()) for name, array in arrays.items()}


def only_file(folder: Path) -> Path:
    (path,) = folder.iterdir()
    return path


def test_what_is_stored_is_found(folder):
    made, found = ask(), ask(make=never)
    assert contents(made) == contents(found) == contents(some_arrays())
    assert _arrays.counts == _arrays.CacheCounts(file_hits=1, misses=1)
    assert only_file(folder).name.startswith("things-")
    assert [path for path, _ in _arrays.files()] == [only_file(folder)]


def test_compiled_code_cannot_tell_mapped_arrays_from_others(folder, monkeypatch):
    mapped = ask()
    monkeypatch.setenv(_arrays.LIMIT_VARIABLE, "0")
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
    assert len(_arrays.files()) == 2


@pytest.mark.parametrize("name", ["VERSION", "module_digest"])
def test_files_of_other_versions_are_not_used(folder, monkeypatch, name):
    ask()
    monkeypatch.setattr(_arrays, name, 0 if name == "VERSION" else lambda module: "f" * 16)
    made = contents(ask(make=lambda size: some_arrays(seed=1)))
    assert made == contents(some_arrays(seed=1))
    assert _arrays.counts == _arrays.CacheCounts(misses=2)


def cut(length):
    return lambda path: rewrite(path, path.read_bytes()[:length])


def rewrite(path: Path, data: bytes) -> None:
    path.unlink()  # a file is never written in place: this process still maps the old one
    path.write_bytes(data)


DAMAGE = {
    "missing": Path.unlink,
    "empty": cut(0),
    "cut in the header": cut(40),
    "cut after the header": cut(128),
    "cut by a byte": cut(-1),
    "zeros": lambda path: rewrite(path, bytes(path.stat().st_size)),
    "of another dtype": lambda path: np.save(path, np.zeros(1000, np.float64)),
    "of objects": lambda path: np.save(path, np.array([None]), allow_pickle=True),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_damaged_groups_are_replaced(folder, damage):
    ask()
    group = only_file(folder)
    right = {path.name: path.read_bytes() for path in group.iterdir()}
    damage(group / "fields.npy")
    assert contents(ask()) == contents(some_arrays())
    assert _arrays.counts == _arrays.CacheCounts(misses=2, damaged=1)
    assert {path.name: path.read_bytes() for path in only_file(folder).iterdir()} == right
    ask(make=never)


def test_a_folder_that_cannot_be_written_is_no_error(folder):
    folder.write_text("a file where the folder should be")
    for _ in range(2):
        assert contents(ask()) == contents(some_arrays())
    assert _arrays.counts == _arrays.CacheCounts(misses=2)
    assert _arrays.files() == []
    assert _arrays.clear_cache() == 0


def test_a_full_disk_leaves_nothing_behind(folder, monkeypatch):
    def fail(path, *_, **__):
        path.write_bytes(b"a part")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(np, "save", fail)
    assert contents(ask()) == contents(some_arrays())
    assert list(folder.iterdir()) == []


def test_the_total_is_bounded_and_the_last_used_stay(folder, monkeypatch):
    monkeypatch.setenv(_arrays.LIMIT_VARIABLE, "1")
    names = {}
    for number, content in enumerate("abc"):
        before = set(folder.iterdir()) if folder.exists() else set()
        ask(content, size=75_000)  # 0.3 MB
        (names[content],) = set(folder.iterdir()) - before
        os.utime(names[content], (number, number))
    ask("a", make=never)
    ask("d", size=75_000)
    left = {path for path, _ in _arrays.files()}
    assert names["a"] in left
    assert names["b"] not in left
    assert names["c"] in left
    assert len(left) == 3
    assert sum(size for _, size in _arrays.files()) <= MEGABYTE


def test_the_number_of_files_is_bounded(folder, monkeypatch):
    monkeypatch.setattr(_arrays, "MAX_GROUPS", 2)
    for content in "abc":
        ask(content)
        for path, _ in _arrays.files():
            os.utime(path, ns=(0, path.stat().st_mtime_ns - 10**9))
    assert len(_arrays.files()) == 2
    ask("b", make=never)
    ask("c", make=never)


@pytest.mark.parametrize(("limit", "size"), [("0", 10), ("1", 300_000), ('"0"\r', 10)])
def test_what_does_not_fit_stays_in_memory(folder, monkeypatch, limit, size):
    monkeypatch.setenv(_arrays.LIMIT_VARIABLE, limit)
    assert contents(ask(size=size)) == contents(some_arrays(size=size))
    assert _arrays.files() == []


@pytest.mark.parametrize("text", ["-1", "1.5", "lots", "²"])
def test_a_limit_that_is_no_number(folder, monkeypatch, text):
    monkeypatch.setenv(_arrays.LIMIT_VARIABLE, text)
    with pytest.raises(ConfigError, match=f"NCLONE_ENV_LEVEL_CACHE_MB: expected a whole number of MB, got '{text}'"):
        ask()


def test_what_killed_writers_left_is_removed(folder):
    make_private(folder)
    left, foreign = folder / ".nclone_env-0123abcd.things", folder / "notes.txt"
    left.mkdir()
    for path in (left / "odd.npy", foreign):
        path.write_bytes(b"half of")
    ask()
    assert not left.exists()
    assert foreign.exists()


def test_a_folder_that_others_can_write_is_not_used(folder):
    ask()
    folder.chmod(0o777)
    assert contents(ask()) == contents(some_arrays())
    assert _arrays.counts == _arrays.CacheCounts(misses=2)


def test_removed_files_stay_whole_for_those_who_map_them(folder):
    arrays = ask(size=100_000)
    assert _arrays.clear_cache() == 1
    assert _arrays.files() == []
    assert contents(arrays) == contents(some_arrays(size=100_000))


def write_at_once(folder, rows, number, everybody, answers):
    """Ask for the arrays in a process that makes them while all others do too, and write rows as they do."""
    _arrays.folder = lambda: folder

    def make(size):
        everybody.wait(60)
        return some_arrays(size=size)

    arrays = ask(size=50_000, make=make)
    everybody.wait(60)
    maps = Path("/proc/self/maps").read_text().splitlines()
    files = {line.split()[4] for line in maps if line.endswith("fields.npy")}
    answers.put((contents(arrays) == contents(some_arrays(size=50_000)), sorted(files), _arrays.counts))
    _arrays.folder = lambda: rows
    everybody.wait(60)
    write_rows({f"{number}-{row}": SMALL["c"] for row in range(200)})


def test_of_several_writers_at_once_all_map_the_same_file_and_no_row_is_lost(folder, tmp_path, monkeypatch):
    context = multiprocessing.get_context("spawn")
    everybody, answers = context.Barrier(2), context.Queue()
    shared = folder, tmp_path / "rows"
    writers = [context.Process(target=write_at_once, args=(*shared, number, everybody, answers)) for number in range(2)]
    for writer in writers:
        writer.start()
    rows = [answers.get(timeout=60) for _ in writers]
    for writer in writers:
        writer.join()
    assert all(right for right, _, _ in rows)
    assert [counts for _, _, counts in rows] == [_arrays.CacheCounts(misses=1)] * 2
    assert {tuple(files) for _, files, _ in rows} == {(str((only_file(folder) / "fields.npy").stat().st_ino),)}
    ask(size=50_000, make=never)
    monkeypatch.setattr(_arrays, "folder", lambda: tmp_path / "rows")
    assert len(store().read(f"{number}-{row}" for number in range(2) for row in range(200))) == 400


MAKER = "nclone_env.level.compile"
SMALL = {"a": np.arange(9, dtype=np.uint8), "b": np.zeros(0, np.uint8), "c": np.arange(300).astype(np.uint8)}


def store(name="things") -> ArrayStore:
    return ArrayStore(name, MAKER, np.uint8)


def write_rows(inputs=SMALL):
    for digest, each in inputs.items():
        store().write(digest, each)


def same(found, inputs):
    return found.keys() == inputs.keys() and all(np.array_equal(found[digest], inputs[digest]) for digest in inputs)


def test_small_arrays_are_read_by_level_and_name(folder):
    assert store().read("abc") == {}
    write_rows()
    assert same(store().read("xabc"), SMALL)
    assert store("others").read("abc") == {}, "the negative control"


def test_what_is_written_again_counts_last(folder):
    write_rows()
    write_rows({"a": SMALL["c"]})
    assert same(store().read("abc"), SMALL | {"a": SMALL["c"]})


@pytest.mark.parametrize("length", [0, 10, 40, -1])
def test_rows_before_and_after_a_damaged_one_are_read(folder, length):
    write_rows()
    file = only_file(folder)
    file.write_bytes(file.read_bytes()[:length])
    before = store().read("abc")
    assert before.keys() < SMALL.keys()
    write_rows({"d": SMALL["c"]})
    assert same(store().read("abcd"), before | {"d": SMALL["c"]})


def test_changed_bytes_count_as_missing(folder):
    write_rows()
    file = only_file(folder)
    lines = file.read_bytes().splitlines()
    lines[-1] = lines[-1][:-9] + b"AAAA" + lines[-1][-5:]
    file.write_bytes(b"\n".join(lines))
    assert same(store().read("abc"), {digest: SMALL[digest] for digest in "ab"})


@pytest.mark.parametrize("reason", ["limit", "foreign", "no folder", "read-only"])
def test_without_a_folder_that_can_be_written_nothing_is_kept(folder, monkeypatch, reason):
    if reason == "limit":
        monkeypatch.setenv(_arrays.LIMIT_VARIABLE, "0")
    elif reason == "foreign":
        folder.mkdir(parents=True)
        folder.chmod(0o777)
    elif reason == "no folder":
        folder.write_bytes(b"a file")
    else:
        monkeypatch.setattr(Path, "open", refuse)
    write_rows()
    assert store().read("abc") == {}


def refuse(*_, **__):
    raise OSError(errno.EROFS, "Read-only file system")


def test_a_store_waits_for_nothing(folder):
    """Neither for another process that has locked the file, nor for one behind a pipe of its name."""
    write_rows()
    (path,) = folder.glob("things-*")
    with path.open("rb") as locked:
        assert lock_descriptor(locked.fileno())
        assert same(store().read(SMALL), SMALL)
        store().write("other", SMALL["c"])
        assert same(store().read(["other"]), {"other": SMALL["c"]})
    path.unlink()
    os.mkfifo(path)
    assert store().read(SMALL) == {}


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("part", ["", "header.npy", "fields.npy"])
def test_arrays_that_others_put_there_are_made_again(folder, part):
    """Also after the folder was closed to them."""
    arrays = contents(ask())
    (group,) = folder.iterdir()
    assert contents(ask(make=never)) == arrays
    os.chown(group / part, 54321, -1)
    assert contents(ask()) == arrays
    assert contents(ask(make=never)) == arrays, "they were replaced"
    (group / part).chmod(0o777)
    assert contents(ask()) == arrays
    assert (_arrays.counts.misses, _arrays.counts.damaged) == (3, 2)


def test_lines_that_others_could_write_are_dropped(folder):
    before = os.umask(0)
    try:
        store = ArrayStore("things", "nclone_env.plan", np.uint8)
        store.write("one", np.arange(3, dtype=np.uint8))
    finally:
        os.umask(before)
    assert store.read(["one"])["one"].tolist() == [0, 1, 2]
    (path,) = folder.iterdir()
    assert path.stat().st_mode & 0o022 == 0
    path.chmod(0o666)
    assert store.read(["one"]) == {}
    store.write("two", np.arange(2, dtype=np.uint8))
    assert store.read(["one", "two"]).keys() == {"two"}
