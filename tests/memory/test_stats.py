from __future__ import annotations

import numpy as np
import pytest

from nclone_env.memory.recording import ProfileSettings
from nclone_env.memory.stats import (
    Growth,
    accounting,
    combined_verdict,
    compute,
    grown_lines,
    growth,
    largest_lines,
    least_squares,
    owner_rows,
)

from .by_hand import STEPS, recording

FLOOR = 2048


def fit(values: list[float]) -> Growth:
    return growth("traced", [(100 * i, int(value)) for i, value in enumerate(values)], 200, FLOOR)


def test_the_fit_of_a_straight_line_is_exact():
    slope, error = least_squares(np.array([0.0, 1.0, 2.0, 3.0]), np.array([5.0, 7.0, 9.0, 11.0]))
    assert slope == 2.0
    assert error == 0.0


def test_the_fit_matches_a_hand_computed_example():
    # x - mean: -1 0 1; slope = (-1*0 + 0*3 + 1*4) / 2 = 2
    # residuals -1/3, 2/3, -1/3; variance 2/3, error sqrt(1/3)
    slope, error = least_squares(np.array([0.0, 1.0, 2.0]), np.array([0.0, 3.0, 4.0]))
    assert slope == pytest.approx(2.0)
    assert error == pytest.approx((1 / 3) ** 0.5)


def test_a_steady_leak_grows_and_its_rate_is_right():
    found = fit([5000 + 100 * step for step in STEPS])
    assert found.verdict == "growing"
    assert found.slope == pytest.approx(100_000)
    assert (found.snapshots, found.first_step, found.last_step) == (9, 200, 1000)


def test_constant_memory_is_flat():
    assert fit([5000] * 11).verdict == "flat"


def test_growth_in_the_warm_up_alone_is_flat():
    assert fit([0, 50_000] + [100_000] * 9).verdict == "flat"


@pytest.mark.parametrize("at", range(3, 11))
def test_a_single_jump_is_flat_wherever_it_is(at):
    assert fit([5000] * at + [105_000] * (11 - at)).verdict == "flat"


def test_noise_without_trend_is_flat_and_with_a_strong_trend_is_growing():
    noise = np.random.default_rng(3).normal(0, 3000, 11)
    assert fit(list(50_000 + noise)).verdict == "flat"
    assert fit(list(50_000 + noise + 10_000 * np.arange(11))).verdict == "growing"


def test_growth_below_the_floor_is_flat():
    assert fit([5000 + 2 * step for step in STEPS]).verdict == "flat"  # 1,600 bytes over 800 steps, floor 2,048


def test_shrinking_is_flat():
    assert fit([500_000 - 100 * step for step in STEPS]).verdict == "flat"


def test_too_few_snapshots_are_undecided():
    found = growth("traced", [(0, 1), (400, 1), (800, 1), (1000, 9)], 200, FLOOR)
    assert found.verdict == "undecided"
    assert found.snapshots == 3


def test_the_worst_verdict_wins():
    flat, growing = fit([5000] * 11), fit([5000 + 100 * step for step in STEPS])
    undecided = growth("traced", [], 200, FLOOR)
    assert combined_verdict([flat, flat]) == "flat"
    assert combined_verdict([flat, undecided]) == "undecided"
    assert combined_verdict([undecided, growing, flat]) == "growing"


def test_owner_rows_add_up_and_divide_by_the_environments():
    root, levels, state = owner_rows(recording().memory, 4)
    assert (root.shared_bytes, root.environment_bytes, root.per_env_bytes) == (3000, 4000, 1000.0)
    assert (levels.depth, levels.shared_bytes, levels.environment_bytes) == (1, 3000, 0)
    assert (state.shared_bytes, state.per_env_bytes) == (0, 1000.0)


def test_accounting_counts_stages_before_the_environments_and_reported_bytes_only():
    account = accounting(recording())
    assert [part.share_bytes for part in account.parts] == [8_000, 42_000, 10_000, 7_000]
    assert account.environments_measured_bytes == 7_500
    assert (account.accounted_bytes, account.measured_bytes, account.unaccounted_bytes) == (
        67_000,
        67_500,
        500,
    )


def test_lines_are_ordered_by_size_and_by_growth():
    made = recording()
    assert [line.file for line in largest_lines(made.last_lines)] == ["b.py", "a.py", "c.py"]
    grown = grown_lines(made.first_lines, made.last_lines)
    assert [(line.file, line.grown_bytes, line.grown_blocks) for line in grown] == [
        ("a.py", 300, 1),
        ("c.py", 50, 1),
    ]


def test_compute_combines_all_statistics():
    stats = compute(recording(traced_per_step=100))
    assert stats.verdict == "growing"
    assert [item.verdict for item in stats.growths] == ["growing", "flat"]
    assert compute(recording()).verdict == "flat"
    assert [item.name for item in stats.by_cumulative] == ["outer", "inner"]
    assert [item.name for item in stats.by_own] == ["inner", "outer"]
    assert (stats.speed.plain, stats.speed.profiled) == (8000.0, 2000.0)


def test_snapshot_steps_and_warm_up():
    settings = ProfileSettings(1, steps=250, interval=100)
    assert settings.snapshot_steps() == (0, 100, 200, 250)
    assert settings.warm_up_steps == 50
    assert ProfileSettings(1, steps=200, interval=100).snapshot_steps() == (0, 100, 200)
