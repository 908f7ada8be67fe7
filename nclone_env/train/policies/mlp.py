"""The fast path: forward and backward pass of an MLP policy and its encoders by hand, in blocks that fit the cache.

It computes what the torch modules of ``train.policies.network`` compute, on the same parameters, without allocating.
The pass over a part is one call of compiled code (``train.policies.mlp_kernels``), matrix products included, so that
threads do not wait for each other's interpreter lock. What it does not cover is computed through torch.
"""

import itertools
import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from nclone_env.errors import ConfigError
from nclone_env.game import NUM_ACTIONS
from nclone_env.jit import specialised_at_first
from nclone_env.memory import MemoryNode, arrays_node
from nclone_env.train.policies import mlp_kernels as kernels
from nclone_env.train.policies.arrays import (
    EntityScratch,
    LossScaling,
    NetworkLayout,
    PassArrays,
    PictureLayout,
    PictureScratch,
    Scratch,
    Seen,
    Steps,
    StoredSets,
)
from nclone_env.train.policies.encoder_kernels import ENTITY_UNITS, add_picture_gradients, encode_pictures
from nclone_env.train.policies.network import (
    HIDDEN_LAYERS,
    NO_MASKS,
    NO_STATES,
    ActorCritic,
    FlatParameters,
    PictureEncoder,
)
from nclone_env.train.policies.recurrence import RecurrentNetwork
from nclone_env.train.policies.torch_network import StoredSequences, StoredSteps, TorchNetwork

_ENCODED = ("locals", "entity_states")
_NO_SETS = StoredSets(np.zeros((0, 1), np.uint8), np.zeros((0, 0, 1), np.float32), np.zeros((0, 0), np.uint8))
_PATCH_BYTES = 1 << 18
"""Most bytes of the patches that are computed together: a quarter of the second level of the cache."""


class Seat(NamedTuple):
    """What belongs to one thread."""

    scratch: Scratch
    stacks: Mapping[str, Tensor]
    """Stacks of observations of a part, gathered before it is computed; none without stacks."""
    observations: Mapping[str, np.ndarray]
    """What the gradient reads: those stacks, or all stored observations."""
    seen: Seen
    """These, as the kernels take them."""


def covers(dtypes: Mapping[str, np.dtype], frame_stack: int) -> bool:
    """Return whether this network covers observations: none has float16, and none is a stack of sets of entities."""
    stacked_sets = frame_stack > 1 and "entity_states" in dtypes
    return not stacked_sets and all(dtype in (np.float32, np.uint8, np.int8) for dtype in dtypes.values())


