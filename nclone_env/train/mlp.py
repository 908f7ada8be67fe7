"""The fast path: forward and backward pass of an MLP policy by hand, over parts that stay in the cache.

It computes what the torch modules of ``train.policy`` compute, on the same parameters, without allocating. Matrix
products are NumPy's (BLAS); everything between them is compiled (``train.mlp_kernels``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from nclone_env.memory_tree import MemoryNode
from nclone_env.train import mlp_kernels as kernels
from nclone_env.train.network import LossScaling
from nclone_env.train.parameters import FlatParameters
from nclone_env.train.policy import ActorCritic
from nclone_env.train.rollout import LearningFields, StoredSteps

_product = np.matmul


class Layers(NamedTuple):
    """Two hidden layers with weights (out, in) and biases (out,): parameters, or their gradients."""

    weight_1: np.ndarray
    bias_1: np.ndarray
    weight_2: np.ndarray
    bias_2: np.ndarray


class Heads(NamedTuple):
    """The output layers, for logits (a, h) and value (h,): parameters, or their gradients."""

    logits_weight: np.ndarray
    logits_bias: np.ndarray
    value_weight: np.ndarray
    value_bias: np.ndarray


class Layout(NamedTuple):
    """A vector of parameters or gradients as arrays; actor and critic have hidden layers each, or share them."""

    towers: tuple[Layers, ...]
    heads: Heads


class Hidden(NamedTuple):
    """What the backward pass needs of two hidden layers, (n, h) each.

    Slopes are used where the derivative of the activation does not follow from its output; else they are (n, 0).
    """

    output_1: np.ndarray
    output_2: np.ndarray
    slope_1: np.ndarray
    slope_2: np.ndarray


class Scratch(NamedTuple):
    """Arrays of one seat for n rows."""

    inputs: np.ndarray
    input_bytes: np.ndarray
    hidden: tuple[Hidden, ...]
    logits: np.ndarray
    values: np.ndarray
    masks: np.ndarray
    mask_bytes: np.ndarray
    reference: np.ndarray
    reference_bytes: np.ndarray
    steps: LearningFields[np.ndarray]
    delta_logits: np.ndarray
    delta_values: np.ndarray
    delta_1: np.ndarray
    delta_2: np.ndarray


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
        self._forward, self._backward = kernels.ACTIVATIONS[policy.activation]
        self._shared = policy.shared_trunk
        self._heads = np.array(policy.heads, np.int64)
        self._layout = _layout(parameters.views(parameters.vector), self._shared)
        self._parameters = parameters
        self._names = tuple(name for name in policy.observation_shapes if name != "action_mask")
        self._masked = "action_mask" in policy.observation_shapes
        self._storage = storage
        self._sources = tuple(_source(storage.flat_observations[name]) for name in self._names)
        self._mask_source = _source(storage.flat_observations["action_mask"]) if self._masked else None
        self._reference_source = _source(storage.reference) if len(storage.reference) else None
        has_slopes = policy.activation == "silu"
        self._arrays = [self._allocate(most_rows, has_slopes) for _ in range(seats)]
        self._scratch: list[dict[int, Scratch]] = [{} for _ in range(seats)]
        self._gradients: dict[int, Layout] = {}

    def outputs(self, seat: int, observations: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Return logits (n, a) and values (n,) for n observations; the seat's next call overwrites them."""
        first = observations[self._names[0]]
        scratch = self._views(seat, len(first))
        inputs = first
        if len(self._names) > 1:
            inputs, column = scratch.inputs, 0
            for name in self._names:
                width = observations[name].shape[1]
                inputs[:, column : column + width] = observations[name]
                column += width
        self._run(inputs, scratch)
        return scratch.logits, scratch.values

    def gradient(self, seat: int, rows: np.ndarray, scaling: LossScaling, out: np.ndarray, sums: np.ndarray) -> None:
        """Compute the gradient over a part of a minibatch, as ``train.network.Network`` describes."""
        scratch = self._views(seat, len(rows))
        self._gather(rows, scratch)
        reference = self._gather_reference(rows, scratch, scaling.reference_coef)
        for source, target in zip(self._storage.learning_fields, scratch.steps):
            kernels.gather_field(source, rows, target)
        self._run(scratch.inputs, scratch)
        gradients = self._gradient_layout(out)
        heads = gradients.heads
        kernels.loss_gradient(
            scratch.logits,
            scratch.values,
            scratch.masks,
            self._heads,
            *scratch.steps,
            reference,
            *scaling,
            scratch.delta_logits,
            scratch.delta_values,
            heads.logits_bias,
            heads.value_bias,
            sums,
        )
        self._back(scratch, gradients)

    def memory(self) -> MemoryNode:
        """Return the bytes of the scratch."""
        seats = tuple(
            MemoryNode(f"seat {seat}", sum(array.nbytes for array in _leaves(arrays)))
            for seat, arrays in enumerate(self._arrays)
        )
        return MemoryNode("network scratch", children=seats)

    def _gather(self, rows: np.ndarray, scratch: Scratch) -> None:
        """Copy observations and masks of steps to the scratch."""
        target, stride, offset = scratch.input_bytes, scratch.inputs.strides[0], 0
        for source, width in self._sources:
            kernels.gather_rows(source, width, rows, target, offset, stride)
            offset += width
        if self._mask_source is not None:
            source, width = self._mask_source
            kernels.gather_rows(source, width, rows, scratch.mask_bytes, 0, width)

    def _gather_reference(self, rows: np.ndarray, scratch: Scratch, coefficient: np.float32) -> np.ndarray:
        """Return the reference probabilities of steps, (n, a), or (0, a) if the loss does not use them."""
        if coefficient == 0 or self._reference_source is None:
            return self._storage.reference[:0]
        source, width = self._reference_source
        kernels.gather_rows(source, width, rows, scratch.reference_bytes, 0, width)
        return scratch.reference

    def _run(self, inputs: np.ndarray, scratch: Scratch) -> None:
        """Compute logits and values."""
        for tower, hidden in zip(self._layout.towers, scratch.hidden):
            _product(inputs, tower.weight_1.T, out=hidden.output_1)
            self._forward(hidden.output_1, tower.bias_1, hidden.slope_1)
            _product(hidden.output_1, tower.weight_2.T, out=hidden.output_2)
            self._forward(hidden.output_2, tower.bias_2, hidden.slope_2)
        heads = self._layout.heads
        _product(scratch.hidden[0].output_2, heads.logits_weight.T, out=scratch.logits)
        _product(scratch.hidden[-1].output_2, heads.value_weight, out=scratch.values)
        kernels.add_biases(scratch.logits, scratch.values, heads.logits_bias, heads.value_bias)

    def _back(self, scratch: Scratch, gradients: Layout) -> None:
        """Compute the gradients of all weights from those of logits and values."""
        heads, towers = self._layout.heads, self._layout.towers
        _product(scratch.delta_logits.T, scratch.hidden[0].output_2, out=gradients.heads.logits_weight)
        _product(scratch.delta_values, scratch.hidden[-1].output_2, out=gradients.heads.value_weight)
        _product(scratch.delta_logits, heads.logits_weight, out=scratch.delta_2)
        if self._shared:
            kernels.add_outer(scratch.delta_2, scratch.delta_values, heads.value_weight)
        self._back_through(towers[0], scratch, scratch.hidden[0], gradients.towers[0])
        if not self._shared:
            kernels.outer(scratch.delta_2, scratch.delta_values, heads.value_weight)
            self._back_through(towers[1], scratch, scratch.hidden[1], gradients.towers[1])

    def _back_through(self, layers: Layers, scratch: Scratch, hidden: Hidden, gradients: Layers) -> None:
        """Compute the gradients of two hidden layers from that of their outputs, in ``delta_2``."""
        self._backward(scratch.delta_2, hidden.output_2, hidden.slope_2, gradients.bias_2)
        _product(scratch.delta_2.T, hidden.output_1, out=gradients.weight_2)
        _product(scratch.delta_2, layers.weight_2, out=scratch.delta_1)
        self._backward(scratch.delta_1, hidden.output_1, hidden.slope_1, gradients.bias_1)
        _product(scratch.delta_1.T, scratch.inputs, out=gradients.weight_1)

    def _allocate(self, rows: int, has_slopes: bool) -> Scratch:
        layout = self._layout
        hidden, width = layout.towers[0].weight_1.shape
        actions = len(layout.heads.logits_bias)

        def array(*shape: int) -> np.ndarray:
            return np.zeros((rows, *shape), np.float32)

        def tower() -> Hidden:
            slopes = (array(hidden), array(hidden)) if has_slopes else (array(0), array(0))
            return Hidden(array(hidden), array(hidden), *slopes)

        inputs, masks = array(width), np.zeros((rows if self._masked else 0, actions), np.int8)
        reference = np.zeros((rows if self._reference_source else 0, actions), np.float32)
        return Scratch(
            inputs=inputs,
            input_bytes=_flat_bytes(inputs),
            hidden=tuple(tower() for _ in layout.towers),
            logits=array(actions),
            values=array(),
            masks=masks,
            mask_bytes=_flat_bytes(masks),
            reference=reference,
            reference_bytes=_flat_bytes(reference),
            steps=LearningFields(np.zeros(rows, np.int64), array(), array(), array()),
            delta_logits=array(actions),
            delta_values=array(),
            delta_1=array(hidden),
            delta_2=array(hidden),
        )

    def _views(self, seat: int, rows: int) -> Scratch:
        """Return the first rows of a seat's scratch; made on first use."""
        views = self._scratch[seat].get(rows)
        if views is None:
            views = self._scratch[seat][rows] = _first_rows(self._arrays[seat], rows)
        return views

    def _gradient_layout(self, vector: np.ndarray) -> Layout:
        """Return a vector of gradients as arrays; made on first use."""
        key = vector.__array_interface__["data"][0]
        layout = self._gradients.get(key)
        if layout is None:
            layout = self._gradients[key] = _layout(self._parameters.views(vector), self._shared)
        return layout


