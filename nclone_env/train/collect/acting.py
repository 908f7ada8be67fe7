"""The actions of a policy for a batch of observations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import numpy as np
import torch
from threadpoolctl import threadpool_limits

from nclone_env.actions import NUM_ACTIONS
from nclone_env.train.network.policy import ActorCritic
from nclone_env.train.network.sampling import sample_actions
from nclone_env.train.network.torch_network import most_probable


def chosen_actions(
    policy: ActorCritic, observations: Mapping[str, np.ndarray], argmax: bool, seed: int, step: int
) -> np.ndarray:
    """Return the most probable actions of a policy, or sampled ones, (n,) int64.

    Args:
        observations: name to array, (n, *shape).
        argmax: whether to take the most probable ones.
        seed: the random number of row i is a function of the seed, i and the step.
    """
    seen = {name: torch.from_numpy(observations[name]) for name in policy.observation_shapes}
    with torch.inference_mode():
        logits = policy(seen)[0]
    if argmax:
        return most_probable(logits, seen.get("action_mask")).numpy()
    values, masks = logits.numpy(), observations.get("action_mask") if "action_mask" in seen else None
    actions, log_probs = np.zeros(len(values), np.int64), np.zeros(len(values), np.float32)
    masks = np.zeros((0, NUM_ACTIONS), np.int8) if masks is None else masks
    sample_actions(values, masks, seed, 0, step, np.empty_like(values), actions, log_probs)
    return actions


@contextmanager
def one_thread_per_call() -> Iterator[None]:
    """Make libraries compute each call on the calling thread: batches are small, and runs have their own threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1, user_api="blas"):
            yield
    finally:
        torch.set_num_threads(before)
