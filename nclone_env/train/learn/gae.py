"""Generalised advantage estimation (Schulman et al., 2016), in place over a rollout."""

import numpy as np
import torch
from torch import Tensor

from nclone_env.jit import kernel
from nclone_env.train.collect.rollout import StepFields


@kernel
def estimate_advantages(rewards, values, terminated, truncated, final_values, gamma, gae_lambda, advantages, returns):
    """Fill ``advantages`` and ``returns`` of a rollout of T steps of N environments.

    The bootstrap value is 0 after a terminated step, the value of the final observation after a truncated step, and
    the value of the next row otherwise. Advantages never propagate back across the end of an episode.

    Args:
        rewards: (T, N) float32.
        values: (T + 1, N) float32, values of the observations before each step and after the last one.
        terminated: (T, N) bool.
        truncated: (T, N) bool; ignored where ``terminated``.
        final_values: (T, N) float32, values of the final observations where ``truncated``; not read elsewhere.
        gamma: discount factor per step.
        gae_lambda: the lambda of GAE, 0 to 1.
        advantages: (T, N) float32, written.
        returns: (T, N) float32, written; advantage plus value.
    """
    steps, environments = rewards.shape
    for t in range(steps - 1, -1, -1):
        for i in range(environments):
            following = values[t + 1, i]
            carried = 0.0
            if terminated[t, i]:
                following = 0.0
            elif truncated[t, i]:
                following = final_values[t, i]
            elif t + 1 < steps:
                carried = advantages[t + 1, i]
            error = rewards[t, i] + gamma * following - values[t, i]
            advantage = error + gamma * gae_lambda * carried
            advantages[t, i] = advantage
            returns[t, i] = advantage + values[t, i]


@kernel
def estimate_episode_advantages(
    rewards, values, starts, terminated, bootstrap_values, gamma, gae_lambda, advantages, returns
):
    """Fill ``advantages`` and ``returns`` of E episodes of any lengths that lie one after another in n steps.

    Args:
        rewards: (n,) float32.
        values: (n,) float32, values of the observations before each step.
        starts: (E + 1,) int64, first step of each episode, and n; an episode may be empty.
        terminated: (E,) bool, whether an episode ended in a terminal state.
        bootstrap_values: (E,) float32, value of the observation after an episode; not read where terminated.
        gamma: discount factor per step.
        gae_lambda: the lambda of GAE, 0 to 1.
        advantages: (n,) float32, written.
        returns: (n,) float32, written; advantage plus value.
    """
    for episode in range(len(starts) - 1):
        following = 0.0 if terminated[episode] else np.float64(bootstrap_values[episode])
        carried = 0.0
        for t in range(starts[episode + 1] - 1, starts[episode] - 1, -1):
            error = rewards[t] + gamma * following - values[t]
            advantage = error + gamma * gae_lambda * carried
            advantages[t] = advantage
            returns[t] = advantage + values[t]
            carried = advantages[t]
            following = np.float64(values[t])


def write_returns_on_device(steps: StepFields[Tensor], gamma: float, gae_lambda: float) -> None:
    """Compute the advantages and returns of a rollout in place, as :func:`estimate_advantages`, for all environments.

    Products and sums are separate operations in float64, so the bits are those of the processor.
    """
    carried = torch.zeros_like(steps.rewards[0], dtype=torch.float64)
    for t in reversed(range(len(steps.rewards))):
        terminated, truncated = steps.terminated[t], steps.truncated[t]
        following = torch.where(truncated, steps.final_values[t], steps.values[t + 1]).double()
        following.masked_fill_(terminated, 0.0)
        error = steps.rewards[t] + gamma * following - steps.values[t]
        carried.masked_fill_(terminated | truncated, 0.0)
        steps.advantages[t] = advantage = error + gamma * gae_lambda * carried
        steps.returns[t] = advantage + steps.values[t]
        carried = steps.advantages[t].double()


def write_returns(steps: StepFields[np.ndarray], gamma: float, gae_lambda: float) -> None:
    """Compute the advantages and returns of a rollout in place."""
    estimate_advantages(
        steps.rewards,
        steps.values,
        steps.terminated,
        steps.truncated,
        steps.final_values,
        gamma,
        gae_lambda,
        steps.advantages,
        steps.returns,
    )
