"""Whose memory it is what a call returns: recycled or the caller's; and what a step allocates."""

import tracemalloc

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from nclone_env import NPlusPlusEnv, NPlusPlusVectorEnv, errors
from nclone_env.env.compiled.records import OUTCOMES

from ..bases import QUICK_DEATH, QUICK_WIN, assert_same, choices, copies

RESULTS = {"rewards": np.float64, "terminations": np.bool_, "truncations": np.bool_, "gold": np.int16}
FIELDS = {"levels": (QUICK_WIN, QUICK_DEATH, "hazards"), "observations": ("game_state", "locals"), "max_frames": 100}


def make(num_envs=4, **options):
    return NPlusPlusVectorEnv(None, num_envs, **{"levels": "hazards", "max_frames": 60} | options)


def arrays_of(step) -> dict[str, np.ndarray]:
    """Return every array that a step returned, by name."""
    observations, rewards, terminations, truncations, info = step
    flat = {**observations, "rewards": rewards, "terminations": terminations, "truncations": truncations}
    for key, value in info.items():
        flat |= {f"{key}/{name}": array for name, array in value.items()} if isinstance(value, dict) else {key: value}
    return flat


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_everything_that_is_kept_stays_as_it_was(mode):
    envs = make(autoreset_mode=mode)
    envs.reset(seed=1)
    kept = [envs.step(actions) for actions in choices(60, 4)]
    expected = [copies(arrays_of(step)) for step in kept]
    for actions in choices(60, 4, seed=6):
        envs.step(actions)
    for step, before in zip(kept, expected, strict=True):
        assert_same(arrays_of(step), before)


def test_results_go_into_the_arrays_of_the_caller_too():
    envs, plain = make(), make()
    out = {name: np.full(space.shape, 7, space.dtype) for name, space in envs.observation_space.items()}
    out |= {name: np.full(4, 7, dtype) for name, dtype in RESULTS.items()}
    envs.reset(seed=1, out=out)
    plain.reset(seed=1)
    for actions in choices(60, 4):
        step = envs.step(actions, out=out)
        assert all(array is out[name] for name, array in step[0].items())
        assert step[1] is out["rewards"]
        assert step[2] is out["terminations"]
        assert step[3] is out["truncations"]
        assert step[4]["gold"] is out["gold"]
        assert_same(arrays_of(step), arrays_of(plain.step(actions)))


def test_results_of_another_dtype_are_refused():
    envs = make(observations="game_state")
    out = {"game_state": np.zeros((4, 30), np.float32)}
    envs.reset(seed=1)
    for name, expected, got in (("rewards", "float64 or float32", "float16"), ("gold", "int16", "int32")):
        with pytest.raises(errors.BufferError, match=rf"out\['{name}'\]: expected {expected} \(4,\), got {got} \(4,\)"):
            envs.step([0, 0, 0, 0], out=out | {name: np.zeros(4, got)})


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_rewards_can_be_written_as_float32(mode):
    envs, plain = make(autoreset_mode=mode, observations="game_state"), make(autoreset_mode=mode)
    out = {"game_state": np.zeros((4, 30), np.float32), "rewards": np.full(4, 7, np.float32)}
    envs.reset(seed=1, out=out)
    plain.reset(seed=1)
    assert not out["rewards"].any()
    rounded = 0
    for actions in choices(60, 4):
        rewards, exact = envs.step(actions, out=out)[1], plain.step(actions)[1]
        assert rewards is out["rewards"]
        assert rewards.tobytes() == exact.astype(np.float32).tobytes()
        rounded += int((rewards != exact).sum())
    assert rounded > 20


def peaks(envs, steps, **arguments) -> list[int]:
    """Return the peaks of traced memory of vector steps, bytes above what was there before each."""
    found = []
    for row in steps[:20]:
        envs.step(row, **arguments)
    tracemalloc.start()
    try:
        for row in steps[20:]:
            before = tracemalloc.get_traced_memory()[0]
            tracemalloc.reset_peak()
            envs.step(row, **arguments)
            found.append(tracemalloc.get_traced_memory()[1] - before)
    finally:
        tracemalloc.stop()
    return found


@pytest.mark.parametrize("mode", list(AutoresetMode))
@pytest.mark.parametrize("observations", ["game_state", ("game_state", "player_frame", "global_view")])
def test_a_step_with_out_allocates_less_than_a_kilobyte(mode, observations):
    envs = make(256, num_threads=1, autoreset_mode=mode, observations=observations)
    out = {name: np.zeros(space.shape, space.dtype) for name, space in envs.observation_space.items()}
    envs.reset(seed=1, out=out)
    assert max(peaks(envs, choices(60, 256), out=out)) < 1024


def test_a_default_step_allocates_views_alone():
    envs = make(256, num_threads=1)
    envs.reset(seed=1)
    assert max(peaks(envs, choices(60, 256))) < 8 * 1024


