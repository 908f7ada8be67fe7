"""Levels by weight, levels of an environment's own, and starts given one by one."""

from __future__ import annotations

import numpy as np
import pytest

from nclone_env import NPlusPlusVectorEnv, errors
from nclone_env.env.compiled.step_arrays import level_thresholds

NUM_LEVELS = 6


def make(num_envs=64, **options):
    return NPlusPlusVectorEnv(None, num_envs, observations="game_state", levels="first-steps", **options)


def levels_played(envs, resets=20) -> np.ndarray:
    return np.bincount(np.concatenate([envs.reset()[1]["level"].tolist() for _ in range(resets)]), minlength=NUM_LEVELS)


def test_levels_are_drawn_as_often_as_their_weights_say():
    envs = make()
    envs.reset(seed=1)
    weights = np.array([0, 1, 2, 0, 5, 0])
    levels_played(envs)
    size = envs.memory().total_bytes
    envs.set_level_weights(weights)
    counts = levels_played(envs, 100)
    assert (counts[weights == 0] == 0).all()
    expected = weights / weights.sum() * counts.sum()
    deviation = np.sqrt(expected * (1 - weights / weights.sum()))
    assert (np.abs(counts - expected) <= 4 * deviation).all()  # one in 16,000 for each level
    assert envs.memory().total_bytes == size


def test_without_weights_all_levels_are_drawn_alike():
    envs = make()
    envs.reset(seed=1)
    envs.set_level_weights({"first-steps/03-drop": 1})
    assert levels_played(envs).tolist() == [0, 0, 1280, 0, 0, 0]
    envs.set_level_weights(None)
    counts = levels_played(envs, 100)
    assert (np.abs(counts - 6400 / 6) < 4 * np.sqrt(6400 * 5 / 36)).all()


def test_weights_do_not_depend_on_their_scale():
    played = []
    for scale in (1, 1000):
        envs = make()
        envs.reset(seed=5)
        envs.set_level_weights(scale * np.array([1, 2, 3, 4, 5, 6]))
        played.append(envs.reset()[1]["level"].tolist())
    assert played[0] == played[1]


@pytest.mark.parametrize(
    "weights", [[1], [0, 0, 1], [3, 1, 0, 0], [1e-300, 1], [1, 1e-300], [5] * 600, [1e308, 0, 1e308]]
)
def test_bounds_grow_to_the_end_and_leave_no_room_for_weight_zero(weights):
    bounds = level_thresholds(np.array(weights, np.float64)).tolist()
    widths = np.diff([0, *bounds])
    assert bounds[-1] == 2**63
    assert (widths >= 0).all()
    assert all(width == 0 for width, weight in zip(widths, weights, strict=True) if weight == 0)


def test_weights_of_any_size_count_alike():
    """Their sum may be too large for a float, and their quotients are those of the weights as they are, bit by bit."""
    for size in (1.0, np.finfo(float).max, 1e308, 3e-310, 5e-324):
        assert level_thresholds(np.full(2, size)).tolist() == [2**62, 2**63]
        assert level_thresholds(np.array([0.0, size])).tolist() == [0, 2**63]
    draw = np.random.default_rng(8)
    for _ in range(200):
        weights = draw.random(draw.integers(1, 50)) * 10.0 ** draw.integers(-200, 200)
        expected = (np.cumsum(weights / weights.sum()) * 2.0**63)[:-1].astype(np.uint64)
        assert level_thresholds(weights)[:-1].tolist() == np.minimum(expected, 2**63).tolist()


def test_environments_play_levels_of_their_own():
    envs = make(4)
    envs.reset(seed=1)
    envs.assign_levels([2, None, "first-steps/06-hop", -1])
    seen = np.array([envs.reset()[1]["level"] for _ in range(40)])
    assert set(seen[:, 0]) == {2}
    assert set(seen[:, 2]) == {5}
    assert len(set(seen[:, 1])) == len(set(seen[:, 3])) == NUM_LEVELS
    assert envs.reset(options={"level": 4})[1]["level"].tolist() == [4, 4, 4, 4]
    assert envs.reset()[1]["level"][0] == 2
    envs.assign_levels(None)
    assert len({envs.reset()[1]["level"][0] for _ in range(40)}) == NUM_LEVELS


def test_each_environment_can_begin_on_a_level_or_in_a_state_given_to_it():
    envs = make(3)
    assert envs.reset(seed=1, options={"level": [3, 1, 2]})[1]["level"].tolist() == [3, 1, 2]
    envs.step([2, 2, 2])
    states = [envs.get_state(0), None, envs.get_state(1)]
    observations = envs.step([2, 2, 2])[0]["game_state"][:, :4].copy()
    _, info = envs.reset(options={"state": states})
    assert info["level"][[0, 2]].tolist() == [3, 1]
    assert info["episode_frames"].tolist() == [4, 0, 4]
    again = envs.step([2, 2, 2])[0]["game_state"][:, :4]
    assert again[0].tobytes() == observations[0].tobytes()
    assert again[2].tobytes() == observations[1].tobytes()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda e: e.set_level_weights([1, 2]),
            "ConfigError",
            r"weights: expected one number for each of the 6",
        ),
        (lambda e: e.set_level_weights([0] * 6), "ConfigError", r"weights: expected finite .* not all 0, got \[0.0"),
        (
            lambda e: e.set_level_weights([1] * 5 + [-1]),
            "ConfigError",
            r"weights: expected finite numbers of at",
        ),
        (lambda e: e.set_level_weights([1] * 5 + [np.nan]), "ConfigError", r"weights: expected finite numbers"),
        (lambda e: e.set_level_weights({"x": 1}), "UnknownLevelError", r"weights: expected a name or .*, got 'x'"),
        (lambda e: e.assign_levels([0]), "ConfigError", r"levels: expected one level or None for each of the 2 env"),
        (lambda e: e.assign_levels("first-steps"), "ConfigError", r"levels: expected one level or None for each"),
        (lambda e: e.assign_levels([0, 6]), "UnknownLevelError", r"levels: expected a name or an index below 6, got 6"),
        (lambda e: e.reset(options={"level": [0]}), "ConfigError", r"options\['level'\]: expected one level or None"),
        (
            lambda e: e.reset(options={"state": [None]}),
            "ConfigError",
            r"options\['state'\]: expected one, or a",
        ),
    ],
)
def test_what_does_not_fit_is_refused(call, error, message):
    envs = make(2)
    envs.reset(seed=1)
    with pytest.raises(getattr(errors, error), match=message):
        call(envs)
    assert len({envs.reset()[1]["level"][0] for _ in range(30)}) > 3  # levels are still drawn
