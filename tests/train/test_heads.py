"""Separate heads for direction and jump, from the gradient to the evaluation of a checkpoint."""

import numpy as np
import pytest
import torch
from gymnasium import spaces

from nclone_env.config import EnvironmentConfig
from nclone_env.env.actions import check_actions
from nclone_env.env.threads import Job, Workers
from nclone_env.errors import CheckpointError, ConfigError
from nclone_env.train.collect.environments import make_environments
from nclone_env.train.collect.evaluate import evaluate
from nclone_env.train.collect.rollout import RolloutStorage
from nclone_env.train.config import TrainConfig
from nclone_env.train.learn.cloning import CloningSettings, clone
from nclone_env.train.learn.episode_data import EpisodeData
from nclone_env.train.learn.reference import Reference
from nclone_env.train.loop import train
from nclone_env.train.network.autograd import Autograd
from nclone_env.train.network.distribution import joined, separated
from nclone_env.train.network.mlp import MLP
from nclone_env.train.network.parameters import FlatParameters
from nclone_env.train.network.protocols import LossScaling
from nclone_env.train.policy import HEADS, ActorCritic, make_policy
from nclone_env.train.runs.checkpoint import load_checkpoint, restore_configs, restore_policy

from .runs import config, contents, until
from .stub import LineWorld

SEPARATE = HEADS["separate"]
STEPS, ENVS = 8, 33
SPACE = spaces.Dict({"game_state": spaces.Box(-1, 1, (30,), np.float32)})


def make(seed=3, scale=0.1):
    """Return a policy with separate heads that is some way off uniform, and its parameters."""
    policy = ActorCritic({"game_state": (30,)}, SEPARATE, hidden_size=32, generator=torch.Generator().manual_seed(seed))
    parameters = FlatParameters(policy)
    parameters.vector += scale * np.random.default_rng(seed).standard_normal(len(parameters.vector), np.float32)
    return policy, parameters


def random_rollout():
    random, shape = np.random.default_rng(5), (STEPS, ENVS)
    storage = RolloutStorage(STEPS, ENVS, SPACE, 1, sum(SEPARATE))
    storage.observation_arrays["game_state"][:] = random.standard_normal((STEPS + 1, ENVS, 30))
    storage.arrays.actions[:] = random.integers(0, 6, shape)
    storage.arrays.log_probs[:] = np.log(random.uniform(0.05, 0.9, shape))
    storage.arrays.advantages[:], storage.arrays.returns[:] = random.standard_normal((2, *shape))
    parts = [random.dirichlet(np.full(count, 0.5), STEPS * ENVS) for count in SEPARATE]
    storage.reference[:] = np.concatenate(parts, axis=1)
    return storage


def test_choices_are_those_of_the_environment():
    numbers = torch.arange(6)
    choices = separated(numbers, SEPARATE)
    assert torch.equal(joined(choices, SEPARATE), numbers)
    actions = np.zeros(6, np.int64)
    check_actions(choices.numpy(), "multi_discrete", actions)
    assert actions.tolist() == numbers.tolist()


@pytest.mark.parametrize("coefficient", [0.0, 0.7])
def test_gradients_of_both_networks_agree(coefficient):
    storage, (policy, parameters) = random_rollout(), make()
    networks = [kind(policy, parameters, storage, seats=1, most_rows=300) for kind in (MLP, Autograd)]
    rows = np.random.default_rng(1).permutation(STEPS * ENVS)[:201]
    scaling = LossScaling(*np.array([0.1, 1.3, 1 / 201, 0.2, 0.5, 0.05, coefficient], np.float32))

    def gradient(network):
        out, sums = np.full(len(parameters.vector), np.nan, np.float32), np.full(6, np.nan)
        network.gradient(0, rows, scaling, out, sums)
        return out, sums

    (by_hand, sums), (expected, expected_sums) = map(gradient, networks)
    assert np.abs(by_hand - expected).max() <= 1e-5 * np.abs(expected).max()
    np.testing.assert_allclose(sums, expected_sums, rtol=1e-5, atol=1e-4)
    for change in (1, 3):  # another direction; another jump
        storage.arrays.actions[:] = (storage.arrays.actions + change) % 6
        assert np.abs(gradient(networks[1])[0] - expected).max() > 1e-2 * np.abs(expected).max()


def test_probabilities_of_a_reference():
    storage, (policy, _) = random_rollout(), make(scale=0.3)
    workers = Workers(ENVS, 2, min_chunk=1)
    Reference(policy, storage, 2, 100).evaluate(workers, Job())
    workers.close()
    logits = policy({"game_state": torch.from_numpy(storage.flat_observations["game_state"][: STEPS * ENVS])})[0]
    expected = torch.cat([part.softmax(1) for part in logits.detach().split(SEPARATE, 1)], 1)
    np.testing.assert_allclose(storage.reference, expected.numpy(), rtol=1e-4, atol=1e-6)
    assert storage.reference.max() > 0.6, "far from uniform"