def sync(mode, num_envs=4, **fields):
    return SyncVectorEnv([lambda: NPlusPlusEnv(**FIELDS | fields)] * num_envs, autoreset_mode=mode)


def native(mode, num_envs=4, **options):
    return NPlusPlusVectorEnv(None, num_envs, autoreset_mode=mode, **{"gymnasium_infos": True, **FIELDS, **options})


def assert_equal(left, right, path="info") -> None:
    """Check that two infos are equal in keys, kinds, dtypes and values."""
    assert type(left) is type(right), path
    if isinstance(left, dict):
        assert left.keys() == right.keys(), path
        for name in left:
            assert_equal(left[name], right[name], f"{path}/{name}")
    elif isinstance(left, np.ndarray):
        assert (left.dtype, left.shape) == (right.dtype, right.shape), path
        if left.dtype == object:
            for one, other in zip(left, right, strict=True):
                assert_equal(one, other, path)
        else:
            np.testing.assert_array_equal(left, right, path)
    else:
        assert left == right, path


@pytest.mark.parametrize("fields", [{}, {"observations": "game_state", "dict_observations": False}], ids=len)
@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_infos_equal_those_of_gymnasium(mode, fields):
    theirs, ours = sync(mode, **fields), native(mode, **fields)
    assert_equal(theirs.reset(seed=0)[1], ours.reset(seed=0)[1])
    ends, kept = 0, []
    for actions in choices(150, 4):
        (*_, terminated, truncated, left), right = theirs.step(actions), ours.step(actions)[4]
        assert_equal(left, right)
        kept.append((left, right))
        over = terminated | truncated
        ends += int(over.sum())
        if mode is AutoresetMode.DISABLED and over.any():
            left, right = (envs.reset(options={"reset_mask": over.copy()})[1] for envs in (theirs, ours))
            assert_equal(left, right)
    assert ends > 10
    for left, right in kept:  # all arrays of an info are its own
        assert_equal(left, right)


def test_by_default_infos_are_columns_of_numbers():
    theirs, ours = sync(AutoresetMode.NEXT_STEP), native(AutoresetMode.NEXT_STEP, gymnasium_infos=False)
    left, right = theirs.reset(seed=0)[1], ours.reset(seed=0)[1]
    with pytest.raises(AssertionError):
        assert_equal(left, right)
    for actions in choices(300, 4):
        assert [ours.level_names[level] for level in right["level"]] == left["level"].tolist()
        assert [OUTCOMES[outcome] for outcome in right["outcome"]] == left["outcome"].tolist()
        left, right = theirs.step(actions)[4], ours.step(actions)[4]


def test_arguments_are_truth_values():
    for value in ("'yes'", "array"):
        with pytest.raises(errors.ConfigError, match=f"gymnasium_infos: expected True or False, got {value}"):
            native(AutoresetMode.NEXT_STEP, gymnasium_infos="yes" if value == "'yes'" else np.zeros(3))


def test_with_arrays_of_the_caller():
    mode = AutoresetMode.SAME_STEP
    theirs, ours = sync(mode), native(mode)
    out = {name: np.zeros(space.shape, space.dtype) for name, space in ours.observation_space.items()}
    out |= {"rewards": np.zeros(4, np.float32), "gold": np.zeros(4, np.int16)}
    theirs.reset(seed=0)
    ours.reset(seed=0, out=out)
    for actions in choices(100, 4):
        assert_equal(theirs.step(actions)[4], ours.step(actions, out=out)[4])


def test_infos_of_a_restored_environment_are_those_of_a_single_one():
    env, envs = NPlusPlusEnv(**FIELDS), native(AutoresetMode.NEXT_STEP)
    envs.reset(seed=0)
    env.reset(seed=0)
    for _ in range(5):
        env.step(2)
    info = env.set_state(env.get_state())[1]
    assert envs.set_state(1, env.get_state())[1] == info
    assert envs.copy_world(1, 2)[1] == info
    assert envs.gather([1, 0, 2, 3])[1]["level"][0] == info["level"]


def test_last_observations_own_their_memory():
    """Nothing the environment or the caller writes later reaches them."""

    def last_observations(**options):
        envs = native(AutoresetMode.SAME_STEP, **options)
        envs.reset(seed=0)
        for actions in choices(300, 4):
            info = envs.step(actions)[4]
            if "final_obs" in info:
                yield info["final_obs"]

    arrays = [array for final in last_observations() for one in final if one is not None for array in one.values()]
    assert len(arrays) > 40
    assert all(array.base is None for array in arrays)
    before = [array.copy() for array in arrays[1:]]
    arrays[0][...] = -1
    for array, kept in zip(arrays[1:], before, strict=True):
        np.testing.assert_array_equal(array, kept)
    pooled = next(last_observations(gymnasium_infos=False))
    assert pooled["game_state"].base is not None, "by default they are rows of a shared block"
