"""A CleanRL-style training loop in plain PyTorch, with only Gymnasium's API and wrappers."""

import gymnasium
import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from gymnasium.wrappers.vector import FlattenObservation, RecordEpisodeStatistics
from torch import nn
from torch.distributions import Categorical

from .bases import FIELDS, check_learned, numbers, run_example

NUM_ENVS, STEPS, GAMMA, LAMBDA, CLIP = 16, 64, 0.99, 0.95, 0.2
HAZARDS, PIXELS = "nclone_env:nclone/NPlusPlus-Hazards-v0", "nclone_env:nclone/NPlusPlus-Pixels-v0"


class Agent(nn.Module):
    """Actor and critic with a shared trunk: for vectors, or for four stacked frames of 84 x 84 as in Atari."""

    def __init__(self, envs):
        super().__init__()
        shape = envs.single_observation_space.shape
        self.is_picture = len(shape) == 3
        if self.is_picture:
            convolutions = nn.Conv2d(4, 8, 8, 4), nn.ReLU(), nn.Conv2d(8, 8, 4, 4), nn.ReLU(), nn.Flatten()
            self.trunk = nn.Sequential(*convolutions, nn.Linear(8 * 5 * 5, 64), nn.ReLU())
        else:
            self.trunk = nn.Sequential(nn.Linear(int(np.prod(shape)), 64), nn.Tanh())
        self.actor, self.critic = nn.Linear(64, int(envs.single_action_space.n)), nn.Linear(64, 1)

    def act(self, observation, action=None):
        hidden = self.trunk(observation / 255.0 if self.is_picture else observation)
        choice = Categorical(logits=self.actor(hidden))
        action = choice.sample() if action is None else action
        return action, choice.log_prob(action), choice.entropy(), self.critic(hidden).squeeze(-1)


def advantages(rewards, values, dones, last_value, last_done):
    result, running = torch.zeros_like(rewards), 0.0
    for t in reversed(range(len(rewards))):
        value, done = (last_value, last_done) if t == len(rewards) - 1 else (values[t + 1], dones[t + 1])
        delta = rewards[t] + GAMMA * value * (1 - done) - values[t]
        running = result[t] = delta + GAMMA * LAMBDA * (1 - done) * running
    return result


def train(envs, steps=STEPS) -> list[float]:
    """Train an agent for three updates as a script of CleanRL does; return the returns of the episodes that ended."""
    torch.manual_seed(1)
    agent = Agent(envs)
    optimizer = torch.optim.Adam(agent.parameters(), lr=3e-4)
    before, returns = numbers(agent), []
    observations = torch.zeros((steps, envs.num_envs, *envs.single_observation_space.shape))
    actions = torch.zeros(steps, envs.num_envs, dtype=torch.long)
    log_probs, rewards, values, dones = (torch.zeros(steps, envs.num_envs) for _ in range(4))
    observation, _ = envs.reset(seed=1)
    observation, done = torch.Tensor(observation), torch.zeros(envs.num_envs)
    for _ in range(3):
        for t in range(steps):
            observations[t], dones[t] = observation, done
            with torch.no_grad():
                actions[t], log_probs[t], _, values[t] = agent.act(observation)
            next_observation, reward, terminated, truncated, info = envs.step(actions[t].numpy())
            rewards[t], done = torch.tensor(reward), torch.tensor(terminated | truncated, dtype=torch.float32)
            observation = torch.Tensor(next_observation)
            if "episode" in info:
                returns += info["episode"]["r"][info["_episode"]].tolist()
        with torch.no_grad():
            last_value = agent.act(observation)[3]
        advantage = advantages(rewards, values, dones, last_value, done)
        assert np.isfinite(update(agent, optimizer, observations, actions, log_probs, values, advantage))
    check_learned(before, numbers(agent), 0.3 if agent.is_picture else 0.5)
    assert np.isfinite(returns).all()
    envs.close()
    return returns


def make_env(env_id):
    return lambda: gymnasium.wrappers.RecordEpisodeStatistics(gymnasium.make(env_id))


@pytest.mark.parametrize("env_id", ["CartPole-v1", HAZARDS])
def test_a_script_needs_no_other_change_than_the_id(env_id):
    returns = train(gymnasium.vector.SyncVectorEnv([make_env(env_id) for _ in range(4)]), 120)
    assert len(returns) > 3


@pytest.mark.parametrize("env_id", ["CartPole-v1", HAZARDS])
def test_nor_does_one_that_makes_a_native_vector_environment(env_id):
    native = {"vectorization_mode": "vector_entry_point"}
    envs = gymnasium.make_vec(env_id, NUM_ENVS, **native)
    assert len(train(RecordEpisodeStatistics(envs), 120)) > 3


def test_a_network_for_atari_takes_pixels():
    train(gymnasium.vector.SyncVectorEnv([make_env(PIXELS) for _ in range(2)]), 32)
    with pytest.raises(RuntimeError, match="to have 4 channels"):  # the other layout
        train(gymnasium.make_vec(PIXELS, 2, vectorization_mode="sync", observation={"frame_stack": 1}), 32)


def test_episodes_are_counted():
    envs = gymnasium.make_vec("nclone/NPlusPlus-v0", NUM_ENVS, vectorization_mode="vector_entry_point", **FIELDS)
    assert len(train(RecordEpisodeStatistics(FlattenObservation(envs)))) > 20


def update(agent, optimizer, observations, actions, log_probs, values, advantage) -> float:
    target = advantage + values
    for _ in range(2):
        _, log_prob, entropy, value = agent.act(observations.flatten(0, 1), actions.flatten())
        ratio, gain = (log_prob - log_probs.flatten()).exp(), advantage.flatten()
        policy_loss = torch.max(-gain * ratio, -gain * ratio.clamp(1 - CLIP, 1 + CLIP)).mean()
        loss = policy_loss + 0.5 * (value - target.flatten()).square().mean() - 0.01 * entropy.mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def test_the_example_of_the_documents():
    assert run_example("CleanRL")["observations"].shape == (16, 30)


def test_wrappers_to_torch_give_the_same_numbers():
    pytest.importorskip("array_api_compat", reason="needs what gymnasium[torch] brings")
    actions = np.random.default_rng(0).integers(0, 6, (20, 2))
    single = gymnasium.make(HAZARDS), gymnasium.wrappers.NumpyToTorch(gymnasium.make(HAZARDS))
    several = gymnasium.make_vec(HAZARDS, 2), gymnasium.wrappers.vector.NumpyToTorch(gymnasium.make_vec(HAZARDS, 2))
    for (plain, wrapped), each in ((single, actions[:, 0]), (several, actions)):
        assert (plain.reset(seed=0)[0] == wrapped.reset(seed=0)[0].numpy()).all()
        for action in each:
            observation, reward, *_ = plain.step(action)
            tensor, rewarded, *_ = wrapped.step(torch.tensor(action))
            assert isinstance(tensor, torch.Tensor)
            np.testing.assert_array_equal(tensor.numpy(), observation)
            assert (np.asarray(rewarded) == reward).all()
