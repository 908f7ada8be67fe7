"""The episodes of submissions, and their pages."""

from pathlib import Path

import numpy as np
import pytest

from nclone_env.benchmark.shown import recordings_of
from nclone_env.benchmark.submission import read_submission
from nclone_env.benchmark.track import load_track
from nclone_env.cli.app import main
from nclone_env.game import CELEBRATING
from nclone_env.train.policies.files import other_kind

SUBMISSIONS = Path(__file__).parents[2] / "docs" / "submissions"


@pytest.mark.parametrize("name", ["builtin-random", "builtin-sb3-ppo", "planning-planner"])
def test_a_submission_holds_an_episode_of_each_level(name):
    path = SUBMISSIONS / f"{name}.zip"
    submission, recordings = read_submission(path), recordings_of(path)
    track = load_track(submission.track)
    assert other_kind(path) == "submission"
    assert len(recordings) == len(track.levels)
    ends = [
        each.ends.reshape(len(recordings), -1)
        for run in submission.runs
        for each in (run.sampled, run.probable)
        if each is not None
    ]
    for number, recording in enumerate(recordings):
        of_level = np.concatenate([each[number] for each in ends])
        won = of_level["frames"][of_level["won"]]
        assert len(recording.inputs) == (won.min() if len(won) else of_level["frames"].max())
        verdict = recording.verify()
        assert (verdict.agrees, verdict.state == CELEBRATING) == (True, len(won) > 0)
        assert recording.settings["agent"] == submission.title


def test_the_gallery_shows_submissions(tmp_path, capsys):
    """That they are watched is tested with the command."""
    path = SUBMISSIONS / "builtin-clone.zip"
    given = ["gallery", "first-steps/01-walk", "--recordings", str(path), "--output", str(tmp_path / "site")]
    assert main(given) == 1, "recordings of other levels are named"
    printed = capsys.readouterr()
    assert "wrote 1 level and 2 runs" in printed.out
    assert "jumps" in printed.err
    assert main([*given, "--shard", "1/2", "--force"]) == 2
    assert main(["evaluate", str(path)]) == 2
    assert "got a submission of the benchmark; 'nclone-env watch' and" in capsys.readouterr().err
