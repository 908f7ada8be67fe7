"""Honest submissions are accepted, forged ones are not; the fuzzer tries thousands more (``tests/fuzz``)."""

import hashlib
import json
import random
import re
import zipfile
from dataclasses import replace
from types import MappingProxyType

import numpy as np
import pytest

from nclone_env.benchmark import read_submission, submission, verify
from nclone_env.benchmark.submission import saved, write_submission
from nclone_env.benchmark.verification import repeats
from nclone_env.errors import FormatError

from ..fuzz import submissions as forge
from ..shared import archived, members_of
from .bases import TRACK, complete, honest


def test_an_honest_submission_is_accepted(tmp_path):
    honest().save(tmp_path / "result.zip")
    found = verify(tmp_path / "result.zip")
    assert found.accepted
    assert found.faults == ()
    assert found.episodes == 2 * 16 * TRACK.attempts
    assert found.frames == sum(int(run.sampled.ends["frames"].sum()) for run in honest().runs)
    assert found.proved[1] == "episodes: 512, 16 sampled on each level for each of 2 seeds, none left out"
    assert found.claimed[0] == "training: within the budget 4m (steps at most 4,000,000), on the same levels"
    assert found.claimed[2].endswith("of 512 repeat another")
    assert 0 < found.scores["speed"].low < found.scores["speed"].high < 1


def test_what_is_read_is_what_was_written():
    data = write_submission(honest())
    found = read_submission(data)
    assert write_submission(found) == data
    assert (found.title, found.command, found.budget) == ("right", "a command", "4m")
    assert [run.seed for run in found.runs] == [0, 1]


@pytest.mark.parametrize("change", [*forge._FORGERIES, *forge._EDITS], ids=lambda change: change.__name__)
@pytest.mark.parametrize("base", [honest, complete], ids=lambda base: base.__name__)
@pytest.mark.parametrize("tries", [1, pytest.param(4, marks=pytest.mark.slow)])
def test_forgeries_are_refused(change, base, tries):
    rng = random.Random(change.__name__)
    for _ in range(tries):
        if change in forge._EDITS:
            data = write_submission(change(rng, base()))
        else:
            runs = change(rng, base().runs[0]), base().runs[1]
            data = write_submission(replace(base(), runs=runs, scores=forge._scores(base())))
        assert not verify(data).accepted


def test_most_probable_episodes_are_forged_as_others():
    rng, (first, second) = random.Random(5), complete().runs
    for _ in range(6):
        runs = forge.of_probable(rng, first), second
        found = verify(replace(complete(), runs=runs, scores=forge._scores(complete())))
        assert "probable episode" in found.faults[0]


def test_an_included_policy_that_cannot_play_is_a_fault():
    runs = (replace(honest().runs[0], policy=b"no checkpoint"), honest().runs[1])
    data = write_submission(replace(honest(), runs=runs))
    assert verify(data).accepted  # the inputs prove what they prove
    (fault,) = verify(data, policies=True).faults
    assert fault.startswith("run 0: policy: expected one that plays in mode state, got ")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"budget": "1g"}, "budget: expected 4m or 100m or 30min, got '1g'"),
        ({"mode": "planning"}, "mode: expected state or pixels or look-ahead, got 'planning'"),
        ({"title": "a" * 101}, "title: expected 1 to 100 printable characters, got 'aaa"),
        ({"title": " "}, "title: expected 1 to 100 printable characters, got ' '"),
        ({"title": "x\x1b[31mred"}, r"title: expected 1 to 100 printable characters, got 'x\x1b[31mred'"),
        ({"title": "\ud800"}, "title: expected 1 to 100 printable characters, got "),
        ({"title": "\u202eabc"}, "title: expected 1 to 100 printable characters, got "),
        ({"versions": {"a": "[" * 2**20}}, "versions: expected at most 1,048,576 characters of JSON, got 1,048,585"),
    ],
)
def test_reasons_name_the_place(change, message, tmp_path, monkeypatch):
    """The same for a file and for an object, and nothing that would be refused is saved."""
    forged = replace(honest(), **change)
    with monkeypatch.context() as patched:
        patched.setattr(submission, "_MOST_TEXT", 2**22)
        data = write_submission(forged)
        assert verify(data).accepted == ("versions" in change)
    if "versions" not in change:
        with pytest.raises(FormatError, match=re.escape(f"<bytes>: {message}")):
            read_submission(data)
        assert message in verify(data).faults[0]
    assert verify(forged).faults[0].startswith(f"submission: {message}")
    with pytest.raises(FormatError, match=re.escape(message)):
        forged.save(tmp_path / "x.zip")
    assert not [*tmp_path.iterdir()]


