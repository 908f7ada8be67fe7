"""What the trainer asks of a network: outputs for observations, and the gradient of the loss over a part of a rollout.

Two classes provide it: ``train.mlp`` by hand, ``train.autograd`` through torch. Both may be used by several threads at
the same time; each thread has a seat, a number from 0, which owns scratch memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

import numpy as np

from nclone_env.memory_tree import MemoryNode


class LossScaling(NamedTuple):
    """Numbers of the loss of a minibatch, all float32."""

    mean: np.float32
    """Mean of the advantages of the minibatch."""
    scale: np.float32
    """Reciprocal of their standard deviation."""
    share: np.float32
    """Weight of a step: one over the steps of the minibatch."""
    clip_coef: np.float32
    """The epsilon of the clipped surrogate objective."""
    value_coef: np.float32
    """Coefficient of the value loss."""
    entropy_coef: np.float32
    """Coefficient of the entropy bonus."""
    reference_coef: np.float32 = np.float32(0)
    """Coefficient of the KL divergence of the policy from the reference distributions of the steps; 0: not computed."""


class Network(Protocol):
    """A policy network as collection and update use it."""

    def outputs(self, seat: int, observations: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Return logits (n, a) and values (n,), float32, for n observations; the seat's next call overwrites them."""
        ...

    def gradient(self, seat: int, rows: np.ndarray, scaling: LossScaling, out: np.ndarray, sums: np.ndarray) -> None:
        """Compute the gradient of the loss over a part of a minibatch.

        Args:
            seat: seat of the calling thread.
            rows: (n,) int64, numbers t * N + i of the steps of the part in the rollout.
            scaling: numbers of the loss.
            out: (p,) float32, written: the gradient in all parameters.
            sums: (6,) float64, written: sums over the n steps of the terms of ``UpdateStatistics``.
        """
        ...

    def memory(self) -> MemoryNode:
        """Return the bytes of the scratch."""
        ...
