"""What the trainer asks of a network, and what a network reads: steps that were stored.

A network computes outputs for observations, and the gradient of the loss over a part of the steps. Two modules do:
``mlp`` by hand, ``torch_network`` through torch, which on a device provides the outputs alone: there
``train.learn.device_update`` takes the gradient of a whole minibatch. Both may be used by several threads at the same
time; each thread has a seat, a number from 0, which owns scratch memory.
"""

from collections.abc import Mapping
from typing import Protocol

import numpy as np
from torch import Tensor

from nclone_env.memory import MemoryNode
from nclone_env.train.network.arrays import LearningFields, LossScaling


class StoredSteps(Protocol):
    """What a network reads of n stored steps: a rollout, or the trajectories of ``train.learn.trajectories``."""

    frame_stack: int
    """Depth of the stacks that the network sees; 1: none."""
    reference: np.ndarray
    """(n, a) float32, the probabilities of a reference policy in each step; (0, a): none."""

    @property
    def flat_observations(self) -> Mapping[str, np.ndarray]:
        """Name to (n, *shape), or more rows; without stacks row s is the observation of step s."""

    @property
    def learning_fields(self) -> LearningFields[np.ndarray]:
        """What the loss needs besides observations, (n,) each."""

    def observation_buffers(self, count: int) -> dict[str, Tensor]:
        """Allocate room for ``count`` observations, or stacks of them, by name."""

    def gather(self, steps: Tensor, out: Mapping[str, Tensor]) -> None:
        """Write the observations of b steps, (b,) int64, or stacks of them, to ``out``, (b, ...) by name."""


class Actor(Protocol):
    """A policy network as collection uses it."""

    def outputs(self, seat: int, observations: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Return logits (n, a) and values (n,), float32, for n observations; the seat's next call overwrites them."""

    def load(self) -> None:
        """Take over the parameters in host memory, which were changed there."""

    def memory(self) -> MemoryNode:
        """Return the bytes of the scratch."""


class Network(Actor, Protocol):
    """A policy network as collection and the update in host memory use it."""

    def gradient(self, seat: int, rows: np.ndarray, scaling: LossScaling, out: np.ndarray, sums: np.ndarray) -> None:
        """Compute the gradient of the loss over a part of a minibatch.

        Args:
            seat: seat of the calling thread.
            rows: (n,) int64, numbers t * N + i of the steps of the part in the rollout.
            scaling: numbers of the loss.
            out: (p,) float32, written: the gradient in all parameters.
            sums: (6,) float64, written: sums over the n steps of the terms of ``UpdateStatistics``.
        """
