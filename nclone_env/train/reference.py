"""A fixed policy that the trained one is kept close to: its probabilities in the steps of each rollout."""

from __future__ import annotations

import copy

import numpy as np
import torch

from nclone_env.env.threads import Job, Workers
from nclone_env.jit import numeric_kernel
from nclone_env.memory_tree import MemoryNode, array_group
from nclone_env.train.networks import make_network
from nclone_env.train.parameters import FlatParameters
from nclone_env.train.policy import ActorCritic
from nclone_env.train.rollout import RolloutStorage
from nclone_env.train.sampling import head_distribution

_PART_SIZE = 512
"""Steps that are evaluated in one call."""


class Reference:
    """A copy of a policy, evaluated on the steps of rollouts.

    Attributes:
        policy: the copy, which does not change.

    Args:
        policy: the policy to copy.
        storage: the rollout; it has room for reference probabilities.
        seats: number of threads.
    """

    def __init__(self, policy: ActorCritic, storage: RolloutStorage, seats: int):
        self.policy, self._storage = copy.deepcopy(policy), storage
        self._parameters = FlatParameters(self.policy)
        self._network = make_network(self.policy, self._parameters, storage, seats, _PART_SIZE)
        self._heads = np.array(policy.heads, np.int64)
        self._masked = "action_mask" in policy.observation_shapes
        self._no_masks = np.zeros((0, sum(policy.heads)), np.int8)
        self._stacked = storage.frame_stack > 1
        self._buffers = [storage.observation_buffers(_PART_SIZE) if self._stacked else {} for _ in range(seats)]

    def evaluate(self, workers: Workers, job: Job) -> None:
        """Write the probabilities of all choices in the steps of the stored rollout to ``storage.reference``."""
        workers.run(job, self._evaluate_parts, 0, -(-len(self._storage.reference) // _PART_SIZE))

    def memory(self) -> MemoryNode:
        """Return the bytes of parameters and scratch."""
        own = array_group("parameters", {"clone": self._parameters.vector}, shared=False)
        return MemoryNode("reference policy", children=(own, self._network.memory()))

    def _evaluate_parts(self, seat: int, first: int, last: int) -> None:
        """Evaluate the parts ``first`` to ``last - 1`` of the rollout."""
        target, shift = self._storage.reference, (self._storage.frame_stack - 1) * self._storage.num_envs
        for begin in range(first * _PART_SIZE, min(last * _PART_SIZE, len(target)), _PART_SIZE):
            end = min(begin + _PART_SIZE, len(target))
            logits, _ = self._network.outputs(seat, self._observations(seat, begin, end))
            masks = self._no_masks
            if self._masked:
                masks = self._storage.flat_observations["action_mask"][begin + shift : end + shift]
            write_probabilities(logits, masks, self._heads, target[begin:end])

    def _observations(self, seat: int, begin: int, end: int) -> dict[str, np.ndarray]:
        """Return the observations of the steps ``begin`` to ``end - 1``, or stacks of them."""
        if not self._stacked:
            return {name: rows[begin:end] for name, rows in self._storage.flat_observations.items()}
        buffers = {name: buffer[: end - begin] for name, buffer in self._buffers[seat].items()}
        self._storage.gather(torch.arange(begin, end), buffers)
        return {name: buffer.numpy() for name, buffer in buffers.items()}


@numeric_kernel
def write_probabilities(logits, masks, heads, probabilities):
    """Write the probabilities, (n, a), of logits, (n, a) float32, which are overwritten; masks as in ``sampling``."""
    for i in range(logits.shape[0]):
        head_distribution(logits, masks, heads, i, 0, probabilities)
