"""A fixed policy that the trained one is kept close to: its probabilities in the steps of each rollout."""

import copy

import numpy as np
import torch

from nclone_env.env import Workers
from nclone_env.memory import MemoryNode, array_group
from nclone_env.train.collect.device import DeviceRollout
from nclone_env.train.collect.rollout import RolloutStorage
from nclone_env.train.policies.device import DeviceNetwork
from nclone_env.train.policies.mlp import make_network
from nclone_env.train.policies.network import NO_MASKS, ActorCritic, FlatParameters
from nclone_env.train.policies.sampling import write_probabilities
from nclone_env.train.policies.torch_network import masked


class Reference:
    """A copy of a policy, which does not change, evaluated on rollouts whose storage has room for its probabilities."""

    def __init__(
        self,
        policy: ActorCritic,
        storage: RolloutStorage,
        seats: int,
        part_size: int,
    ):
        self._part_size = part_size
        self.policy, self._storage = copy.deepcopy(policy), storage
        self._parameters = FlatParameters(self.policy)
        self._network = make_network(self.policy, self._parameters, storage, seats, part_size)
        self._stacked = storage.frame_stack > 1
        self._buffers = [storage.observation_buffers(part_size) if self._stacked else {} for _ in range(seats)]

    def evaluate(self, workers: Workers) -> None:
        """Write the probabilities of all choices in the steps of the stored rollout to ``storage.reference``."""
        workers.run(self._evaluate_parts, 0, -(-len(self._storage.reference) // self._part_size))

    def memory(self) -> MemoryNode:
        """Return the bytes of parameters and scratch."""
        own = array_group("parameters", {"clone": self._parameters.vector}, shared=True)
        arrays = {
            f"{name} of seat {seat}": buffer.numpy()
            for seat, buffers in enumerate(self._buffers)
            for name, buffer in buffers.items()
        }
        stacks = array_group("stacks", arrays, shared=True)
        return MemoryNode("reference policy", children=(own, self._network.memory(), stacks))

    def _evaluate_parts(self, seat: int, first: int, last: int) -> None:
        """Evaluate the parts ``first`` to ``last - 1`` of the rollout."""
        target, size = self._storage.reference, self._part_size
        for begin in range(first * size, min(last * size, len(target)), size):
            end = min(begin + size, len(target))
            seen = self._observations(seat, begin, end)
            logits, _ = self._network.outputs(seat, seen)
            write_probabilities(logits, seen.get("action_mask", NO_MASKS), target[begin:end])

    def _observations(self, seat: int, begin: int, end: int) -> dict[str, np.ndarray]:
        """Return the observations of the steps ``begin`` to ``end - 1``, or stacks of them."""
        if not self._stacked:
            return {name: rows[begin:end] for name, rows in self._storage.flat_observations.items()}
        buffers = {name: buffer[: end - begin] for name, buffer in self._buffers[seat].items()}
        self._storage.gather(torch.arange(begin, end), buffers)
        return {name: buffer.numpy() for name, buffer in buffers.items()}


class DeviceReference:
    """The same on a device, without waiting for it."""

    def __init__(self, policy: ActorCritic, rollout: DeviceRollout):
        self.policy, self._rollout = copy.deepcopy(policy), rollout
        self._network = DeviceNetwork(self.policy, FlatParameters(self.policy), rollout.place)

    @torch.no_grad()
    def evaluate(self, workers: Workers) -> None:
        """Write the probabilities of all choices in the steps of the stored rollout to its ``reference``."""
        rollout = self._rollout
        for step, target in enumerate(rollout.reference.chunk(rollout.num_steps)):
            seen = rollout.observation(step)
            logits, _ = self._network.module(seen)
            target.copy_(torch.softmax(masked(logits, seen.get("action_mask")), dim=1))

    def memory(self) -> MemoryNode:
        """Return the bytes of the parameters."""
        return MemoryNode("reference policy", children=(self._network.memory(),))


def make_reference(
    policy: ActorCritic, storage: RolloutStorage | DeviceRollout, seats: int, part_size: int
) -> Reference | DeviceReference:
    """Return the copy of a policy for a rollout."""
    if isinstance(storage, DeviceRollout):
        return DeviceReference(policy, storage)
    return Reference(policy, storage, seats, part_size)
