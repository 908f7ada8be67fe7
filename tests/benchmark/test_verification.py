"""Honest submissions are accepted, forged ones are not; the fuzzer tries thousands more (``tests/fuzz``)."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from nclone_env.benchmark import read_submission, verify
from nclone_env.benchmark.submission import write_submission
from nclone_env.benchmark.verification import repeats
from nclone_env.errors import FormatError

from ..fuzz import submissions as forge
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
def test_forgeries_are_refused(change, base):
    rng = random.Random(change.__name__)
    for _ in range(2):
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
        ({"budget": "1g"}, "submission.json: budget: expected 4m or 100m or 30min, got '1g'"),
        ({"mode": "planning"}, "submission.json: mode: expected state or pixels or look-ahead, got 'planning'"),
    ],
)
def test_reasons_name_the_place(change, message):
    data = write_submission(replace(honest(), **change))
    with pytest.raises(FormatError, match=message):
        read_submission(data)
    assert message in verify(data).faults[0]


def test_repeated_attempts_are_counted():
    run = honest().runs[0]
    size = int(run.sampled.steps[0])
    twice = run.sampled._replace(steps=run.sampled.steps[[0, 0]], actions=run.sampled.actions[[*range(size)] * 2])
    assert repeats([twice], 2) == 1
    assert repeats([twice], 1) == 0
    assert repeats([twice, twice], 1) == 2  # of another run
