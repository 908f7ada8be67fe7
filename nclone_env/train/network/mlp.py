"""The fast path: forward and backward pass of an MLP policy and its encoders by hand, in blocks that fit the cache.

It computes what the torch modules of ``train.policy`` compute, on the same parameters, without allocating. The pass
over a part is one call of compiled code (``train.network.mlp_kernels``), matrix products included, so that threads do
not wait for each other's interpreter lock.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from nclone_env.memory_tree import MemoryNode, arrays_node
from nclone_env.train.network import mlp_kernels as kernels
from nclone_env.train.network.encoder_kernels import ENTITY_UNITS
from nclone_env.train.network.encoders import PictureEncoder
from nclone_env.train.network.parameters import FlatParameters
from nclone_env.train.network.pictures import PictureLayers, scratch_arrays
from nclone_env.train.network.protocols import LossScaling, StoredSteps
from nclone_env.train.policy import ActorCritic


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
    """(n, w) float32, gradient in the inputs; (0, w) without encoders."""
    transposed: np.ndarray
    """(t, h * (w + h)) float32, transposed weights of the hidden layers."""


_OF_OUTPUTS = Scratch._fields.index("values") + 1
"""The first fields are those that ``kernels.outputs`` takes."""
_INTEGERS = ("firsts", "used_kinds")
"""The fields that are int64."""

_ENCODED = ("locals", "entity_states")
_NO_GRIDS, _NO_STATES = np.zeros((0, 1), np.uint8), np.zeros((0, 0, 1), np.float32)
_NO_KINDS = np.zeros((0, 0), np.uint8)


class Seat(NamedTuple):
    """What belongs to one thread."""

    scratch: Scratch
    stacks: Mapping[str, Tensor]
    """Stacks of observations of a part, gathered before it is computed; none without stacks."""
    observations: Mapping[str, np.ndarray]
    """What the gradient reads: those stacks, or all stored observations."""
    sources: tuple[tuple[np.ndarray, int, int], ...]
    """Bytes of each vector in ``observations``, those of one of its rows, and where they go in a row of inputs."""
    arguments: tuple[Any, ...]
    """Arguments of the gradient that never change."""


def covers(dtypes: Mapping[str, np.dtype], frame_stack: int) -> bool:
    """Return whether this network covers observations: neither float16 nor stacks of sets of entities are among them.

    Args:
        dtypes: dtype of each observation by name.
        frame_stack: depth of the stacks that the policy sees.
    """
    stacked_sets = frame_stack > 1 and "entity_states" in dtypes
    return not stacked_sets and all(dtype in (np.float32, np.uint8, np.int8) for dtype in dtypes.values())


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
        self._columns = {name: column for name, column in columns.items() if name not in policy.encoders}
        self._widths, self._storage = widths, storage
        self._alone = len(widths) == len(self._columns) == 1
        encoders, activation = _encoders(parameters, columns), kernels.ACTIVATIONS[policy.activation]
        self._heads, self._no_masks = np.array(policy.heads, np.int64), np.zeros((0, sum(policy.heads)), np.int8)
        self._network = parameters.vector, _starts(parameters, policy.shared_trunk), encoders, activation
        self._pictures = {
            name: PictureLayers(name, encoder, parameters, columns[name], seats, most_rows)
            for name, encoder in policy.encoders.items()
            if isinstance(encoder, PictureEncoder)
        }
        self._identity = np.arange(most_rows)
        self._seats = [self._make_seat(policy, most_rows) for _ in range(seats)]

    def outputs(self, seat: int, observations: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Return logits (n, a) and values (n,) for n observations; the seat's next call overwrites them."""
        scratch = self._seats[seat].scratch
        first = observations[next(iter(self._widths))]
        count = len(first)
        rows, inputs = self._identity[:count], first.reshape(count, -1) if self._alone else scratch.inputs[:count]
        if not self._alone:
            for name, column in self._columns.items():
                inputs[:, column : column + self._widths[name]] = observations[name].reshape(count, -1)
        for name, layers in self._pictures.items():
            layers.encode(seat, observations[name], rows, inputs)
        kernels.outputs(rows, *_stored(observations), *self._network, inputs, *scratch[1:_OF_OUTPUTS])
        return scratch.logits[:count], scratch.values[:count, 0]

    def gradient(self, seat: int, rows: np.ndarray, scaling: LossScaling, out: np.ndarray, sums: np.ndarray) -> None:
        """Compute the gradient over a part of a minibatch, as ``train.network.protocols.Network`` describes."""
        scratch, stacks, observations, sources, arguments = self._seats[seat]
        seen = self._gather(stacks, rows) if stacks else rows
        inputs = scratch.inputs[: len(rows)]
        for source, width, offset in sources:
            kernels.gather_rows(source, width, seen, _flat_bytes(inputs), offset, inputs.strides[0])
        for name, layers in self._pictures.items():
            layers.encode(seat, observations[name], seen, inputs)
        steps = *self._storage.learning_fields, observations.get("action_mask", self._no_masks), self._storage.reference
        kernels.gradient(rows, seen, *steps, *scaling, *arguments, out, sums)
        for name, layers in self._pictures.items():
            layers.add_gradients(seat, observations[name], seen, inputs, scratch.delta_inputs, out)

    def memory(self) -> MemoryNode:
        """Return the bytes of the scratch."""
        children = []
        for number, seat in enumerate(self._seats):
            arrays = [*seat.scratch, *(stack.numpy() for stack in seat.stacks.values())]
            for layers in self._pictures.values():
                arrays += layers.scratch[number]
            children.append(arrays_node(f"seat {number}", arrays, shared=False))
        return MemoryNode("network scratch", self._identity.nbytes, children=tuple(children))

    def _make_seat(self, policy: ActorCritic, most_rows: int) -> Seat:
        shapes = _scratch_shapes(policy, most_rows)
        scratch = Scratch(**{name: np.zeros(shape, _dtype(name)) for name, shape in shapes.items()})
        stacks = self._storage.observation_buffers(most_rows) if self._storage.frame_stack > 1 else {}
        seen = {name: stack.numpy() for name, stack in stacks.items()} or self._storage.flat_observations
        sources = tuple((*_source(seen[name]), 4 * column) for name, column in self._columns.items())
        return Seat(scratch, stacks, seen, sources, (*_stored(seen), self._heads, *self._network, *scratch))

    def _gather(self, stacks: Mapping[str, Tensor], rows: np.ndarray) -> np.ndarray:
        """Gather the stacks of n steps; return their places."""
        count = len(rows)
        self._storage.gather(torch.from_numpy(rows), {name: stack[:count] for name, stack in stacks.items()})
        return self._identity[:count]


