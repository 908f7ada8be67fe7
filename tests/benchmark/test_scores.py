"""Scores by their definitions; figures of rliable 1.2.0."""

import numpy as np
import pytest

from nclone_env.benchmark import performance_profile
from nclone_env.benchmark.scores import measures, normalised, score, scores

from .bases import TRACK, played

SQUARES = np.arange(20.0).reshape(4, 5) ** 2 / 400
"""Four seeds, five levels."""


def test_the_profile_of_rliable():
    thresholds = np.array([0, 0.1, 0.5, 0.9])
    np.testing.assert_allclose(performance_profile(SQUARES, thresholds), [0.95, 0.65, 0.25, 0.05])


def test_one_seed_has_no_interval():
    found = score(SQUARES[:1])
    assert (found.low, found.high) == (None, None)
    assert found.mean == 0.015


def test_measures_follow_from_the_ends():
    run = played(0)
    found = measures(TRACK, run)
    assert set(found) == {"success", "any", "speed"}  # a function has no most probable actions
    ends = run.sampled.ends.reshape(16, 16)
    for number, level in enumerate(TRACK.levels):
        won = [end["frames"] for end in ends[number] if end["won"]]
        assert found["success"][number] == len(won) / 16
        assert found["any"][number] == (len(won) > 0)
        assert found["speed"][number] == pytest.approx(sum(level.frames / frames for frames in won) / 16)
    assert 0 < found["success"].mean() < found["any"].mean() < 1


def test_normalised_speed_is_zero_for_random_play_and_one_for_the_best():
    found = scores(TRACK, [played(0)])
    least = TRACK.random["speed"]
    assert normalised(TRACK, found, "speed") == pytest.approx((found["speed"].mean - least) / (1 - least))
