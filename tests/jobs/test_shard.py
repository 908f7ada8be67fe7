"""Shards and their journals: whatever a killed process leaves, the next one completes it."""

import json
import os
import warnings
import zlib
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Thread

import pytest

from nclone_env._files import claimed
from nclone_env._version import __version__
from nclone_env.errors import ConfigError, FormatError, LevelFormatError
from nclone_env.jobs import Evaluating, Generating, Job, Shard, Showing, Solving, Validating, merge, run
from nclone_env.jobs import job as job_module
from nclone_env.jobs import shard as shard_module
from nclone_env.jobs.shard import Merged
from nclone_env.jobs.solving import Row


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


def damages(whole):
    """Yield a journal with damaged lines, the lost numbers, and what is said of the lines."""
    first, *lines = whole.splitlines(keepends=True)
    other = [line.replace(b'"number"', b'"numbers"') for line in lines]
    for lost in ([3], [0], [0, 1, 5], list(range(6))):
        changed = [other[number] if number in lost else line for number, line in enumerate(lines)]
        rows = [str(number + 2) for number in lost]
        told = ", ".join(rows[:5]) + (" and 1 more" if len(rows) > 5 else "")
        yield first + b"".join(changed), lost, f"line {told} is" if len(lost) == 1 else f"lines {told} are"
    joined = [*lines[:2], lines[2][:-1] + lines[3], *lines[4:]]  # one line for two results
    yield first + b"".join(joined), [2, 3], "line 4 is"
    yield first + b"".join([*lines[:2], lines[2][:20] + b"\n" + lines[2][21:], *lines[3:]]), [2], "lines 4, 5 are"
    yield first + b"".join([*lines[:2], lines[4], *lines[3:]]), [2], ""  # no damage, but a copy of another one


def test_a_damaged_line_is_done_again_and_no_other_one(tmp_path):
    path = tmp_path / "shard-1-of-1.journal"
    run(Counting(), tmp_path, shard=Shard(1, 1))
    merge([tmp_path], tmp_path / "whole")
    for data, lost, said in damages(path.read_bytes()):
        path.write_bytes(data)
        got = f"got {7 - len(lost)} whole ones{f', {said} damaged' if said else ''}; start the shard again"
        with pytest.raises(ConfigError, match=f"expected 7 results, {got}"):
            merge([tmp_path], tmp_path / "joined")
        assert not (tmp_path / "joined").exists()
        made = []
        with warnings.catch_warnings(record=True) as told:
            assert run(Counting(), tmp_path, shard=Shard(1, 1), on_result=made.append)
        expected = [f"{path}: {said} damaged and left out; what is missing is computed again"] if said else []
        assert [str(each.message) for each in told] == expected
        assert made == [result(number) for number in lost]
        assert path.read_bytes().startswith(data), "nothing is written again"
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert run(Counting(), tmp_path, shard=Shard(1, 1), on_result=lambda _: pytest.fail("it was complete"))
        merge([tmp_path], tmp_path / "joined")
        assert (tmp_path / "joined").read_bytes() == (tmp_path / "whole").read_bytes()
        (tmp_path / "joined").unlink()


def test_damaged_lines_at_the_end_are_cut(tmp_path):
    path = tmp_path / "shard-1-of-1.journal"
    run(Counting(), tmp_path, shard=Shard(1, 1))
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b'"number": 6', b'"number": 7') + line([7, 0]) + b"a part")
    with pytest.warns(RuntimeWarning, match="lines 8, 9 are damaged and left out; what is missing is computed again"):
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
    with pytest.raises(ConfigError, match=r"expected journals of --shard, got none in .*; name the folders in it"):
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
    head = whole[: whole.index(b"\n")]
    for mine in (b"mine\n", b"mine", b"\n", b"\0" * 40, b"m" + head[1:], head + b" ", head[:-1] + b"\n" + whole):
        path.write_bytes(mine)
        with pytest.raises(ConfigError, match="expected the journal of a shard, got another file; name another folder"):
            run(Counting(), tmp_path, shard=Shard(1, 1))
        assert path.read_bytes() == mine


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


def line(value):
    text = value if isinstance(value, bytes) else json.dumps(value).encode()
    return b"%08x %s\n" % (zlib.crc32(text), text)


FORGED = [
    *({"job": name} for name in ("Shard", "Job", "none", "run", "", None, ["x"], 7)),
    *({"total": total} for total in ("7", 0, -1, 6, 7.0, True, None, 10**300)),
    *({"arguments": each} for each in (5, [], None, {"count": "x"}, {"other": 1}, {"count": [7]}, {"count": 10**30})),
    *({"version": each} for each in ([], "0", None)),
    {"levels": "other"},
    {"more": 1},
]


@pytest.mark.parametrize("change", FORGED, ids=str)
def test_a_forged_header_is_refused_in_one_line(tmp_path, change):
    run(Counting(), tmp_path, shard=Shard(1, 1))
    (path,) = tmp_path.iterdir()
    first, *rest = path.read_bytes().splitlines(keepends=True)
    header = json.loads(first[9:])
    path.write_bytes(line(header) + b"".join(rest))
    merge([tmp_path], tmp_path / "joined")
    path.write_bytes(line(header | change) + b"".join(rest))
    with pytest.raises(
        (ConfigError, FormatError), match=r"expected .*, got .*; start the shards? again|shards of a job"
    ):
        merge([tmp_path], tmp_path / "forged")
    assert not (tmp_path / "forged").exists()