def _layout(views: Mapping[str, np.ndarray], shared: bool) -> Layout:
    """Return arrays by their names in ``ActorCritic`` as layers."""
    names = ("trunk",) if shared else ("actor", "critic")
    towers = tuple(Layers(*(views[f"{name}.{key}"] for key in _HIDDEN)) for name in names)
    actor, critic = ("actor", "critic") if shared else ("actor.4", "critic.4")
    weights = views[f"{actor}.weight"], views[f"{actor}.bias"], views[f"{critic}.weight"][0], views[f"{critic}.bias"]
    return Layout(towers, Heads(*weights))


_HIDDEN = ("0.weight", "0.bias", "2.weight", "2.bias")


def _source(rows: np.ndarray) -> tuple[np.ndarray, int]:
    """Return the bytes of an array and those of one of its rows."""
    return _flat_bytes(rows), rows.strides[0]


def _flat_bytes(array: np.ndarray) -> np.ndarray:
    """Return the memory of a C-contiguous array as uint8."""
    return array.reshape(-1).view(np.uint8)


def _first_rows(value: Any, rows: int) -> Any:
    """Return the first rows of an array, or of all arrays in nested tuples."""
    if isinstance(value, np.ndarray):
        return value if value.dtype == np.uint8 else value[:rows]
    parts = (_first_rows(part, rows) for part in value)
    return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)


def _leaves(value: Any) -> list[np.ndarray]:
    """Return all arrays in nested tuples, without those that are the bytes of others."""
    if isinstance(value, np.ndarray):
        return [] if value.dtype == np.uint8 else [value]
    return [leaf for part in value for leaf in _leaves(part)]
