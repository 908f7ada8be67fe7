"""The vector environment: ends of episodes in all modes, levels by weight or assigned, starts given one by one."""

import gymnasium
import numpy as np
import pytest
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode

from nclone_env import NPlusPlusEnv, NPlusPlusVectorEnv, errors, simulate
from nclone_env.config import OBSERVATION_NAMES
from nclone_env.env.compiled.records import OUTCOMES
from nclone_env.env.compiled.step_arrays import level_thresholds
from nclone_env.game import CELEBRATING, DEAD

from .bases import QUICK_DEATH, QUICK_WIN, RIGHT, RIGHT_INPUT, WALK, assert_same, choices, copies

NUM_ENVS, STEPS = 8, 250
FIELDS = {"levels": (QUICK_WIN, QUICK_DEATH, "hazards"), "max_frames": 90, "observations": OBSERVATION_NAMES}
COLUMNS = ("level", "frames", "outcome", "gold", "episode_frames", "episode_steps", "episode_return")
NUM_LEVELS = 6


def ending(mode: AutoresetMode, **fields) -> NPlusPlusVectorEnv:
    return NPlusPlusVectorEnv(None, NUM_ENVS, autoreset_mode=mode, **FIELDS | fields)


@pytest.fixture(scope="module")
def by_hand():
    """Return the steps of a run without autoreset that resets what has ended: (first, [(step, masked reset)])."""
    envs = ending(AutoresetMode.DISABLED)
    first = copies(envs.reset(seed=6)[0])
    steps, outcomes = [], set()
    for actions in choices(STEPS, NUM_ENVS):
        observations, rewards, terminated, truncated, info = envs.step(actions)
        over = terminated | truncated
        step = (copies(observations), rewards, terminated, truncated, info)
        outcomes |= {OUTCOMES[code] for code in info["outcome"][over]}
        again = envs.reset(options={"reset_mask": over}) if over.any() else (observations, info)
        steps.append((step, (copies(again[0]), again[1])))
    assert outcomes == {"won", "died", "timed_out"}
    return first, steps


def test_same_step_returns_the_reset_and_keeps_the_end(by_hand):
    first, steps = by_hand
    envs = ending(AutoresetMode.SAME_STEP)
    assert_same(envs.reset(seed=6)[0], first)
    for actions, (step, again) in zip(choices(STEPS, NUM_ENVS), steps):
        observations, rewards, terminated, truncated, info = envs.step(actions)
        assert_same(observations, again[0])
        for left, right in zip((rewards, terminated, truncated), step[1:4]):
            np.testing.assert_array_equal(left, right)
        for name in COLUMNS:
            np.testing.assert_array_equal(info[name], step[4][name])
        check_final(info, terminated | truncated, step)


def check_final(info, over, step) -> None:
    assert ("final_obs" in info) == over.any()
    if not over.any():
        return
    np.testing.assert_array_equal(info["_final_obs"], over)
    np.testing.assert_array_equal(info["_final_info"], over)
    for name, array in info["final_obs"].items():
        np.testing.assert_array_equal(array, step[0][name][over])
    for name in COLUMNS:
        np.testing.assert_array_equal(info["final_info"][name][over], step[4][name][over])
        np.testing.assert_array_equal(info["final_info"][f"_{name}"], over)


def test_next_step_spends_a_step_on_the_reset():
    waiting, resetting = ending(AutoresetMode.DISABLED), ending(AutoresetMode.NEXT_STEP)
    waiting.reset(seed=6)
    resetting.reset(seed=6)
    over = np.zeros(NUM_ENVS, np.bool_)
    ends = 0
    for actions in choices(STEPS, NUM_ENVS):
        expected = waiting.step(actions)
        if over.any():
            expected = (waiting.reset(options={"reset_mask": over})[0], *expected[1:])
        observations, rewards, terminated, truncated, info = resetting.step(actions)
        assert_same(observations, expected[0])
        assert not terminated[over].any()
        assert not truncated[over].any()
        for name in ("frames", "episode_frames", "episode_steps", "episode_return", "gold", "outcome"):
            assert not info[name][over].any()
        assert not rewards[over].any()
        for left, right in zip((rewards, terminated, truncated), expected[1:4]):
            np.testing.assert_array_equal(left[~over], right[~over])
        over = terminated | truncated
        ends += over.sum()
    assert ends > 30