def of_run(**changes):
    return replace(honest(), runs=(replace(honest().runs[0], **changes), honest().runs[1]))


def of_attempts(**changes):
    return of_run(sampled=honest().runs[0].sampled._replace(**changes))


def sampled():
    return honest().runs[0].sampled


NUMBERS = {"steps": np.int64(1000), "seconds": np.float32(1.5)}


@pytest.mark.parametrize(
    ("forged", "message"),
    [
        (lambda: of_attempts(steps=sampled().steps + 1000), "runs[0].sampled.steps: expected 1 to 300, got "),
        (
            lambda: of_attempts(steps=sampled().steps[:-1]),
            "runs[0].sampled.steps: expected (256,) uint32, got (255,) uint32",
        ),
        (
            lambda: of_attempts(steps=[*sampled().steps]),
            "runs[0].sampled.steps: expected (256,) uint32, got [np.uint32(",
        ),
        (lambda: of_attempts(actions=sampled().actions[:-1]), "runs[0].sampled.actions: expected ("),
        (lambda: of_attempts(actions=sampled().actions + 200), "runs[0].sampled.actions: expected 0 to 5, got 205"),
        (lambda: of_attempts(ends=np.tile(sampled().ends, 3)), "runs[0].sampled.ends: expected (256,) "),
        (lambda: of_run(sampled=None), "runs[0].sampled: expected Attempts, got None"),
        (lambda: of_run(probable=honest().runs[0].sampled), "runs[0].probable.steps: expected (16,) uint32, got (256"),
        (lambda: of_run(seed=-1), "runs[0].seed: expected a number from 0 to 2147483647, got -1"),
        (lambda: of_run(seed=True), "runs[0].seed: expected a number from 0 to 2147483647, got True"),
        (lambda: of_run(claimed=[1]), "runs[0].claimed: expected an object of JSON values, got [1]"),
        (lambda: of_run(claimed={"steps": np.nan}), "runs[0].claimed: expected an object of JSON values, got {'ste"),
        (lambda: of_run(policy="a.pt"), "runs[0].policy: expected bytes, got 'a.pt'"),
        (lambda: of_run(policy=bytes(2**27)), "runs: expected at most 134,217,728 bytes, got 134,"),
        (lambda: replace(honest(), runs=()), "runs: expected 1 to 64, got 0"),
        (lambda: replace(honest(), runs=honest().runs * 33), "runs: expected 1 to 64, got 66"),
        (lambda: replace(honest(), runs=None), "runs: expected 1 to 64, got None"),
        (lambda: replace(honest(), runs=("a",)), "runs[0]: expected a Run, got 'a'"),
        (lambda: replace(honest(), track="x"), "track: expected one of Builtin-v1, "),
        (lambda: replace(honest(), track=["x"]), "track: expected one of Builtin-v1, "),
        (lambda: replace(honest(), budget=["4m"]), "budget: expected 4m or 100m or 30min, got ['4m']"),
        (lambda: replace(honest(), scores={"speed": {1, 2}}), "scores: expected an object of JSON values, got {'sp"),
        (lambda: replace(honest(), scores={"speed": True}), "scores: 'speed': expected numbers by name, got True"),
        (lambda: replace(honest(), scores={"any": {"iqm": "1"}}), "scores: 'any': expected numbers by name, got {'iqm"),
        (lambda: replace(honest(), scores=[]), "scores: expected an object of JSON values, got []"),
        (lambda: replace(honest(), command=None), "command: expected text, got None"),
    ],
)
def test_objects_are_checked_as_files(forged, message):
    (fault,) = verify(forged()).faults
    assert fault.startswith(f"submission: {message}")