class MLP:
    """An MLP policy with its encoders, for use by several threads; its parameters are those of ``parameters``."""

    def __init__(
        self, policy: ActorCritic, parameters: FlatParameters, storage: StoredSteps, seats: int, most_rows: int
    ):
        widths = policy.input_widths
        columns = dict(zip(widths, itertools.accumulate(widths.values(), initial=0)))
        self._columns = {name: column for name, column in columns.items() if name not in policy.encoders}
        self._widths, self._storage = widths, storage
        self._alone = len(widths) == len(self._columns) == 1
        self._layout = _layout(policy, parameters, columns)
        self._pictures = {
            name: PictureLayers(name, encoder, parameters, columns[name], seats, most_rows)
            for name, encoder in policy.encoders.items()
            if isinstance(encoder, PictureEncoder)
        }
        self._identity = np.arange(most_rows)
        self._seats = [self._make_seat(policy, most_rows) for _ in range(seats)]
        self._outputs, self._gradient = map(specialised_at_first, (kernels.outputs, kernels.gradient))

    def load(self) -> None:
        """Do nothing: the parameters are read where they are."""

    def outputs(
        self, seat: int, observations: Mapping[str, np.ndarray], states: np.ndarray = NO_STATES
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return logits (n, a) and values (n,) for n observations; the seat's next call overwrites them."""
        scratch = self._seats[seat].scratch
        first = observations[next(iter(self._widths))]
        count = len(first)
        rows, inputs = self._identity[:count], scratch.inputs[:count]
        if self._alone and first.dtype == np.float32:
            inputs = np.ascontiguousarray(first).reshape(count, -1)
        else:
            for name, column in self._columns.items():
                inputs[:, column : column + self._widths[name]] = observations[name].reshape(count, -1)
        for name, layers in self._pictures.items():
            layers.encode(seat, observations[name], rows, inputs)
        self._outputs(rows, _sets(observations), self._layout, inputs, scratch)
        return scratch.logits[:count], scratch.values[:count, 0]

    def gradient(self, seat: int, rows: np.ndarray, scaling: LossScaling, out: np.ndarray, sums: np.ndarray) -> None:
        """Compute the gradient over a part of a minibatch, as :meth:`TorchNetwork.gradient` describes."""
        scratch, stacks, observations, (sources, sets) = self._seats[seat]
        numbers = rows
        if stacks:  # of which the observations are gathered first
            numbers = self._identity[: len(rows)]
            self._storage.gather(torch.from_numpy(rows), {name: stack[: len(rows)] for name, stack in stacks.items()})
        inputs = scratch.inputs[: len(rows)]
        for source, width, offset in sources:
            kernels.gather_rows(source, width, numbers, _flat_bytes(inputs), offset, inputs.strides[0])
        for name, layers in self._pictures.items():
            layers.encode(seat, observations[name], numbers, inputs)
        steps = self._steps(observations)
        self._gradient(rows, numbers, sets, steps, scaling, self._layout, scratch, out, sums)
        for name, layers in self._pictures.items():
            layers.add_gradients(seat, observations[name], numbers, inputs, scratch.delta_inputs, out)

    def pass_arrays(self, seat: int) -> PassArrays | None:
        """Return what a kernel needs to do what :meth:`gradient` does; None with pictures or stacks of observations."""
        scratch, stacks, observations, seen = self._seats[seat]
        if stacks or self._pictures:
            return None
        return PassArrays(seen, _flat_bytes(scratch.inputs), self._steps(observations), self._layout, scratch)

    def seen(self, observations: Mapping[str, np.ndarray]) -> Seen:
        """Return what a kernel reads of observations, (r, ...) by name, which are vectors and sets alone."""
        sources = (
            (_flat_bytes(observations[name]), observations[name].strides[0], 4 * column)
            for name, column in self._columns.items()
        )
        none = ((_flat_bytes(self._identity), 0, 0),)  # of width 0: kernels do not take empty tuples
        return Seen(tuple(sources) or none, _sets(observations))

    def memory(self) -> MemoryNode:
        """Return the bytes of the scratch."""
        children = []
        for number, seat in enumerate(self._seats):
            arrays = [*seat.scratch.entities, *(array for array in seat.scratch if isinstance(array, np.ndarray))]
            arrays += (stack.numpy() for stack in seat.stacks.values())
            for layers in self._pictures.values():
                arrays += layers.scratch[number]
            children.append(arrays_node(f"seat {number}", arrays, shared=True))
        return MemoryNode("network scratch", self._identity.nbytes, shared=True, children=tuple(children))

    def _make_seat(self, policy: ActorCritic, most_rows: int) -> Seat:
        scratch = _make_scratch(policy, most_rows)
        stacks = self._storage.observation_buffers(most_rows) if self._storage.frame_stack > 1 else {}
        seen = {name: stack.numpy() for name, stack in stacks.items()} or self._storage.flat_observations
        return Seat(scratch, stacks, seen, self.seen(seen))

    def _steps(self, observations: Mapping[str, np.ndarray]) -> Steps:
        """Return what the loss reads of the stored steps, whose observations are these."""
        storage = self._storage
        return Steps(storage.learning_fields, observations.get("action_mask", NO_MASKS), storage.reference)


def _layout(policy: ActorCritic, parameters: FlatParameters, columns: Mapping[str, int]) -> NetworkLayout:
    """Return where the layers and the encoders with their columns are; 0 for encoders that are missing."""
    starts = {
        tower: [
            parameters.offsets[f"{name}.weight"]
            for name, module in policy.named_modules()
            if name.split(".")[0] == tower and isinstance(module, nn.Linear)
        ]
        for tower in ("trunk", "actor", "critic")
    }
    hidden = [starts["trunk"]] if policy.shared_trunk else [starts[tower][:-1] for tower in ("actor", "critic")]
    encoders = ((columns.get(name, 0), parameters.offsets.get(f"encoders.{name}.first.weight", 0)) for name in _ENCODED)
    return NetworkLayout(
        parameters.vector,
        np.array(hidden, np.int64),
        np.array([starts["actor"][-1], starts["critic"][-1]], np.int64),
        np.array([*itertools.chain(*encoders)], np.int64),
    )


def _sets(observations: Mapping[str, np.ndarray]) -> StoredSets:
    """Return the observations that encoders read, for the kernels."""
    if not any(name in observations for name in _ENCODED):
        return _NO_SETS
    grids = observations.get("locals", _NO_SETS.grids)
    given = (
        grids.reshape(len(grids), math.prod(grids.shape[1:])),
        observations.get("entity_states", _NO_SETS.states),
        observations.get("entity_kinds", _NO_SETS.kinds),
    )
    return StoredSets(*map(np.ascontiguousarray, given))


def _make_scratch(policy: ActorCritic, most_rows: int) -> Scratch:
    """Return zeroed scratch for calls of up to so many rows."""
    shapes, units = policy.observation_shapes, policy.hidden_size
    rows = min(64 if len(policy.encoders) else 128, most_rows)  # their activations fit the second level of the cache
    inputs, towers = sum(policy.input_widths.values()), 1 if policy.shared_trunk else 2
    cells = math.prod(shapes.get("locals", (0,)))
    entities, elements = shapes.get("entity_states", (0, 1))[-2:]

    def zeros(*shape: int) -> np.ndarray:
        return np.zeros(shape, np.float32)

    return Scratch(
        inputs=zeros(most_rows, inputs),
        hidden=zeros(towers, HIDDEN_LAYERS, rows, units),
        cells=zeros(rows if cells else 0, cells),
        entities=EntityScratch(
            firsts=np.zeros(rows + 1 if entities else 0, np.int64),
            states=zeros(rows * entities, elements),
            kinds=np.zeros(rows * entities, np.int64),
            hidden=zeros(rows * entities, ENTITY_UNITS),
            chosen=zeros(rows if entities else 0, ENTITY_UNITS),
        ),
        logits=zeros(most_rows, NUM_ACTIONS),
        values=zeros(most_rows, 1),
        delta_logits=zeros(rows, NUM_ACTIONS),
        delta_values=zeros(rows, 1),
        deltas=zeros(2, rows, units),
        delta_inputs=zeros(most_rows if len(policy.encoders) else 0, inputs),  # only encoders need them
        transposed=zeros(towers, units * (inputs + (HIDDEN_LAYERS - 1) * units)),
    )


def _flat_bytes(array: np.ndarray) -> np.ndarray:
    """Return the memory of a C-contiguous array as uint8."""
    return array.reshape(-1).view(np.uint8)


class PictureLayers:
    """The encoder of one observation, for use by several threads.

    Its parameters are among ``parameters``, its features are in the inputs of the MLP from ``column`` on.
    """

    def __init__(
        self, name: str, encoder: PictureEncoder, parameters: FlatParameters, column: int, seats: int, most_rows: int
    ):
        layers = _layer_table(name, encoder, parameters)
        self._frames = encoder.frames
        self._layout = PictureLayout(encoder.corners(), encoder.line, layers, parameters.vector, column)
        self.scratch = [_picture_scratch(encoder, most_rows) for _ in range(seats)]
        self._encode, self._add_gradients = map(specialised_at_first, (encode_pictures, add_picture_gradients))

    def encode(self, seat: int, pictures: np.ndarray, rows: np.ndarray, inputs: np.ndarray) -> None:
        """Write the features of n rows of pictures, (s, ..., height, width, 1) uint8, to their columns of inputs."""
        self._encode(self._flat(pictures), rows, self._layout, self.scratch[seat], inputs)

    def add_gradients(
        self,
        seat: int,
        pictures: np.ndarray,
        rows: np.ndarray,
        inputs: np.ndarray,
        deltas: np.ndarray,
        gradients: np.ndarray,
    ) -> None:
        """Add the gradients of the parameters to ``gradients``, (p,), after :meth:`encode` of the same rows.

        Those in the inputs, ``deltas``, (n, w) float32, are overwritten in the columns of the pictures.
        """
        flat = self._flat(pictures)
        self._add_gradients(flat, rows, self._layout, self.scratch[seat], inputs, deltas, gradients)

    def _flat(self, pictures: np.ndarray) -> np.ndarray:
        """Return pictures as (s, k, pixels)."""
        return np.ascontiguousarray(pictures).reshape(len(pictures), self._frames, -1)


def _picture_scratch(encoder: PictureEncoder, most_rows: int) -> PictureScratch:
    """Return zeroed scratch of a seat for calls of up to so many rows."""
    layers, places = _linear_layers(encoder), encoder.places()
    pixels = places[0] * layers[0].in_features
    at_once = min(most_rows, max(1, _PATCH_BYTES // (4 * pixels)))
    outputs = sum(count * layer.out_features for count, layer in zip(places[:-1], layers))
    return PictureScratch(
        transposed=np.zeros(sum(layer.weight.numel() for layer in layers), np.float32),
        pixels=np.zeros(at_once * pixels, np.uint8),
        patches=np.zeros((at_once * places[0], layers[0].in_features), np.float32),
        hidden=np.zeros(most_rows * outputs, np.float32),
        above=np.zeros(most_rows * layers[-1].in_features, np.float32),
        below=np.zeros((2, at_once * places[0] * layers[0].out_features), np.float32),
    )


def _linear_layers(encoder: PictureEncoder) -> list[nn.Linear]:
    """Return all layers, from the pixels on."""
    return [layer for layer in encoder.modules() if isinstance(layer, nn.Linear)]


def _layer_table(name: str, encoder: PictureEncoder, parameters: FlatParameters) -> np.ndarray:
    """Return the table of the layers, (l, 6) int64, as the kernels expect it."""
    names = ("patches", *(f"squares.{number}" for number in range(len(encoder.squares))), "last")
    places, layers = encoder.places(), _linear_layers(encoder)
    below = itertools.accumulate((count * layer.out_features for count, layer in zip(places, layers)), initial=0)
    starts = ([parameters.offsets[f"encoders.{name}.{part}.{kind}"] for kind in ("weight", "bias")] for part in names)
    return np.array(
        [
            [count, layer.out_features, layer.in_features, *start, total]
            for count, layer, start, total in zip(places, layers, starts, below)
        ],
        np.int64,
    )


Network = MLP | TorchNetwork
"""Computes a policy for several threads at the same time: each has a seat, a number from 0, which owns scratch memory.
"""


def make_network(
    policy: ActorCritic, parameters: FlatParameters, storage: StoredSteps, seats: int, most_rows: int
) -> Network:
    """Return the network of a policy on stored steps; arguments as of ``train.policies.torch_network.TorchNetwork``."""
    if policy.recurrent_size:
        if not isinstance(storage, StoredSequences):
            raise ConfigError(
                "policy: expected one without memory to learn from single steps, got recurrent_size "
                f"{policy.recurrent_size}; make it with recurrent_size=0"
            )
        return RecurrentNetwork(policy, parameters, storage, seats, most_rows)
    dtypes = {name: array.dtype for name, array in storage.flat_observations.items()}
    if covers(dtypes, storage.frame_stack):
        return MLP(policy, parameters, storage, seats, most_rows)
    return TorchNetwork(policy, parameters, storage, seats, most_rows)