def test_np_random_is_that_of_gymnasiums_environments():
    envs = NPlusPlusVectorEnv(None, 3, observations="game_state")
    theirs, synced = (
        gymnasium.make_vec("CartPole-v1", 3, vectorization_mode=mode) for mode in ("vector_entry_point", "sync")
    )
    for seed in (5, np.int64(7), 2**70):
        for each in (envs, theirs):
            each.reset(seed=int(seed) if each is theirs else seed)
        assert envs.np_random_seed == theirs.np_random_seed == seed
        assert type(envs.np_random_seed) is int
        assert envs.np_random.bytes(16) == seeding.np_random(int(seed))[0].bytes(16)
    for seeds in ([5, 9, 7], range(3), np.array([3, 1, 2])):
        envs.reset(seed=seeds)
        synced.reset(seed=[int(each) for each in seeds])
        assert envs.np_random_seed == synced.np_random_seed
    envs.reset(seed=[4, None, 6])
    assert envs.np_random_seed == (4, None, 6)
    drawn = envs.np_random.integers(1 << 40)
    envs.reset()
    assert envs.np_random_seed == (4, None, 6)
    assert envs.np_random.integers(1 << 40) != drawn
    envs.close()


def test_libraries_that_look_at_the_base_classes_recognise_it():
    """As skrl does: ``__bases__`` of the class, not what it inherits further up."""
    assert gymnasium.vector.VectorEnv in NPlusPlusVectorEnv.__bases__
    assert gymnasium.Env in NPlusPlusEnv.__bases__


def test_disabled_waits_where_it_ended():
    envs = ending(AutoresetMode.DISABLED, levels=(QUICK_WIN,))
    envs.reset()
    actions = np.array([RIGHT, RIGHT] + [0] * (NUM_ENVS - 2))
    while not (last := envs.step(actions))[2].any():
        pass
    kept = copies(last[0])
    observations, rewards, terminated, _, info = envs.step(actions)
    for name in observations:
        np.testing.assert_array_equal(observations[name][:2], kept[name][:2])
    assert terminated.tolist() == [True, True] + [False] * (NUM_ENVS - 2)
    assert rewards[:2].tolist() == [0, 0]
    assert info["frames"].tolist() == [0, 0] + [4] * (NUM_ENVS - 2)
    assert info["episode_return"][:2].tolist() == last[4]["episode_return"][:2].tolist()