def test_a_clone_imitates():
    random, episodes = np.random.default_rng(4), []
    for length in (60, 61, 62):
        rows = random.standard_normal((length, 30), np.float32)
        actions = rows[:, :3].argmax(axis=1) + 3 * (rows[:, 3] > 0)
        episodes.append(EpisodeData({"game_state": rows}, actions))
    settings = CloningSettings(max_epochs=80, held_out=0.0, least_updates=0, entropy_coef=0.0)
    made = clone(make(scale=0.0)[0], episodes, SPACE, settings=settings)
    assert made.accuracy > 0.95
    assert made.loss < 0.3 < np.log(6)


def test_a_resumed_run_is_the_whole_run_and_can_be_evaluated(tmp_path):
    fields = {"action_heads": "separate", "held_out": 0.33, "evaluation_interval": 2}
    whole = train(config(tmp_path, name="whole", **fields), make_envs=LineWorld)
    train(config(tmp_path, name="part", **fields), until(2), make_envs=LineWorld)
    ended = train(config(tmp_path, **fields), resume=tmp_path / "part", make_envs=LineWorld)
    assert contents(ended.checkpoint) == contents(whole.checkpoint)
    joint = train(config(tmp_path, name="joint", **{**fields, "action_heads": "joint"}), make_envs=LineWorld)
    assert contents(joint.checkpoint)["environments"] != contents(whole.checkpoint)["environments"]

    loaded = load_checkpoint(whole.checkpoint)
    policy, (settings, _) = restore_policy(loaded, whole.checkpoint), restore_configs(loaded, whole.checkpoint)
    assert (policy.heads, settings.action_heads) == ((3, 2), "separate")
    assert all(torch.equal(a, b) for a, b in zip(policy.parameters(), whole.policy.parameters(), strict=True))


def test_other_heads_do_not_fit(tmp_path):
    joint = train(config(tmp_path, name="joint", total_timesteps=1), make_envs=LineWorld)
    separate = config(tmp_path, name="separate", action_heads="separate")
    with pytest.raises(CheckpointError, match="action_heads: expected joint, as in the run to resume, got separate"):
        train(separate, resume=joint.checkpoint, make_envs=LineWorld)
    with pytest.raises(CheckpointError, match="with action_heads separate, got joint; pass --action-heads joint"):
        train(separate, make_envs=LineWorld, init=joint.checkpoint, overwrite=True)


def test_training_and_evaluation_succeed(tmp_path):
    fields = {"levels": ("first-steps/01-walk",), "max_frames": 400, "frame_skip": 8, "num_steps": 64}
    settings = config(tmp_path, action_heads="separate", total_timesteps=32 * 64 * 40, **fields)
    result = train(settings, make_envs=make_environments)
    (sampled,), (argmax,) = (
        evaluate(result.policy, settings.environment(), mode, 50) for mode in ("sampled", "argmax")
    )
    (random,) = evaluate(None, settings.environment(), episodes_per_level=50)
    assert sampled.success_rate > max(0.9, random.success_rate)
    assert argmax.success_rate == 1.0
    untrained = make_policy(settings, {"game_state": (30,)}, torch.Generator().manual_seed(0))
    (before,) = evaluate(untrained, settings.environment(), "sampled", 50)
    assert before.mean_frames > 1.5 * sampled.mean_frames


def test_evaluation_draws_each_head():
    """A policy that always jumps and is undecided between left and right."""
    policy, _ = make()
    with torch.no_grad():
        for parameter in policy.actor.parameters():
            parameter.zero_()
        policy.actor[-1].bias.copy_(torch.tensor([-30.0, 0.0, 0.0, 0.0, 30.0]))
    environment = EnvironmentConfig(levels=("east",), observations=("game_state",), max_frames=80)
    east, _ = evaluate(policy, environment, "sampled", 40, make_envs=LineWorld)
    assert set(east.actions) == {4, 5}
    east, _ = evaluate(policy, environment, "argmax", 40, make_envs=LineWorld)
    assert set(east.actions) == {4}


def test_masks_are_refused():
    with pytest.raises(ConfigError, match=r"action_heads: expected joint with action_mask, got 'separate'.*use joint"):
        TrainConfig(action_heads="separate", observations=("game_state", "action_mask"))
    with pytest.raises(ConfigError, match="action_heads: expected one of joint, separate, got 'both'"):
        TrainConfig(action_heads="both")
