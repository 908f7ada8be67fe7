"""The fast path: forward and backward pass of an MLP policy by hand, over parts that stay in the cache.

It computes what the torch modules of ``train.policy`` compute, on the same parameters, without allocating. The pass
over a part is one call of compiled code (``train.mlp_kernels``), matrix products included, so that threads do not wait
for each other's interpreter lock.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from nclone_env.memory_tree import MemoryNode
from nclone_env.train import mlp_kernels as kernels
from nclone_env.train.network import LossScaling
from nclone_env.train.parameters import FlatParameters
from nclone_env.train.policy import ActorCritic
from nclone_env.train.rollout import StoredSteps


class Scratch(NamedTuple):
    """Arrays of one seat for calls of up to n rows, in blocks of up to r: w inputs, t towers of h units, a logits."""

    inputs: np.ndarray
    """(n, w) float32, gathered observations."""
    hidden: np.ndarray
    """(t, 2, r, h) float32, outputs of the hidden layers."""
    slopes: np.ndarray
    """(t, 2, r, h) float32, derivatives where they do not follow from the outputs; else (t, 2, 0, h)."""
    logits: np.ndarray
    """(n, a) float32."""
    values: np.ndarray
    """(n, 1) float32."""
    delta_logits: np.ndarray
    """(r, a) float32, gradient in the logits."""
    delta_values: np.ndarray
    """(r, 1) float32, gradient in the values."""
    deltas: np.ndarray
    """(2, r, h) float32, gradients in the hidden layers."""


def is_mlp(shapes: Mapping[str, tuple[int, ...]], dtypes: Mapping[str, np.dtype], frame_stack: int) -> bool:
    """Return whether observations are float32 vectors that are not stacked, so that the network is an MLP alone."""
    inputs = [name for name in shapes if name != "action_mask"]
    return frame_stack == 1 and all(len(shapes[name]) == 1 and dtypes[name] == np.float32 for name in inputs)


class MLP:
    """An MLP policy, for use by several threads.

    Args:
        policy: the network; its parameters are those of ``parameters``.
        parameters: the vector of its parameters.
        storage: the rollout to read.
        seats: number of threads.
        most_rows: largest number of rows of a call.
    """

    def __init__(
        self, policy: ActorCritic, parameters: FlatParameters, storage: StoredSteps, seats: int, most_rows: int
    ):
        names = tuple(name for name in policy.observation_shapes if name != "action_mask")
        self._heads = np.array(policy.heads, np.int64)
        self._vector = parameters.vector
        self._starts = _starts(parameters, policy.shared_trunk)
        self._activation = kernels.ACTIVATIONS[policy.activation]
        self._names = names
        self._sources = tuple(_source(storage.flat_observations[name]) for name in names)
        no_masks = np.zeros((0, sum(policy.heads)), np.int8)
        self._masks = storage.flat_observations.get("action_mask", no_masks)
        self._storage = storage
        width = sum(policy.observation_shapes[name][0] for name in names)
        self._scratch = [_allocate(policy, width, most_rows) for _ in range(seats)]
        self._input_bytes = [_flat_bytes(scratch.inputs) for scratch in self._scratch]

    def outputs(self, seat: int, observations: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Return logits (n, a) and values (n,) for n observations; the seat's next call overwrites them."""
        inputs, scratch = observations[self._names[0]], self._scratch[seat]
        count = len(inputs)
        if len(self._names) > 1:
            inputs, column = scratch.inputs[:count], 0
            for name in self._names:
                width = observations[name].shape[1]
                inputs[:, column : column + width] = observations[name]
                column += width
        network = self._vector, self._starts, self._activation, scratch.hidden, scratch.slopes
        kernels.outputs(inputs, *network, scratch.logits, scratch.values)
        return scratch.logits[:count], scratch.values[:count, 0]

    def gradient(self, seat: int, rows: np.ndarray, scaling: LossScaling, out: np.ndarray, sums: np.ndarray) -> None:
        """Compute the gradient over a part of a minibatch, as ``train.network.Network`` describes."""
        scratch, storage = self._scratch[seat], self._storage
        stride, offset = scratch.inputs.strides[0], 0
        for source, width in self._sources:
            kernels.gather_rows(source, width, rows, self._input_bytes[seat], offset, stride)
            offset += width
        steps = rows, *storage.learning_fields, self._masks, storage.reference, *scaling
        network = self._heads, self._vector, self._starts, self._activation
        kernels.gradient(*steps, *network, *scratch, out, sums)

    def memory(self) -> MemoryNode:
        """Return the bytes of the scratch."""
        seats = tuple(
            MemoryNode(f"seat {seat}", sum(array.nbytes for array in scratch))
            for seat, scratch in enumerate(self._scratch)
        )
        return MemoryNode("network scratch", children=seats)


def _starts(parameters: FlatParameters, shared: bool) -> np.ndarray:
    """Return where towers and output layers begin in the vector, (4,) int64, as the kernels expect."""
    first = ("trunk.0", "trunk.0", "actor", "critic") if shared else ("actor.0", "critic.0", "actor.4", "critic.4")
    offsets = parameters.offsets
    return np.array([offsets[f"{name}.weight"] for name in first], np.int64)


def _allocate(policy: ActorCritic, width: int, most_rows: int) -> Scratch:
    """Return the scratch of one seat."""
    towers, hidden, actions = 1 if policy.shared_trunk else 2, policy.hidden_size, sum(policy.heads)
    rows = min(kernels.BLOCK, most_rows)

    def array(*shape: int) -> np.ndarray:
        return np.zeros(shape, np.float32)

    return Scratch(
        inputs=array(most_rows, width),
        hidden=array(towers, 2, rows, hidden),
        slopes=array(towers, 2, rows if policy.activation == "silu" else 0, hidden),
        logits=array(most_rows, actions),
        values=array(most_rows, 1),
        delta_logits=array(rows, actions),
        delta_values=array(rows, 1),
        deltas=array(2, rows, hidden),
    )


def _source(rows: np.ndarray) -> tuple[np.ndarray, int]:
    """Return the bytes of an array and those of one of its rows."""
    return _flat_bytes(rows), rows.strides[0]


def _flat_bytes(array: np.ndarray) -> np.ndarray:
    """Return the memory of a C-contiguous array as uint8."""
    return array.reshape(-1).view(np.uint8)
