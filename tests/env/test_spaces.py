"""Spaces that do not grow with the batch are as good as Gymnasium's own; actions are checked."""

import copy
import pickle

import numpy as np
import pytest
from gymnasium.vector.utils import batch_space

from nclone_env import Action, EnvironmentConfig, NPlusPlusEnv, NPlusPlusVectorEnv
from nclone_env.config import OBSERVATION_NAMES
from nclone_env.env.spaces import observation_space
from nclone_env.errors import ActionError
from nclone_env.game import INPUT_OF_ACTION
from nclone_env.obs.spec import observation_specs

from .bases import assert_same

# Without levels a graph has no entities, and older versions of Gymnasium print empty spaces differently.
SPECS = tuple(
    spec for spec in observation_specs(EnvironmentConfig(observations=OBSERVATION_NAMES)) if 0 not in spec.shape
)
INTEGERS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]


def pickled(space):
    return pickle.loads(pickle.dumps(space))


@pytest.mark.parametrize("remake", [lambda space: space, copy.deepcopy, pickled])
def test_a_batched_space_equals_the_one_of_gymnasium(remake):
    space, expected = remake(observation_space(SPECS, None, 3)), batch_space(observation_space(SPECS), 3)
    assert space == expected
    assert repr(space) == repr(expected)
    assert observation_space(SPECS, None, 4) != expected
    for name, box in expected.items():
        for field in ("low", "high", "bounded_below", "bounded_above"):
            ours, theirs = getattr(space[name], field), getattr(box, field)
            assert ours.dtype == theirs.dtype
            assert np.array_equal(ours, theirs)


def test_samples_are_in_the_space_and_the_seed_decides_them():
    space, expected = observation_space(SPECS, None, 3), batch_space(observation_space(SPECS), 3)
    space.seed(5)
    expected.seed(5)
    sample, other = space.sample(), expected.sample()
    assert sample in space
    assert all(np.array_equal(sample[name], other[name]) for name in other)
    sample["entity_count"][1] = 255
    assert sample not in space


def test_bounds_take_no_memory():
    space = observation_space(SPECS, None, 1 << 20)  # a terabyte if every bound were stored
    for box in space.values():
        assert box.low.strides == (0,) * box.low.ndim
        assert box.bounded_above.base.nbytes == 1


def make(num_envs=2, action_space="discrete"):
    envs = NPlusPlusVectorEnv(None, num_envs, observations="game_state", action_space=action_space)
    envs.reset(seed=1)
    return envs


def test_the_numbers_are_three_times_jump_plus_direction():
    assert [action.name for action in Action] == ["NONE", "LEFT", "RIGHT", "JUMP", "JUMP_LEFT", "JUMP_RIGHT"]
    assert [int(action) for action in Action] == list(range(6))
    assert INPUT_OF_ACTION == (0, 4, 2, 1, 5, 3)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_any_integer_dtype_is_accepted(dtype):
    ours, plain = make(), make()
    for actions in ([2, 5], [5, 0], [1, 4]):
        assert_same(ours.step(np.array(actions, dtype))[0], plain.step(actions)[0])
    env = NPlusPlusEnv(observations="game_state")
    env.reset()
    env.step(dtype(5))
    env.step(np.array(5, dtype))


def test_members_of_the_enumeration_are_actions():
    ours, plain = make(), make()
    assert_same(ours.step([Action.JUMP_RIGHT, Action.LEFT])[0], plain.step([5, 1])[0])


def test_multi_discrete_plays_what_discrete_does():
    discrete, multi = make(6), make(6, "multi_discrete")
    draw = np.random.default_rng(3)
    for _ in range(80):
        actions = draw.permutation(6)
        pairs = np.stack([actions % 3, actions // 3], axis=1)
        left, right = discrete.step(actions), multi.step(pairs)
        assert_same(left[0], right[0])
        np.testing.assert_array_equal(left[1], right[1])


def test_multi_discrete_of_a_single_environment():
    left = NPlusPlusEnv(observations="game_state")
    right = NPlusPlusEnv(observations="game_state", action_space="multi_discrete")
    left.reset(seed=2)
    right.reset(seed=2)
    for action in range(6):
        assert_same(left.step(action)[0], right.step([action % 3, action // 3])[0])
    assert right.action_space.sample() in right.action_space


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (6, r"action: expected 0\.\.5, got 6"),
        (np.uint64(2**63), r"action: expected 0\.\.5, got 9223372036854775808"),
        (1.0, r"expected an integer dtype, got float64; sample from the action space or convert with \.astype"),
        (True, "expected an integer dtype, got bool"),
        ("jump", "expected an integer dtype, got <U4"),
        ([1], r"expected a single number for the discrete space, got shape \(1,\)"),
        ([[1], [1, 2]], r"expected an array of integers, got \[\[1\], \[1, 2\]\]"),
    ],
)
def test_a_wrong_action_is_refused(action, message):
    env = NPlusPlusEnv(observations="game_state")
    env.reset()
    with pytest.raises(ActionError, match=message):
        env.step(action)
    assert env.step(0)[4]["episode_frames"] == 4


@pytest.mark.parametrize(
    ("actions", "message"),
    [
        ([0, 6], r"action: expected 0\.\.5, got 6 in environment 1"),
        ([-3, 6], r"action: expected 0\.\.5, got -3 in environment 0"),
        ([0], r"expected shape \(2,\) for the discrete space, got shape \(1,\)"),
        (0, r"expected shape \(2,\) for the discrete space, got shape \(\)"),
        ([[0, 0]], r"expected shape \(2,\) for the discrete space, got shape \(1, 2\)"),
        ([0.0, 1.0], "expected an integer dtype, got float64"),
        (np.array([True, False]), "expected an integer dtype, got bool"),
    ],
)
def test_wrong_actions_of_a_vector_environment_are_refused(actions, message):
    envs = make()
    with pytest.raises(ActionError, match=message):
        envs.step(actions)
    assert envs.step([0, 0])[4]["episode_frames"].tolist() == [4, 4]


@pytest.mark.parametrize(
    ("actions", "message"),
    [
        ([[0, 0], [3, 0]], r"expected \[direction 0\.\.2, jump 0\.\.1\], got \[3 0\] in environment 1"),
        ([[0, 2], [0, 0]], r"got \[0 2\] in environment 0"),
        ([[0, -1], [0, 0]], r"got \[ 0 -1\] in environment 0"),
        ([0, 0], r"expected shape \(2, 2\) for the multi_discrete space, got shape \(2,\)"),
    ],
)
def test_wrong_pairs_are_refused(actions, message):
    with pytest.raises(ActionError, match=message):
        make(action_space="multi_discrete").step(actions)
