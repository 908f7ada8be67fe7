"""Level weights follow success and learning progress, and reach a goal sooner than equal weights; starts move back."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nclone_env.errors import ConfigError
from nclone_env.train.levels.curriculum import BackwardStarts, LevelCurriculum

SOLVED, HOPELESS, RISING, FALLING, EVEN, UNSEEN = range(6)


def measured(episodes: int = 200, **options) -> LevelCurriculum:
    """Return a curriculum over one level of each kind."""
    curriculum = LevelCurriculum(6, **options)
    rng = np.random.default_rng(0)
    for step in range(episodes):
        part = step / episodes
        chances = np.array([1.0, 0.0, max(part - 0.7, 0.0), min(1.0, 1.7 - part), 0.5])
        curriculum.update(np.arange(5), rng.random(5) < chances)
    return curriculum


outcomes = st.lists(st.lists(st.tuples(st.integers(0, 8), st.booleans()), max_size=20), max_size=20)


def fed(batches, **options) -> LevelCurriculum:
    curriculum = LevelCurriculum(9, **options)
    for batch in batches:
        levels, success = np.array([row[0] for row in batch], int), np.array([row[1] for row in batch], bool)
        curriculum.update(levels, success)
    return curriculum


@settings(max_examples=60)
@given(batches=outcomes, floor=st.floats(0.01, 1.0))
def test_weights_are_probabilities_above_the_floor(batches, floor):
    curriculum = fed(batches, floor=floor)
    weights = curriculum.weights()
    assert weights.shape == (9,)
    assert weights.dtype == np.float64
    assert weights.sum() == pytest.approx(1.0, abs=1e-12)
    assert (weights >= floor / 9 * (1 - 1e-12)).all()
    unseen = curriculum.state()["episodes"] == 0
    assert (curriculum.scores()[unseen] == 1.0).all()
    assert (weights[unseen] == weights.max()).all()


@settings(max_examples=60)
@given(batches=outcomes, data=st.data())
def test_the_order_within_an_update_has_no_effect(batches, data):
    shuffled = [data.draw(st.permutations(batch)) for batch in batches]
    assert fed(batches).weights().tobytes() == fed(shuffled).weights().tobytes()


def test_levels_in_motion_beat_solved_and_hopeless_ones():
    weights = measured().weights()
    for moving in (RISING, FALLING, EVEN, UNSEEN):
        for settled in (SOLVED, HOPELESS):
            assert weights[moving] > 2.5 * weights[settled]
    assert weights[SOLVED] == pytest.approx(0.2 / 6, rel=0.05)
    assert weights[HOPELESS] == pytest.approx(0.2 / 6, rel=0.05)
    assert weights.argmax() == UNSEEN


def test_progress_counts_at_equal_recent_success():
    steady, rising = LevelCurriculum(2), LevelCurriculum(2)
    for curriculum, before in ((steady, True), (rising, False)):
        for _ in range(150):
            curriculum.update(np.array([0, 0]), np.array([True, before]))
        for _ in range(60):
            curriculum.update(np.array([0, 0]), np.array([True, True]))
    assert steady.success_rates()[0] == pytest.approx(rising.success_rates()[0], abs=1e-4)
    assert rising.scores()[0] > 2 * steady.scores()[0]


def test_rates_and_counts():
    curriculum = LevelCurriculum(3)
    assert np.isnan(curriculum.success_rates()).all()
    curriculum.update(np.array([1, 1, 1, 2]), np.array([True, False, True, False]))
    assert curriculum.state()["episodes"].tolist() == [0, 3, 1]
    assert curriculum.state()["successes"].tolist() == [0, 2, 0]
    assert curriculum.success_rates()[1:] == pytest.approx([2 / 3, 0.0])
    assert curriculum.memory().total_bytes == 6 * 3 * 8


def test_a_restored_state_goes_on_bit_for_bit():
    rng = np.random.default_rng(4)
    curriculum, fresh, other = measured(), LevelCurriculum(6), LevelCurriculum(6)
    state = curriculum.state()
    fresh.restore(state)
    for _ in range(50):
        batch = rng.integers(0, 6, 8), rng.random(8) < 0.5
        for each in (curriculum, fresh, other):
            each.update(*batch)
    assert fresh.weights().tobytes() == curriculum.weights().tobytes()
    assert other.weights().tobytes() != curriculum.weights().tobytes()
    assert measured().weights().tobytes() != curriculum.weights().tobytes()
    assert state["episodes"].sum() == 1000  # a copy


def test_wrong_states_are_refused():
    curriculum = measured()
    before = curriculum.weights().tobytes()
    state = curriculum.state()
    for wrong, message in (
        ({}, "state: expected the arrays fast, .* got none named fast,"),
        (LevelCurriculum(5).state(), r"state\['fast'\]: expected float64 of shape \(6,\), got float64 of shape \(5,\)"),
        (state | {"episodes": np.zeros(6)}, r"state\['episodes'\]: expected int64 of shape \(6,\), got float64"),
    ):
        with pytest.raises(ConfigError, match=message):
            curriculum.restore(wrong)
        assert curriculum.weights().tobytes() == before


@pytest.mark.parametrize(
    ("levels", "success", "message"),
    [
        ([6], [True], "levels: expected numbers from 0 to 5, got 6 to 6"),
        ([-1, 2], [True, True], "levels: expected numbers from 0 to 5, got -1 to 2"),
        ([1.0], [True], "levels: expected whole numbers of shape"),
        ([[1]], [[True]], "levels: expected whole numbers of shape"),
        ([1, 2], [True], r"success: expected bool of shape \(2,\), got bool of shape \(1,\)"),
        ([1], [1], r"success: expected bool of shape \(1,\), got int64"),
    ],
)
def test_wrong_outcomes_are_refused(levels, success, message):
    curriculum = measured()
    before = curriculum.weights().tobytes()
    with pytest.raises(ConfigError, match=message):
        curriculum.update(np.array(levels), np.array(success))
    assert curriculum.weights().tobytes() == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_levels": 0}, "num_levels: expected a whole number from 1 to 2147483647, got 0"),
        ({"floor": 0.0}, r"floor: expected a share above 0, at most 1, got 0\.0"),
        ({"fast": 0.01}, r"slow and fast: expected 0 < slow < fast < 1, got 0\.02 and 0\.01"),
    ],
)
def test_wrong_arguments_are_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        LevelCurriculum(**{"num_levels": 3} | options)


class Learner:
    """A learner with a skill for each level, its chance of success: 20 levels are solved, 60 hopeless, 20 learnable.

    Learnable levels come in four rows of five. An episode on one improves it as far as the one before it in its row
    succeeds.
    """

    GOAL = 0.9

    def __init__(self, seed: int):
        self.rng = np.random.default_rng(seed)
        self.solved = np.ones(20)
        self.rows = np.full((4, 5), 0.02)

    @property
    def chances(self) -> np.ndarray:
        return np.concatenate([self.solved, np.zeros(60), self.rows.ravel()])

    def play(self, weights: np.ndarray, episodes: int) -> tuple[np.ndarray, np.ndarray]:
        levels = self.rng.choice(len(weights), episodes, p=weights)
        success = self.rng.random(episodes) < self.chances[levels]
        practice = np.bincount(levels, minlength=len(weights))[80:].reshape(4, 5)
        before = np.concatenate([np.ones((4, 1)), self.rows[:, :-1]], axis=1)
        self.rows += (1 - self.rows) * (1 - 0.98 ** (practice * before))
        return levels, success

    def episodes_to_goal(self, curriculum: LevelCurriculum | None) -> int:
        for update in range(1, 4000):
            weights = np.full(100, 0.01) if curriculum is None else curriculum.weights()
            levels, success = self.play(weights, 64)
            if curriculum is not None:
                curriculum.update(levels, success)
            if self.rows.mean() >= self.GOAL:
                return 64 * update
        raise AssertionError("the goal was not reached")


@pytest.mark.parametrize("seed", range(3))
def test_a_goal_is_reached_sooner_than_with_equal_weights(seed):
    by_weights = Learner(seed).episodes_to_goal(LevelCurriculum(100))
    equal = Learner(seed).episodes_to_goal(None)
    assert by_weights < 0.6 * equal


def test_a_curriculum_that_is_all_floor_gains_nothing():
    ratio = [
        Learner(s).episodes_to_goal(LevelCurriculum(100, floor=1.0)) / Learner(s).episodes_to_goal(None) for s in (0, 1)
    ]
    assert ratio == pytest.approx([1.0, 1.0])


# Backward starts: level 0 has four states (0 to 3), level 1 none, level 2 two (4 and 5)

STATE_LEVELS = np.array([0, 0, 0, 0, 2, 2])


def backward() -> BackwardStarts:
    return BackwardStarts(STATE_LEVELS, 3)


def play_from(starts: BackwardStarts, start: int, level: int, success: bool, episodes: int = 1) -> bool:
    changed = [starts.update(np.array([start]), np.array([level]), np.array([success])) for _ in range(episodes)]
    return any(changed)


def test_the_last_states_are_used_first():
    starts = backward()
    assert starts.state()["ahead"].tolist() == [4, 0, 2]
    assert starts.shares() == pytest.approx([0, 0, 0, 0.8, 0, 0.8])


def test_the_start_moves_back_as_success_passes_the_threshold():
    starts = backward()
    assert not play_from(starts, 3, 0, True, 9)
    assert play_from(starts, 3, 0, True)
    assert starts.state()["ahead"].tolist() == [3, 0, 2]
    assert starts.shares() == pytest.approx([0, 0, 0.4, 0.4, 0, 0.8])
    assert not play_from(starts, 3, 0, True, 50)  # only the earliest state moves the start
    assert play_from(starts, 2, 0, True, 10)
    assert play_from(starts, 1, 0, True, 10)
    assert starts.shares() == pytest.approx([0.8 / 3] * 3 + [0, 0, 0.8])
    assert play_from(starts, 0, 0, True, 10)
    assert starts.state()["ahead"].tolist() == [0, 0, 2]
    assert starts.shares() == pytest.approx([0, 0, 0, 0, 0, 0.8])
    assert not play_from(starts, 0, 0, True, 50)


@pytest.mark.parametrize(("wins", "moves"), [(7, True), (3, False)])
def test_the_threshold_decides(wins, moves):
    starts = backward()
    for number in range(100):
        play_from(starts, 3, 0, number % 10 < wins)
    assert (starts.state()["ahead"][0] < 4) == moves


def test_failures_forgotten_over_time_do_not_hold_a_level_back():
    starts = backward()
    assert not play_from(starts, 3, 0, False, 500)
    assert play_from(starts, 3, 0, True, 10)


def test_success_from_the_start_of_the_level_ends_it():
    starts = backward()
    assert not play_from(starts, -1, 0, False, 20)
    assert play_from(starts, -1, 0, True, 10)
    assert starts.state()["ahead"].tolist() == [0, 0, 2]
    assert not play_from(starts, -1, 1, True, 20)  # without start states nothing changes


def test_a_level_moves_by_one_state_an_update_whatever_the_order():
    rng = np.random.default_rng(0)
    begun, levels = np.array([3] * 60 + [5] * 40), np.array([0] * 60 + [2] * 40)
    success = np.arange(100) % 3 > 0
    results = []
    for _ in range(5):
        starts, order = backward(), rng.permutation(100)
        assert starts.update(begun[order], levels[order], success[order])
        results.append({name: array.tobytes() for name, array in starts.state().items()})
        assert starts.state()["ahead"].tolist() == [3, 0, 1]
    assert results == results[:1] * 5


def test_restored_starts_go_on_bit_for_bit():
    rng = np.random.default_rng(1)
    starts, fresh, other = backward(), backward(), backward()
    play_from(starts, 3, 0, True, 14)
    state = starts.state()
    fresh.restore(state)
    for _ in range(30):
        chosen = rng.integers(0, 6, 4)
        batch = chosen, STATE_LEVELS[chosen], rng.random(4) < 0.4
        assert starts.update(*batch) == fresh.update(*batch)
        other.update(*batch)
    assert {name: array.tobytes() for name, array in starts.state().items()} == {
        name: array.tobytes() for name, array in fresh.state().items()
    }
    assert starts.state()["earliest"].tobytes() != other.state()["earliest"].tobytes()
    assert state["ahead"].tolist() == [3, 0, 2]  # a copy
    with pytest.raises(
        ConfigError, match=r"state\['ahead'\]: expected int64 of shape \(3,\), got int64 of shape \(4,\)"
    ):
        starts.restore(BackwardStarts(STATE_LEVELS, 4).state())
