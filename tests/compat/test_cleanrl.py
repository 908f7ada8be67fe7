"""A CleanRL-style training loop in plain PyTorch, with only Gymnasium's API and wrappers."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from gymnasium.wrappers.vector import FlattenObservation, RecordEpisodeStatistics
from torch import nn
from torch.distributions import Categorical

from .bases import FIELDS, Kept, check_learned, numbers, run_example

NUM_ENVS, STEPS, GAMMA, LAMBDA, CLIP = 16, 64, 0.99, 0.95, 0.2


class Agent(nn.Module):
    """Actor and critic with a shared trunk."""

    def __init__(self, envs):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(envs.single_observation_space.shape[0], 64), nn.Tanh())
        self.actor, self.critic = nn.Linear(64, int(envs.single_action_space.n)), nn.Linear(64, 1)

    def act(self, observation, action=None):
        hidden = self.trunk(observation)
        choice = Categorical(logits=self.actor(hidden))
        action = choice.sample() if action is None else action
        return action, choice.log_prob(action), choice.entropy(), self.critic(hidden).squeeze(-1)


def advantages(rewards, values, dones, last_value, last_done):
    result, running = torch.zeros_like(rewards), 0.0
    for t in reversed(range(STEPS)):
        value, done = (last_value, last_done) if t == STEPS - 1 else (values[t + 1], dones[t + 1])
        delta = rewards[t] + GAMMA * value * (1 - done) - values[t]
        running = result[t] = delta + GAMMA * LAMBDA * (1 - done) * running
    return result


def test_ppo_learns_and_episodes_are_counted():
    torch.manual_seed(1)
    envs = gymnasium.make_vec("nclone/NPlusPlus-v0", NUM_ENVS, vectorization_mode="vector_entry_point", **FIELDS)
    envs = RecordEpisodeStatistics(FlattenObservation(envs))
    agent = Agent(envs)
    optimizer = torch.optim.Adam(agent.parameters(), lr=3e-4)
    before, returns = numbers(agent), []
    observations, actions = torch.zeros(STEPS, NUM_ENVS, 30), torch.zeros(STEPS, NUM_ENVS, dtype=torch.long)
    log_probs, rewards, values, dones = (torch.zeros(STEPS, NUM_ENVS) for _ in range(4))
    observation, _ = envs.reset(seed=1)
    observation, done = torch.tensor(observation), torch.zeros(NUM_ENVS)
    for _ in range(3):
        for t in range(STEPS):
            observations[t], dones[t] = observation, done
            with torch.no_grad():
                actions[t], log_probs[t], _, values[t] = agent.act(observation)
            next_observation, reward, terminated, truncated, info = envs.step(actions[t].numpy())
            rewards[t], done = torch.tensor(reward), torch.tensor(terminated | truncated, dtype=torch.float32)
            observation = torch.tensor(next_observation)
            if "episode" in info:
                returns += info["episode"]["r"][info["_episode"]].tolist()
        with torch.no_grad():
            last_value = agent.act(observation)[3]
        advantage = advantages(rewards, values, dones, last_value, done)
        loss = update(agent, optimizer, observations, actions, log_probs, values, advantage)
        assert np.isfinite(loss)
    check_learned(before, numbers(agent))
    assert len(returns) > 20
    assert np.isfinite(returns).all()
    envs.close()


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


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_tensors_that_share_memory_with_observations_stay_as_they_were(mode):
    envs = gymnasium.make_vec(
        "nclone/NPlusPlus-v0", 4, vectorization_mode="vector_entry_point", autoreset_mode=mode, **FIELDS
    )
    kept = Kept()
    observations, _ = envs.reset(seed=1)
    for t in range(120):
        kept.add({name: torch.from_numpy(array) for name, array in observations.items()})
        observations = envs.step(np.full(4, t % 6))[0]
    kept.check()
    envs.close()


def test_the_example_of_the_documents():
    assert run_example("CleanRL")["observations"].shape == (16, 30)
