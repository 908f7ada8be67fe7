"""Stacks gathered from the storage equal those of the environment bit for bit; policies on stacks save and resume."""

import numpy as np
import pytest
import torch
from gymnasium.vector import AutoresetMode

from nclone_env import NPlusPlusVectorEnv
from nclone_env.game import Action
from nclone_env.train.collect.rollout import RolloutStorage

from ..env.bases import QUICK_DEATH, QUICK_WIN, assert_same, choices, copies

NUM_ENVS = 6
FIELDS = {"observations": ("game_state", "player_frame"), "levels": (QUICK_WIN, QUICK_DEATH), "max_frames": 40}


def make(depth):
    observation = {"frame_stack": depth}
    return NPlusPlusVectorEnv(
        None, NUM_ENVS, autoreset_mode=AutoresetMode.SAME_STEP, num_threads=1, observation=observation, **FIELDS
    )


def plain(tensors):
    return {name: tensor.numpy() for name, tensor in tensors.items()}


def fill(columns, single, stacked, actions, first):
    """Play a rollout in both environments; return its stacks and the numbers of terminations and truncations."""
    stacks, outcomes = [copies(first)], np.zeros(2, int)
    columns.restart()
    for row in actions:
        assert_same(columns.observation(), stacks[-1])
        _, *outcome, info = single.step(row, out=columns.step_outputs())
        after, *_, stacked_info = stacked.step(row)
        over = np.flatnonzero(outcome[1] | outcome[2])
        if len(over):
            assert_same(columns.stacked_finals(over, info["final_obs"]), stacked_info["final_obs"])
        columns.record_outcome(*outcome)
        outcomes += outcome[1].sum(), outcome[2].sum()
        stacks.append(copies(after))
    assert columns.full
    assert_same(columns.observation(), stacks[-1])
    return stacks, outcomes


@pytest.mark.parametrize(("length", "depth"), [(12, 4), (2, 4), (5, 1), (3, 3)])
def test_stacks_are_those_of_the_environment(length, depth):
    """Across terminations, truncations and rollout boundaries, and for rollouts shorter than a stack."""
    single, stacked = make(1), make(depth)
    storage = RolloutStorage(length, NUM_ENVS, single.single_observation_space, depth)
    columns = storage.columns(0, NUM_ENVS)
    single.reset(seed=4, out=columns.reset_outputs())
    now = stacked.reset(seed=4)[0]
    ends, random = np.zeros(2, int), np.random.default_rng(2)
    actions = choices(40 // length * length, NUM_ENVS)
    actions[:, ::2] = Action.RIGHT
    gathered = storage.observation_buffers(length * NUM_ENVS)
    for rows in actions.reshape(-1, length, NUM_ENVS):
        stacks, outcomes = fill(columns, single, stacked, rows, now)
        ends, now = ends + outcomes, stacks[-1]
        order = random.permutation(length * NUM_ENVS)
        storage.gather(torch.from_numpy(order), gathered)
        for place, step in enumerate(order.tolist()):
            expected = {name: array[step % NUM_ENVS] for name, array in stacks[step // NUM_ENVS].items()}
            assert_same(plain({name: array[place] for name, array in gathered.items()}), expected)
        storage.continue_from_end()
    assert ends.min() > 2, "episodes are terminated and truncated"


def test_each_observation_is_stored_once():
    space = make(1).single_observation_space
    observation = 30 * 4 + 128 * 128
    totals = {}
    for depth in (1, 2, 4):
        storage = RolloutStorage(8, NUM_ENVS, space, depth)
        stored = sum(array.nbytes for array in storage.observation_arrays.values())
        assert stored == (8 + depth) * NUM_ENVS * observation
        totals[depth] = storage.memory().total_bytes
        inputs = storage.columns(0, NUM_ENVS).memory().total_bytes
        assert inputs == (depth * NUM_ENVS * observation if depth > 1 else 0)
    starts = 2 * NUM_ENVS
    assert totals[4] - totals[2] == 2 * NUM_ENVS * observation + starts
