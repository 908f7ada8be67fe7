"""The fast path: forward and backward pass of an MLP policy and its encoders by hand, in blocks that fit the cache.

It computes what the torch modules of ``train.policy`` compute, on the same parameters, without allocating. The pass
over a part is one call of compiled code (``train.mlp_kernels``), matrix products included, so that threads do not wait
for each other's interpreter lock.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from nclone_env.memory_tree import MemoryNode
from nclone_env.train import mlp_kernels as kernels
from nclone_env.train.encoder_kernels import ENTITY_UNITS
from nclone_env.train.network import LossScaling
from nclone_env.train.parameters import FlatParameters
from nclone_env.train.policy import ActorCritic
from nclone_env.train.rollout import StoredSteps


class Scratch(NamedTuple):
    """Arrays of one seat for calls of up to n rows, in blocks of up to r: w inputs, t towers of h units, a logits.

    Those of encoders that the policy does not have are empty; c are the cells of a grid, m the most entities of a set.
    """

    inputs: np.ndarray
    """(n, w) float32, vectors and features."""
    hidden: np.ndarray
    """(t, 2, r, h) float32, outputs of the hidden layers."""
    slopes: np.ndarray
    """(t, 2, r, h) float32, derivatives where they do not follow from the outputs; else (t, 2, 0, h)."""
    cells: np.ndarray
    """(r, c) float32, grids."""
    firsts: np.ndarray
    """(r + 1,) int64, number of the first entity of each set."""
    used_states: np.ndarray
    """(r * m, d) float32, states of the entities."""
    used_kinds: np.ndarray
    """(r * m,) int64, their kinds."""
    entity_hidden: np.ndarray
    """(r * m, u) float32, outputs of the layer over entities."""
    chosen: np.ndarray
    """(r, u) float32, entities with the maxima."""
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
    delta_inputs: np.ndarray
    """(r, w) float32, gradient in the inputs; (0, w) without encoders."""
    transposed: np.ndarray
    """(t, h * (w + h)) float32, transposed weights of the hidden layers."""


_OF_OUTPUTS = Scratch._fields.index("values") + 1
"""The first fields are those that ``kernels.outputs`` takes."""


_ENCODED = ("locals", "entity_states")
_NO_GRIDS, _NO_STATES = np.zeros((0, 1), np.uint8), np.zeros((0, 0, 1), np.float32)
_NO_KINDS = np.zeros((0, 0), np.uint8)


class Stored(NamedTuple):
    """Observations that are encoded: n rows, or none."""

    grids: np.ndarray
    """(n, c) uint8."""
    states: np.ndarray
    """(n, m, d) float32."""
    kinds: np.ndarray
    """(n, m) uint8."""


def is_mlp(shapes: Mapping[str, tuple[int, ...]], dtypes: Mapping[str, np.dtype], frame_stack: int) -> bool:
    """Return whether this network covers the observations: none is stacked, a picture or float16."""
    by_hand = ("action_mask", "locals", "entity_kinds", "entity_count")
    return frame_stack == 1 and all(
        name in by_hand or (dtypes[name] == np.float32 and (len(shapes[name]) == 1 or name == "entity_states"))
        for name in shapes
    )


def block_rows(policy: ActorCritic, most_rows: int) -> int:
    """Return the rows that are computed together, so that their activations stay in the second level of the cache."""
    return min(64 if len(policy.encoders) else 128, most_rows)


class MLP:
    """An MLP policy with its encoders, for use by several threads.

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
        widths = policy.input_widths
        columns = dict(zip(widths, itertools.accumulate(widths.values(), initial=0)))
        self._columns = {name: column for name, column in columns.items() if name not in _ENCODED}
        self._widths, self._storage = widths, storage
        self._alone = len(widths) == len(self._columns) == 1
        self._heads = np.array(policy.heads, np.int64)
        encoders, activation = _encoders(parameters, columns), kernels.ACTIVATIONS[policy.activation]
        self._network = parameters.vector, _starts(parameters, policy.shared_trunk), encoders, activation
        stored = storage.flat_observations
        self._sources = tuple((*_source(stored[name]), 4 * column) for name, column in self._columns.items())
        self._masks = stored.get("action_mask", np.zeros((0, sum(policy.heads)), np.int8))
        self._stored = _stored(stored)
        self._scratch = [_allocate(policy, self._stored, most_rows) for _ in range(seats)]
        network = self._heads, *self._network
        self._arguments = [(*self._stored, *network, *scratch) for scratch in self._scratch]
        self._input_bytes = [_flat_bytes(scratch.inputs) for scratch in self._scratch]
        self._identity = np.arange(most_rows)

    def outputs(self, seat: int, observations: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Return logits (n, a) and values (n,) for n observations; the seat's next call overwrites them."""
        scratch = self._scratch[seat]
        first = observations[next(iter(self._widths))]
        count = len(first)
        inputs = first if self._alone else scratch.inputs[:count]
        if not self._alone:
            for name, column in self._columns.items():
                inputs[:, column : column + self._widths[name]] = observations[name]
        stored = self._stored if self._alone else _stored(observations)
        kernels.outputs(self._identity[:count], *stored, *self._network, inputs, *scratch[1:_OF_OUTPUTS])
        return scratch.logits[:count], scratch.values[:count, 0]

    def gradient(self, seat: int, rows: np.ndarray, scaling: LossScaling, out: np.ndarray, sums: np.ndarray) -> None:
        """Compute the gradient over a part of a minibatch, as ``train.network.Network`` describes."""
        scratch, storage = self._scratch[seat], self._storage
        for source, width, offset in self._sources:
            kernels.gather_rows(source, width, rows, self._input_bytes[seat], offset, scratch.inputs.strides[0])
        steps = *storage.learning_fields, self._masks, storage.reference
        kernels.gradient(rows, *steps, *scaling, *self._arguments[seat], out, sums)

    def memory(self) -> MemoryNode:
        """Return the bytes of the scratch."""
        seats = tuple(
            MemoryNode(f"seat {seat}", sum(array.nbytes for array in scratch))
            for seat, scratch in enumerate(self._scratch)
        )
        return MemoryNode("network scratch", self._identity.nbytes, children=seats)


def _starts(parameters: FlatParameters, shared: bool) -> np.ndarray:
    """Return where towers and output layers begin in the vector, (4,) int64, as the kernels expect."""
    first = ("trunk.0", "trunk.0", "actor", "critic") if shared else ("actor.0", "critic.0", "actor.4", "critic.4")
    return np.array([parameters.offsets[f"{name}.weight"] for name in first], np.int64)


def _encoders(parameters: FlatParameters, columns: Mapping[str, int]) -> np.ndarray:
    """Return columns and starts of the encoders, (4,) int64, as the kernels expect; 0 for those that are missing."""
    numbers = ((columns.get(name, 0), parameters.offsets.get(f"encoders.{name}.first.weight", 0)) for name in _ENCODED)
    return np.array([*itertools.chain(*numbers)], np.int64)


def _stored(observations: Mapping[str, np.ndarray]) -> Stored:
    """Return the observations that are encoded, without rows where there are none."""
    grids = observations.get("locals", _NO_GRIDS)
    return Stored(
        grids.reshape(len(grids), math.prod(grids.shape[1:])),
        observations.get("entity_states", _NO_STATES),
        observations.get("entity_kinds", _NO_KINDS),
    )


def _allocate(policy: ActorCritic, stored: Stored, most_rows: int) -> Scratch:
    """Return the scratch of one seat."""
    towers, hidden, actions = 1 if policy.shared_trunk else 2, policy.hidden_size, sum(policy.heads)
    width, rows = sum(policy.input_widths.values()), block_rows(policy, most_rows)
    _, most_entities, elements = stored.states.shape

    def array(*shape: int, dtype: type = np.float32) -> np.ndarray:
        return np.zeros(shape, dtype)

    return Scratch(
        inputs=array(most_rows, width),
        hidden=array(towers, 2, rows, hidden),
        slopes=array(towers, 2, rows if policy.activation == "silu" else 0, hidden),
        cells=array(rows if len(stored.grids) else 0, stored.grids.shape[1]),
        firsts=array(rows + 1 if most_entities else 0, dtype=np.int64),
        used_states=array(rows * most_entities, elements),
        used_kinds=array(rows * most_entities, dtype=np.int64),
        entity_hidden=array(rows * most_entities, ENTITY_UNITS),
        chosen=array(rows if most_entities else 0, ENTITY_UNITS),
        logits=array(most_rows, actions),
        values=array(most_rows, 1),
        delta_logits=array(rows, actions),
        delta_values=array(rows, 1),
        deltas=array(2, rows, hidden),
        delta_inputs=array(rows if len(policy.encoders) else 0, width),
        transposed=array(towers, hidden * (width + hidden)),
    )


def _source(rows: np.ndarray) -> tuple[np.ndarray, int]:
    """Return the bytes of an array and those of one of its rows."""
    return _flat_bytes(rows), rows.strides[0]


def _flat_bytes(array: np.ndarray) -> np.ndarray:
    """Return the memory of a C-contiguous array as uint8."""
    return array.reshape(-1).view(np.uint8)
