"""Interquartile means and their intervals, and the time of training."""

import numpy as np
import pytest

from nclone_env.benchmark import interquartile_mean as public
from nclone_env.train.reports.statistics import interquartile_mean, interval, training_seconds

SQUARES = np.arange(20.0).reshape(4, 5) ** 2 / 400
"""Four seeds, five levels."""


def test_interquartile_means_of_rliable():
    assert interquartile_mean(SQUARES) == pytest.approx(0.24625, abs=1e-12)
    assert interquartile_mean(np.random.default_rng(0).random((3, 7))) == pytest.approx(0.5244497606835306, abs=1e-12)
    assert interquartile_mean(np.array([[0.0, 1.0, 2.0, 100.0]])) == 1.5


def test_the_interval_of_rliable():
    """``get_interval_estimates`` with 20,000 samples gives 0.1100 to 0.4342; samples differ by a few thousandths."""
    low, high = interval(SQUARES, samples=20_000)
    assert low == pytest.approx(0.1100, abs=0.006)
    assert high == pytest.approx(0.43425, abs=0.006)
    assert interval(SQUARES) == interval(SQUARES)
    assert interval(SQUARES) != interval(SQUARES, seed=1)


def test_the_benchmark_has_the_same_mean():
    assert public is interquartile_mean


def test_seconds_are_those_of_the_steps_at_the_speed_of_each_row():
    rows = [{"timesteps": 100, "steps_per_second": 50.0}, {"timesteps": "400", "steps_per_second": "100"}]
    assert training_seconds(rows).tolist() == [2.0, 5.0]
    assert training_seconds([]).tolist() == []
