"""Stacks gathered from the storage equal those of the environment bit for bit; policies on stacks save and resume."""

import numpy as np
import pytest
import torch
from gymnasium.vector import AutoresetMode

from nclone_env import NPlusPlusVectorEnv
from nclone_env.errors import CheckpointError
from nclone_env.game import Action
from nclone_env.train.collect.evaluate import evaluate
from nclone_env.train.collect.rollout import RolloutStorage
from nclone_env.train.config import TrainConfig
from nclone_env.train.loop import train
from nclone_env.train.policies.checkpoint import load_checkpoint, restore_config, restore_policy
from nclone_env.train.policies.network import ActorCritic

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


def test_policy_sees_every_observation_of_a_stack():
    """Stacked pictures become channels, stacked vectors one long vector; every entry affects the value."""
    shapes = {"game_state": (3, 30), "player_frame": (3, 40, 40, 1)}
    generator = torch.Generator().manual_seed(0)
    policy = ActorCritic(shapes, hidden_size=16, generator=generator)
    seen = {
        "game_state": torch.rand(2, 3, 30, generator=generator),
        "player_frame": torch.randint(0, 256, (2, 3, 40, 40, 1), dtype=torch.uint8, generator=generator),
    }
    assert policy.encoders["player_frame"].patches.in_features == 3 * 8 * 8
    values = policy(seen)[1]
    for name in shapes:
        for place in range(3):
            other = {**seen, name: seen[name].clone()}
            other[name][:, place] = 0
            assert (policy(other)[1] != values).all()


def test_a_policy_with_stacks_is_saved_evaluated_and_resumed(tmp_path):
    fields = {"num_envs": 4, "num_steps": 8, "num_minibatches": 2, "hidden_size": 8, "max_frames": 40}
    config = TrainConfig.of(frame_stack=3, total_timesteps=96, output=tmp_path, name="run", **fields)
    result = train(config)
    content = load_checkpoint(result.checkpoint)
    assert content.observation_shapes == {"game_state": [3, 30]}
    policy = restore_policy(content)
    environment = restore_config(content).evaluated_environment
    assert environment.observation.frame_stack == 3
    first, *_ = evaluate(policy, environment, episodes_per_level=2)
    assert first.mean_frames > 0
    longer = {"total_timesteps": 160, "output": tmp_path, **fields}
    assert train(TrainConfig.of(frame_stack=3, **longer), resume=result.checkpoint).counters.timesteps == 160
    with pytest.raises(CheckpointError, match="frame_stack: expected 3, as in the run to resume, got 2"):
        train(TrainConfig.of(frame_stack=2, **longer), resume=result.checkpoint)