RESULTS = {
    Counting: {"number": 1, "data": b"x"},
    Solving: {"row": vars(Row("a")), "files": {"a.replay": b"x"}},
    Generating: {"line": b"x", "row": {}, "file": "a.replay", "recording": b"x"},
    Showing: {"files": {"a.js": b"x"}, "runs": 1},
    Validating: {"level": "a", "findings": [{"severity": "error", "text": "x"}]},
    Evaluating: {"steps": b"x", "actions": b"x"},
}


def changed(value):
    """Yield what a forged value may be in place of another: of another kind at any depth, or with other fields."""
    kinds = (None, 5, -1.5, "x", b"x", [], {}, [[1]], {"base64": 7})
    yield from (each for each in kinds if type(each) is not type(value))
    if isinstance(value, dict):
        yield value | {"one more": 1}
        for name, part in value.items():
            yield {key: each for key, each in value.items() if key != name}
            yield from (value | {name: each} for each in changed(part))
    if isinstance(value, list):
        yield from ([each] for part in value for each in changed(part))


def journal_of(folder, *values):
    """Write the journal of one result, or the bytes of one."""
    folder.mkdir(exist_ok=True)
    header = {"job": "Counting", "arguments": {"count": 1}, "version": __version__, "levels": "none", "total": 1}
    encoded = (json.dumps([0, each], default=shard_module._encoded).encode() for each in values)
    (folder / "shard-1-of-1.journal").write_bytes(b"".join(map(line, (header, *encoded))))
    return Merged.of([folder])


@pytest.mark.parametrize("job", [each for each in RESULTS if each is not Counting], ids=lambda job: job.__name__)
def test_a_result_that_is_none_of_the_job_is_refused(tmp_path, job):
    whole = RESULTS[job]
    assert list(replace(journal_of(tmp_path, whole), result=job.result)) == [whole]
    refused = 0
    for value in changed(whole):
        with suppress(ConfigError, FormatError):
            found = list(replace(journal_of(tmp_path, value), result=job.result))
            assert type(found[0]) is dict, "an annotation allows it: no file, another text"
            continue
        refused += 1
    assert refused > 20
    with pytest.raises(FormatError, match=r"offset \d+: expected a result of Counting, got another"):
        list(replace(journal_of(tmp_path, {}), result=job.result))
    with pytest.raises(ConfigError, match="expected 1 results, got 0 whole ones"):
        list(replace(journal_of(tmp_path, {"base64": 7}), result=job.result))


def test_lines_that_are_no_json_are_damaged(tmp_path):
    path = tmp_path / "shard-1-of-1.journal"
    run(Counting(), tmp_path, shard=Shard(1, 1))
    first, _, *rest = path.read_bytes().splitlines(keepends=True)
    broken = b"{", b"[" * 100_000, b'[0, {"base64": 5}]', b'[0, {"base64": "x"}]', b"\xff", b""
    for text in (*broken, b"0", b"[0]", b"[false, 0]", b"[0.0, 0]", b"[-1, 0]", b"[7, 0]", b"[0, 0, 0]", b'{"0": 0}'):
        path.write_bytes(first + line(text) + b"".join(rest))
        with pytest.raises(ConfigError, match="expected 7 results, got 6 whole ones, line 2 is damaged; start the sh"):
            merge([tmp_path], tmp_path / "joined")


def test_a_journal_that_is_a_pipe_or_of_a_billion_shards_is_refused(tmp_path):
    os.mkfifo(tmp_path / "shard-1-of-1.journal")
    for call in (lambda: merge([tmp_path], tmp_path / "joined"), lambda: run(Counting(), tmp_path, shard=Shard(1, 1))):
        with pytest.raises(OSError, match="expected a file, got a device or pipe"):
            call()
    (tmp_path / "shard-1-of-1.journal").rename(tmp_path / "shard-999999999-of-999999999.journal")
    with pytest.raises(ConfigError, match="expected all 999999999 shards of one job, got no shard-1-of-999999999"):
        merge([tmp_path], tmp_path / "joined")


def test_levels_that_have_no_end_are_refused_unread(tmp_path):
    """Journals name the contents of their levels, which are read whole."""
    os.mkfifo(tmp_path / "pipe.map")
    for path in (tmp_path / "pipe.map", "/dev/zero"):
        with pytest.raises(LevelFormatError, match=r"expected a readable level file, got .*a device or pipe"):
            run(Validating(levels=(str(path),)), tmp_path / "parts", shard=Shard(1, 1))


def test_an_error_of_who_is_told_loses_no_result(tmp_path):
    def told(result):
        if result["number"] == 3:
            raise BrokenPipeError

    @dataclass(frozen=True)
    class Kept(Counting):
        def write(self, output, results):
            for each in results:
                output.write_text(str(each["number"]))

    with pytest.raises(BrokenPipeError):
        run(Kept(), tmp_path / "kept", on_result=told)
    assert (tmp_path / "kept").read_text() == "3"


def test_what_a_job_writes_is_claimed(tmp_path):
    """Another thread of the process stands for another process; the same thread may nest claims."""
    output, seen = tmp_path / "new" / "out", []

    def other():
        with pytest.raises(ConfigError, match="out: another process is writing there; wait for it, or name another"):
            run(Counting(), output)
        run(Counting(2), tmp_path / "new" / "other")
        seen.append(output.exists())

    def told(_):
        if not seen:
            thread = Thread(target=other)
            thread.start()
            thread.join()

    with claimed(output):
        run(Counting(), output, on_result=told)
    assert seen == [False]
    assert output.exists()
    assert [path.name for path in output.parent.iterdir() if path.name.startswith(".")] == []
    run(Counting(), output)