def test_a_reset_mask_leaves_the_others_alone():
    envs = ending(AutoresetMode.DISABLED, levels="first-steps")
    envs.reset(seed=1)
    for _ in range(5):
        before = copies(envs.step(np.full(NUM_ENVS, RIGHT))[0])
    mask = np.arange(NUM_ENVS) % 2 == 0
    observations, info = envs.reset(options={"reset_mask": mask, "level": 4})
    for name in observations:
        np.testing.assert_array_equal(observations[name][~mask], before[name][~mask])
    assert info["episode_frames"].tolist() == [0, 20] * (NUM_ENVS // 2)
    assert (info["level"][mask] == 4).all()
    assert (observations["game_state"][mask, 29] == 1).all()


def test_a_reset_mask_restarts_only_the_seeds_it_names():
    left, right = (ending(AutoresetMode.DISABLED, levels=("hazards", "jumps")) for _ in range(2))
    left.reset(seed=1)
    right.reset(seed=1)
    mask = np.arange(NUM_ENVS) < 3
    left.reset(seed=50, options={"reset_mask": mask})
    levels = [left.reset()[1]["level"] for _ in range(10)]
    others = [right.reset()[1]["level"] for _ in range(10)]
    assert all((a[3:] == b[3:]).all() for a, b in zip(levels, others))
    assert any((a[:3] != b[:3]).any() for a, b in zip(levels, others))


@pytest.mark.parametrize(("level", "state", "outcome"), [(QUICK_WIN, CELEBRATING, "won"), (QUICK_DEATH, DEAD, "died")])
def test_a_step_stops_at_the_frame_that_ends_the_episode(level, state, outcome):
    last = 1 + int(np.argmax(simulate(level, [RIGHT_INPUT] * 60).state == state))
    assert 1 < last < 60
    for frame_skip in (1, 4, 60):
        env = NPlusPlusEnv(levels=level, frame_skip=frame_skip, observations="game_state")
        env.reset()
        frames, over = [], False
        while not over:
            *_, over, truncated, info = env.step(RIGHT)
            assert not truncated
            frames.append(info["frames"])
        assert sum(frames) == info["episode_frames"] == last
        assert frames[:-1] == [frame_skip] * (len(frames) - 1)
        assert (info["outcome"], info["episode_steps"]) == (outcome, len(frames))


def test_the_time_limit_truncates_in_the_middle_of_a_step():
    env = NPlusPlusEnv(levels=WALK, max_frames=10)
    env.reset()
    steps = [env.step(0) for _ in range(3)]
    assert [step[4]["frames"] for step in steps] == [4, 4, 2]
    assert [step[2:4] for step in steps] == [(False, False), (False, False), (False, True)]
    assert [step[4]["outcome"] for step in steps] == ["playing", "playing", "timed_out"]
    assert [step[0]["game_state"][29] for step in steps] == pytest.approx([0.6, 0.2, 0.0])


@pytest.mark.parametrize(("level", "state"), [(QUICK_WIN, CELEBRATING), (QUICK_DEATH, DEAD)])
@pytest.mark.parametrize("spare", [0, -1])
def test_an_end_on_the_last_frame_is_no_timeout(level, state, spare):
    last = 1 + int(np.argmax(simulate(level, [RIGHT_INPUT] * 60).state == state))
    env = NPlusPlusEnv(levels=level, max_frames=last + spare, frame_skip=60)
    env.reset()
    *_, terminated, truncated, info = env.step(RIGHT)
    assert (terminated, truncated) == (spare == 0, spare < 0)
    assert info["frames"] == last + spare


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


class Column:
    """A row or a column of a table, as pandas has them: items by keys, while iteration gives the items."""

    def __init__(self, items):
        self._items = dict(items)

    def keys(self):
        return self._items.keys()

    def __getitem__(self, key):
        return self._items[key]

    def __iter__(self):
        return iter(self._items.values())


@pytest.mark.parametrize("several", [np.array, iter, lambda values: Column(enumerate(values))])
def test_what_a_reset_takes_may_come_from_tables(several):
    envs, values = make(3), [3, 1, 2]
    expected = copies(envs.reset(seed=values)[0])
    assert_same(envs.reset(seed=several(values))[0], expected)
    assert envs.np_random_seed == (3, 1, 2)
    assert envs.reset(options=Column({"level": several(values)}))[1]["level"].tolist() == values
    states = [envs.get_state(index) for index in (2, 0, 1)]
    assert envs.reset(options={"state": iter(states)})[1]["level"].tolist() == [2, 3, 1]
    envs.reset(options=Column({"level": np.int64(4), "reset_mask": [True, False, True]}))
    assert envs.step([0, 0, 0])[4]["level"].tolist() == [4, 3, 4]
    envs.set_level_weights(Column({"first-steps/03-drop": 1.0}))  # by name, not by place
    assert envs.reset()[1]["level"].tolist() == [2, 2, 2]
    assert make(1, reward=Column({"gold": 2.0})).config.reward.gold == 2.0


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
        (lambda e: e.set_level_weights([1, 2]), "ConfigError", r"weights: expected one number for each of the 6"),
        (lambda e: e.set_level_weights([0] * 6), "ConfigError", r"weights: expected finite .* not all 0, got \[0.0"),
        (lambda e: e.set_level_weights([1] * 5 + [-1]), "ConfigError", r"weights: expected finite numbers of at"),
        (lambda e: e.set_level_weights([1] * 5 + [np.nan]), "ConfigError", r"weights: expected finite numbers"),
        (lambda e: e.set_level_weights({"x": 1}), "UnknownLevelError", r"weights: expected a name or .*, got 'x'"),
        (lambda e: e.assign_levels([0]), "ConfigError", r"levels: expected one level or None for each of the 2 env"),
        (lambda e: e.assign_levels("first-steps"), "ConfigError", r"levels: expected one level or None for each"),
        (lambda e: e.assign_levels([0, 6]), "UnknownLevelError", r"levels: expected a name or an index below 6, got 6"),
        (lambda e: e.reset(options={"level": [0]}), "ConfigError", r"options\['level'\]: expected one level or None"),
        (lambda e: e.reset(options={"state": [None]}), "ConfigError", r"options\['state'\]: expected one, or a"),
    ],
)
def test_what_does_not_fit_is_refused(call, error, message):
    envs = make(2)
    envs.reset(seed=1)
    with pytest.raises(getattr(errors, error), match=message):
        call(envs)
    assert len({envs.reset()[1]["level"][0] for _ in range(30)}) > 3  # levels are still drawn
