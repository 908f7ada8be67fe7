"""Generalised advantage estimation (Schulman and others, 2016), in place over a rollout."""

from __future__ import annotations

from nclone_env.jit import kernel


@kernel
def estimate_advantages(rewards, values, terminated, truncated, final_values, gamma, gae_lambda, advantages, returns):
    """Fill ``advantages`` and ``returns`` of a rollout of T steps of N environments.

    A terminated step is followed by nothing; a truncated one by the value of its final observation; any other
    by the value of the next row. No end lets a later advantage flow back into the episode before it.

    Args:
        rewards: (T, N) float32.
        values: (T + 1, N) float32, value of the observation each step started from, and of the last one.
        terminated: (T, N) bool.
        truncated: (T, N) bool; ignored where ``terminated``.
        final_values: (T, N) float32, value of the final observation where ``truncated``; not read elsewhere.
        gamma: discount factor per step.
        gae_lambda: weight of longer returns, 0 to 1.
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
