from __future__ import annotations

import numpy as np
import pytest

from nclone_env.memory.growth import FLOORS, Growth, combined_verdict, growth, least_squares

STEPS = list(range(0, 1001, 50))


def fit(values, quantity="traced") -> Growth:
    return growth(quantity, list(zip(STEPS, map(int, values))), warm_up=200)


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
    assert growth("traced", list(zip(STEPS, values)), warm_up=0).change > 0


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
        assert (found.verdict == "growing") == (found.slope > found.margin)


def test_few_snapshots_are_undecided():
    assert growth("traced", [(200 * n, n) for n in range(5)], warm_up=200).verdict == "undecided"
    assert growth("traced", [(200 * n + 200, n) for n in range(5)], warm_up=200).verdict == "flat"
    assert growth("traced", [], warm_up=200).verdict == "undecided"


def test_the_worst_quantity_decides():
    growing, flat = fit([5 * step for step in STEPS]), fit([0] * 21)
    undecided = growth("traced", [], warm_up=200)
    assert combined_verdict([flat, growing, undecided]) == "growing"
    assert combined_verdict([flat, undecided]) == "undecided"
    assert combined_verdict([flat, flat]) == "flat"
    assert combined_verdict([]) == "undecided"