def scratch_bytes(policy: ActorCritic, most_rows: int) -> int:
    """Return the bytes of one seat for calls of up to so many rows, without gathered stacks."""
    shapes = _scratch_shapes(policy, most_rows)
    arrays = [(shape, _dtype(name)) for name, shape in shapes.items()]
    for encoder in policy.encoders.values():
        if isinstance(encoder, PictureEncoder):
            arrays += scratch_arrays(encoder, most_rows)
    return sum(math.prod(shape) * np.dtype(dtype).itemsize for shape, dtype in arrays)


def _starts(parameters: FlatParameters, shared: bool) -> np.ndarray:
    """Return where towers and output layers begin in the vector, (4,) int64, as the kernels expect."""
    first = ("trunk.0", "trunk.0", "actor", "critic") if shared else ("actor.0", "critic.0", "actor.4", "critic.4")
    return np.array([parameters.offsets[f"{name}.weight"] for name in first], np.int64)


def _encoders(parameters: FlatParameters, columns: Mapping[str, int]) -> np.ndarray:
    """Return columns and starts of the encoders, (4,) int64, as the kernels expect; 0 for those that are missing."""
    numbers = ((columns.get(name, 0), parameters.offsets.get(f"encoders.{name}.first.weight", 0)) for name in _ENCODED)
    return np.array([*itertools.chain(*numbers)], np.int64)


def _stored(observations: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return grids (n, c), states (n, m, d) and kinds (n, m) of entities for the kernels; (0, ...) where missing."""
    grids = observations.get("locals", _NO_GRIDS)
    return (
        grids.reshape(len(grids), math.prod(grids.shape[1:])),
        observations.get("entity_states", _NO_STATES),
        observations.get("entity_kinds", _NO_KINDS),
    )


def _scratch_shapes(policy: ActorCritic, most_rows: int) -> dict[str, tuple[int, ...]]:
    """Return the shape of each field of ``Scratch`` for calls of up to so many rows."""
    towers, hidden, actions = 1 if policy.shared_trunk else 2, policy.hidden_size, sum(policy.heads)
    width, rows = sum(policy.input_widths.values()), block_rows(policy, most_rows)
    cells = math.prod(policy.observation_shapes.get("locals", (0,)))
    entities, elements = policy.observation_shapes.get("entity_states", (0, 1))[-2:]
    sets = rows if entities else 0
    return {
        "inputs": (most_rows, width),
        "hidden": (towers, 2, rows, hidden),
        "slopes": (towers, 2, rows if policy.activation == "silu" else 0, hidden),
        "cells": (rows if cells else 0, cells),
        "firsts": (rows + 1 if entities else 0,),
        "used_states": (rows * entities, elements),
        "used_kinds": (rows * entities,),
        "entity_hidden": (rows * entities, ENTITY_UNITS),
        "chosen": (sets, ENTITY_UNITS),
        "logits": (most_rows, actions),
        "values": (most_rows, 1),
        "delta_logits": (rows, actions),
        "delta_values": (rows, 1),
        "deltas": (2, rows, hidden),
        "delta_inputs": (most_rows if len(policy.encoders) else 0, width),
        "transposed": (towers, hidden * (width + hidden)),
    }


def _dtype(field: str) -> type:
    """Return the dtype of a field of ``Scratch``."""
    return np.int64 if field in _INTEGERS else np.float32


def _source(rows: np.ndarray) -> tuple[np.ndarray, int]:
    """Return the bytes of an array and those of one of its rows."""
    return _flat_bytes(rows), rows.strides[0]


def _flat_bytes(array: np.ndarray) -> np.ndarray:
    """Return the memory of a C-contiguous array as uint8."""
    return array.reshape(-1).view(np.uint8)
