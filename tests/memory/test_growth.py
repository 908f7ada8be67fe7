from __future__ import annotations

import numpy as np
import pytest

from nclone_env.memory.growth import Growth, _end, combined_verdict, growth, least_squares
from nclone_env.memory.measurements import FLOORS

STEPS = list(range(0, 1001, 50))


def fit(values, quantity="traced") -> Growth:
    return growth(quantity, list(zip(STEPS, map(int, values))), 200, FLOORS[quantity])


def test_the_fit_of_a_straight_line_is_exact():
    slope, error = least_squares(np.array([0.0, 1.0, 2.0, 3.0]), np.array([5.0, 7.0, 9.0, 11.0]))
    assert slope == 2.0
    assert error == pytest.approx(0.0, abs=1e-12)


def test_the_error_of_a_fit_equals_numpys():
    x, y = np.arange(20.0), np.random.default_rng(0).normal(size=20)
    slope, error = least_squares(x, y)
    coefficients, covariance = np.polyfit(x, y, 1, cov=True)
    assert slope == pytest.approx(coefficients[0])
    assert error == pytest.approx(np.sqrt(covariance[0, 0]))


def test_steady_growth_is_found_with_its_rate():
    found = fit([5 * step for step in STEPS])
    assert found.verdict == "growing"
    assert found.slope == pytest.approx(5000)
    assert (found.snapshots, found.first, found.last) == (17, 200, 1000)
    assert found.change == 5 * 800


def test_constant_and_shrinking_memory_are_flat():
    assert fit([7000] * 21).verdict == "flat"
    assert fit([10_000_000 - 5000 * step for step in STEPS]).verdict == "flat"


@pytest.mark.parametrize("jump_at", [250, 400, 600, 800, 950])
def test_a_single_jump_is_flat_wherever_it_is(jump_at):
    found = fit([1_000_000 * (step >= jump_at) for step in STEPS])
    assert found.verdict == "flat"
    assert found.change == 1_000_000


def test_a_leak_with_a_jump_is_growing():
    assert fit([20 * step + 1_000_000 * (step >= 600) for step in STEPS]).verdict == "growing"


def test_a_leak_at_every_end_of_an_episode_is_growing():
    assert fit([100_000 * (step // 170) for step in STEPS]).verdict == "growing"


def test_the_warm_up_is_not_fitted():
    values = [1000 * min(step, 200) for step in STEPS]
    assert fit(values).verdict == "flat"
    assert growth("traced", list(zip(STEPS, values)), 0, FLOORS["traced"]).change > 0


def test_caches_that_fill_ever_more_slowly_are_flat():
    filling = [40_000 * (1 - 0.995**step) for step in STEPS]
    assert fit(filling).verdict == "flat"
    leaking = fit([size + 20 * step for size, step in zip(filling, STEPS)])
    assert (leaking.verdict, leaking.first) == ("growing", 600)
    assert leaking.slope == pytest.approx(20_000, rel=0.2)  # what is left of the filling


def test_variation_below_the_floor_is_flat():
    below = 0.9 * FLOORS["traced"] / 800
    assert fit([below * step for step in STEPS]).verdict == "flat"
    assert fit([2 * below * step for step in STEPS]).verdict == "growing"


def test_noise_is_flat():
    for seed in range(50):
        noise = np.random.default_rng(seed).normal(scale=300_000, size=len(STEPS))
        assert fit(5_000_000 + noise, "process").verdict == "flat", seed


def test_the_verdict_follows_from_the_printed_numbers():
    generator = np.random.default_rng(3)
    for _ in range(200):
        values = generator.normal(scale=3000, size=len(STEPS)) + generator.uniform(-20, 20) * np.array(STEPS)
        found = fit(values)
        assert found.margin == max(found.error, found.floor)
        assert (found.verdict == "flat") == (found.slope <= found.margin)


def test_few_snapshots_are_undecided():
    assert growth("traced", [(200 * n, n) for n in range(5)], 200, FLOORS["traced"]).verdict == "undecided"
    assert growth("traced", [(200 * n + 200, n) for n in range(5)], 200, FLOORS["traced"]).verdict == "flat"
    assert growth("traced", [], 200, FLOORS["traced"]).verdict == "undecided"


def test_the_worst_quantity_decides():
    growing, flat = fit([5 * step for step in STEPS]), fit([0] * 21)
    undecided = growth("traced", [], 200, FLOORS["traced"])
    assert combined_verdict([flat, growing, undecided]) == "growing"
    assert combined_verdict([flat, undecided]) == "undecided"
    assert combined_verdict([flat, flat]) == "flat"
    assert combined_verdict([]) == "undecided"


RUN = np.linspace(6, 30, 48)
"""Seconds of the snapshots of a run of 30 seconds, after its warm-up."""


def judge(values, noise=300) -> str:
    noisy = values + np.random.default_rng(0).normal(scale=noise, size=len(RUN))
    return growth("traced", [(1000 * at, int(size)) for at, size in zip(RUN, noisy)], 0, FLOORS["traced"]).verdict


def rise(*places, seconds, size=20e6):
    """Return memory that rises at shares of the run, each time for some seconds."""
    return sum(size * np.clip((RUN - 30 * place) / seconds, 0, 1) for place in places)


@pytest.mark.parametrize("seconds", [0.1, 1, 3])
@pytest.mark.parametrize("place", [0.3, 0.5, 0.55, 0.58, 0.6, 0.8])
def test_memory_taken_once_is_flat_however_slowly_it_comes(place, seconds):
    assert judge(rise(place, seconds=seconds)) == "flat"


@pytest.mark.parametrize("seconds", [0.1, 1, 2])
@pytest.mark.parametrize("places", [(0.3, 0.8), (0.3, 0.5, 0.8), (0.45, 0.7, 0.95)])
def test_memory_taken_a_few_times_is_undecided(places, seconds):
    assert judge(rise(*places, seconds=seconds)) == "undecided"


def test_growth_that_ends_or_slows_down_is_no_leak():
    assert judge(rise(0, seconds=21)) == "flat"
    assert judge(rise(0, seconds=25.5)) == "undecided"
    assert judge(20e6 * (1 - np.exp(-RUN / 8))) == "undecided"


@pytest.mark.parametrize("bursts", [4, 5, 8, 20])
def test_a_leak_in_bursts_is_growing(bursts):
    assert judge(1e5 * np.floor(bursts * (RUN - 6) / 24 + 0.5)) == "growing"


@pytest.mark.parametrize("rate", [1e3, 1e5, 1e7])
def test_a_leak_is_growing_whatever_else_is_taken(rate):
    assert judge(rate * RUN + rise(0.3, 0.8, seconds=1)) == "growing"


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_few_snapshots_of_which_the_last_frees_nearly_all(count):
    """A busy machine takes two in the time of many; the second may be that of the end of the program."""
    points = [(float(step), 10**9) for step in range(count)]
    assert _end(points, 4096) == count - 1
    assert _end([*points, (float(count), 0)], 4096) == max(count - 2, 0)
