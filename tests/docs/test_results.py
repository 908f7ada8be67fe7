"""The page of results is that of the submissions beside it, each of which is verified."""

import numpy as np
import pytest

from nclone_env.benchmark import load_track, read_submission, verify
from nclone_env.benchmark.results import page

from .pages import ROOT

FILES = sorted((ROOT / "docs" / "submissions").glob("*.zip"))


@pytest.mark.parametrize("file", [file for file in FILES if "builtin" in file.name], ids=lambda file: file.stem)
def test_submissions_on_built_in_levels_are_accepted(file):
    found = verify(file)
    assert found.accepted, found.faults


@pytest.mark.slow  # makes a thousand levels, once
def test_the_page_is_that_of_all_submissions():
    entries = [(read_submission(file), verify(file)) for file in FILES]
    assert [file.name for file, (_, found) in zip(FILES, entries) if not found.accepted] == []
    pictures = {submission.track: f"results-{submission.track.lower()}.png" for submission, _ in entries}
    assert page(entries, pictures) == (ROOT / "docs" / "results.md").read_text()


def test_the_paper_states_what_the_tracks_do():
    text = " ".join((ROOT / "docs" / "paper.md").read_text().split())
    tracks = [load_track(name) for name in ("Builtin-v1", "Generated-v1", "Game-v1")]
    frames = [f"{np.median([level.frames for level in track.levels]):.0f}" for track in tracks]
    wins = [f"{100 * track.random['success']:.2g} %" for track in tracks]
    assert "a median of {} frames on the built-in levels, {} on generated ones and {} on".format(*frames) in text
    assert "win {} of episodes on the built-in levels, {} on generated ones and {} on".format(*wins) in text


def test_there_are_submissions():
    assert len(FILES) >= 3
