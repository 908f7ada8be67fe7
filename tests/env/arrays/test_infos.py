"""Infos in the form of Gymnasium's own vector environments: the same keys, values, dtypes and masks."""

from __future__ import annotations

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from nclone_env import NPlusPlusEnv, NPlusPlusVectorEnv, errors
from nclone_env.env.compiled.records import OUTCOMES

from ..bases import QUICK_DEATH, QUICK_WIN, choices

FIELDS = {"levels": (QUICK_WIN, QUICK_DEATH, "hazards"), "observations": ("game_state", "locals"), "max_frames": 100}
CONTRACTS = {"default": {}, "ring": {"copy": False, "ring": 1}}


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
@pytest.mark.parametrize("contract", CONTRACTS)
@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_infos_equal_those_of_gymnasium(mode, contract, fields):
    theirs, ours = sync(mode, **fields), native(mode, **CONTRACTS[contract], **fields)
    assert_equal(theirs.reset(seed=0)[1], ours.reset(seed=0)[1])
    ends, kept = 0, []
    for actions in choices(300, 4):
        (*_, terminated, truncated, left), right = theirs.step(actions), ours.step(actions)[4]
        assert_equal(left, right)
        kept.append((left, right))
        over = terminated | truncated
        ends += int(over.sum())
        if mode is AutoresetMode.DISABLED and over.any():
            left, right = (envs.reset(options={"reset_mask": over.copy()})[1] for envs in (theirs, ours))
            assert_equal(left, right)
    assert ends > 20
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
    with pytest.raises(errors.ConfigError, match=r"copy: expected True or False, got array"):
        NPlusPlusVectorEnv(num_envs=2, copy=np.zeros(3))
    with pytest.raises(errors.ConfigError, match="gymnasium_infos: expected True or False, got 'yes'"):
        native(AutoresetMode.NEXT_STEP, gymnasium_infos="yes")


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


def test_infos_of_groups():
    whole, groups = native(AutoresetMode.SAME_STEP), native(AutoresetMode.SAME_STEP, num_groups=2)
    whole.reset(seed=0)
    groups.reset(seed=0)
    for actions in choices(100, 4):
        groups.send(actions[:2], 0)
        groups.send(actions[2:], 1)
        parts = [groups.recv(group)[4] for group in (0, 1)]
        info = whole.step(actions)[4]
        for name in ("level", "outcome", "gold", "episode_steps"):
            np.testing.assert_array_equal(np.concatenate([part[name] for part in parts]), info[name])
    groups.close()


@pytest.mark.parametrize("contract", CONTRACTS)
def test_last_observations_own_their_memory(contract):
    """Nothing the environment or the caller writes later reaches them."""

    def last_observations(**options):
        envs = native(AutoresetMode.SAME_STEP, **CONTRACTS[contract], **options)
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
