"""Generalised advantage estimation (Schulman et al., 2016), in place over a rollout."""

from __future__ import annotations

from nclone_env.jit import kernel


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
