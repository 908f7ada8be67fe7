"""Shards and their journals: whatever a killed process leaves, the next one completes it."""

import json
import zlib
from dataclasses import dataclass, field
from functools import partial

import pytest

from nclone_env.errors import ConfigError
from nclone_env.jobs import Job, Shard, merge, run
from nclone_env.jobs import job as job_module


def result(number):
    return {"number": number, "data": bytes([number]) * 3}


@dataclass(frozen=True)
class Counting(Job):
    """A job without levels."""

    count: int = 7
    read: str = field(default="none", compare=False)

    @property
    def total(self):
        return self.count

    @property
    def digest(self):
        return self.read

    def task(self, number):
        return partial(result, number)

    def write(self, output, results):
        output.write_text(repr(list(results)))


@pytest.fixture(autouse=True)
def known(monkeypatch):
    monkeypatch.setattr(job_module, "import_module", lambda name: __import__("tests.jobs.test_shard", fromlist="x"))


@pytest.mark.parametrize("count", [1, 2, 3, 7, 9])
def test_shards_are_joined_to_what_one_process_makes(tmp_path, count):
    run(Counting(), tmp_path / "one")
    for number in reversed(range(1, count + 1)):
        assert run(Counting(), tmp_path / str(number % 2), shard=Shard(number, count))
    merge([folder for folder in (tmp_path / "0", tmp_path / "1") if folder.exists()], tmp_path / "joined")
    assert (tmp_path / "joined").read_bytes() == (tmp_path / "one").read_bytes()


def test_a_journal_cut_anywhere_is_completed_and_no_result_is_computed_twice(tmp_path):
    job, shard, path = Counting(), Shard(2, 2), tmp_path / "shard-2-of-2.journal"
    run(job, tmp_path, shard=shard)
    whole = path.read_bytes()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        made = []
        assert run(job, tmp_path, shard=shard, on_result=made.append)
        assert path.read_bytes() == whole
        assert len(made) == min(4, 5 - whole[:size].count(b"\n"))


def test_a_damaged_line_is_done_again_and_never_joined(tmp_path):
    path = tmp_path / "shard-1-of-1.journal"
    run(Counting(), tmp_path, shard=Shard(1, 1))
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b'"number": 3', b'"number": 4'))
    with pytest.raises(ConfigError, match="expected 7 results, got 3 whole ones; start the shard again"):
        merge([tmp_path], tmp_path / "joined")
    assert not (tmp_path / "joined").exists()
    assert run(Counting(), tmp_path, shard=Shard(1, 1))
    assert path.read_bytes() == whole


def test_a_stop_leaves_the_rest_to_the_next_call(tmp_path):
    made = []
    arguments = Counting(), tmp_path, None, made.append
    assert not run(*arguments, shard=Shard(1, 1), stop=lambda: len(made) == 3)
    assert run(*arguments, shard=Shard(1, 1))
    assert made == [result(number) for number in range(7)]


def test_what_does_not_belong_together_is_not_joined(tmp_path):
    a, b = tmp_path / "a", tmp_path / "b"
    run(Counting(), a, shard=Shard(1, 2))
    with pytest.raises(ConfigError, match=r"folders: expected all 2 shards of one job, got no shard-2-of-2\.journal"):
        merge([a], tmp_path / "joined")
    run(Counting(8), b, shard=Shard(2, 2))
    with pytest.raises(ConfigError, match="folders: expected shards of one job, got others in"):
        merge([a, b], tmp_path / "joined")
    with pytest.raises(ConfigError, match="folders: expected each shard once, got"):
        merge([a, a], tmp_path / "joined")
    run(Counting(), a, shard=Shard(2, 3))
    with pytest.raises(ConfigError, match=r"folders: expected all 2 shards of one job, got no shard-2-of-2"):
        merge([a], tmp_path / "joined")
    with pytest.raises(ConfigError, match="folders: expected journals of --shard, got none in"):
        merge([tmp_path], tmp_path / "joined")
    assert not (tmp_path / "joined").exists()


def test_changed_levels_are_not_joined_with_old_results(tmp_path, monkeypatch):
    run(Counting(), tmp_path, shard=Shard(1, 1))
    monkeypatch.setattr(Counting, "from_arguments", lambda arguments: Counting(read="changed", **arguments))
    with pytest.raises(ConfigError, match="folders: expected the levels and the version of the package that its"):
        merge([tmp_path], tmp_path / "joined")


def test_a_journal_of_another_job_or_another_file_is_kept(tmp_path):
    path = tmp_path / "shard-1-of-1.journal"
    run(Counting(), tmp_path, shard=Shard(1, 1))
    whole = path.read_bytes()
    for job in (Counting(8), Counting(read="other")):
        with pytest.raises(ConfigError, match="expected the journal of the same levels, options and version, got"):
            run(job, tmp_path, shard=Shard(1, 1))
    assert path.read_bytes() == whole
    path.write_text("mine\n")
    with pytest.raises(ConfigError, match="expected the journal of a shard, got another file; name another folder"):
        run(Counting(), tmp_path, shard=Shard(1, 1))
    assert path.read_text() == "mine\n"


def test_two_processes_never_write_to_one_journal(tmp_path):
    seen = []

    def second(_):
        with pytest.raises(ConfigError, match="another process works on this shard; wait for it") as error:
            run(Counting(), tmp_path, shard=Shard(1, 1))
        seen.append(error)

    assert run(Counting(), tmp_path, shard=Shard(1, 1), on_result=second)
    assert len(seen) == 7


@pytest.mark.parametrize("text", ["0/4", "5/4", "1", "1/0", "a/b", "1/4/2", "-1/4"])
def test_shards_that_are_none(text):
    with pytest.raises(ConfigError, match="shard: expected I/N with I from 1 to N, such as 1/4, got"):
        Shard.of(text)
    assert Shard.of("2/4") == Shard(2, 4)


def test_the_journals_of_no_job_are_refused(tmp_path):
    run(Counting(), tmp_path, shard=Shard(1, 1))
    (path,) = tmp_path.iterdir()
    _, *rest = path.read_bytes().splitlines(keepends=True)
    for name in ("Shard", "Job", "none"):
        header = json.dumps({"job": name, "arguments": {}, "total": 7}).encode()
        path.write_bytes(b"%08x %s\n" % (zlib.crc32(header), header) + b"".join(rest))
        with pytest.raises(ConfigError, match=f"folders: expected shards of a job, got those of '{name}'"):
            merge([tmp_path], tmp_path / "joined")