def test_an_object_may_lack_scores_and_count_with_numpy(tmp_path):
    made = replace(of_run(claimed=NUMBERS, seed=np.int64(0)), versions=MappingProxyType({"a": "1"}))
    assert made.scores is None
    assert verify(made).accepted
    made.save(tmp_path / "x.zip")
    found = read_submission(tmp_path / "x.zip")
    assert found.runs[0].claimed == {"steps": 1000, "seconds": 1.5}
    assert verify(found).accepted
    assert not verify(of_run(claimed=NUMBERS | {"steps": np.int64(5_000_000)})).accepted


def parts():
    """Return the index and the members of a submission."""
    members = members_of(write_submission(honest()))
    return json.loads(members.pop("submission.json")), members


def packed(index, members, method=zipfile.ZIP_DEFLATED, more=0):
    """Return an archive with right digests, and empty members that the index does not list."""
    index["members"] = {name: hashlib.sha256(data).hexdigest() for name, data in members.items()}
    added = ((str(number), b"") for number in range(more))
    return archived([("submission.json", json.dumps(index).encode()), *members.items(), *added], method)


def with_policies(size):
    index, members = parts()
    return packed(index, {**members, "0-policy.pt": bytes(size), "1-policy.pt": bytes(size)})


def with_index(**changes):
    index, members = parts()
    return packed(index | changes, members)


ZIP = "file: expected a submission, a zip file, got "


def header_of(shape):
    (index, members), old = parts(), b"(256,), }       "
    return packed(
        index, {**members, "0-sampled-steps.npy": saved(sampled().steps).replace(old, (shape + b", }").ljust(len(old)))}
    )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: with_policies(2**26 + 2**10), "members: expected at most 134,217,728 bytes in all, got 134,"),
        (lambda: packed(*parts(), more=2000), f"{ZIP}'a directory of members of 99,"),
        (lambda: packed(*parts(), more=70_000), f"{ZIP}'a directory of members of 3,"),
        (lambda: packed(*parts(), more=3), "members: expected those that submission.json lists, got ['0', '1', '2']"),
        (lambda: packed(*parts(), zipfile.ZIP_LZMA), "submission.json: expected a member that is stored or deflated"),
        (lambda: packed(*parts(), zipfile.ZIP_BZIP2), "submission.json: expected a member that is stored or deflated"),
        (lambda: with_index(command="x" * 2**21), "submission.json: expected at most 1,048,576 bytes, got 2,"),
        (lambda: with_index(scores=[[]]), "submission.json: scores: expected dict, got [[]]"),
        (lambda: with_index(runs=[0] * 65), "submission.json: runs: expected 1 to 64, got 65"),
        (lambda: header_of(b"(9999999999,)"), "0-sampled-steps.npy: expected (256,) uint32, got another array of "),
        (lambda: header_of(b"(256, 1)"), "0-sampled-steps.npy: expected (256,) uint32, got another array of "),
        (lambda: write_submission(honest()) + b"x", f"{ZIP}'no directory of members at its end'"),
        (lambda: write_submission(honest())[:-1], f"{ZIP}'no directory of members at its end'"),
        (lambda: b"PK\5\6" + bytes(18), "members: expected different names, one of them submission.json, got []"),
        (lambda: b"", f"{ZIP}'no directory of members at its end'"),
    ],
)
def test_archives_that_would_cost_much_are_refused(make, message):
    (fault,) = verify(make()).faults
    assert fault.startswith(f"<bytes>: {message}")


def test_what_is_packed_otherwise_than_written_is_read():
    assert verify(packed(*parts(), zipfile.ZIP_STORED)).accepted
    assert verify(with_policies(1000)).accepted


def test_repeated_attempts_are_counted():
    run = honest().runs[0]
    size = int(run.sampled.steps[0])
    twice = run.sampled._replace(steps=run.sampled.steps[[0, 0]], actions=run.sampled.actions[[*range(size)] * 2])
    assert repeats([twice], 2) == 1
    assert repeats([twice], 1) == 0
    assert repeats([twice, twice], 1) == 2  # of another run
