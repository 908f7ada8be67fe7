"""Arrays and numbers that the kernels of the network take together.

The sizes are n rows of a call, in blocks of up to r rows; w inputs; t towers (the actor's and the critic's, or one that
they share) of l hidden layers with h units each; a actions; p parameters; s stored steps; c cells of a grid; m entities
of a set with d elements and u units each. All arrays are float32 unless stated, and C-contiguous: the kernels are
specialised for such arrays.
"""

from typing import Generic, NamedTuple, TypeVar

import numpy as np

Number = TypeVar("Number")
Array = TypeVar("Array")


class LossScaling(NamedTuple, Generic[Number]):
    """Numbers of the loss of a minibatch, all float32; on a device some are tensors ()."""

    mean: Number
    """Mean of the advantages of the minibatch."""
    scale: Number
    """Reciprocal of their standard deviation."""
    share: Number
    """Weight of a step: one over the steps of the minibatch."""
    clip_coef: Number
    """The epsilon of the clipped surrogate objective."""
    value_coef: Number
    """Coefficient of the value loss."""
    entropy_coef: Number
    """Coefficient of the entropy bonus."""
    reference_coef: Number = np.float32(0)  # type: ignore[assignment]
    """Coefficient of the KL divergence of the policy from the reference distributions of the steps; 0: not computed."""


class LearningFields(NamedTuple, Generic[Array]):
    """What the loss needs of b steps besides observations, each (b,)."""

    actions: Array
    log_probs: Array
    advantages: Array
    returns: Array


class Steps(NamedTuple):
    """What the loss reads of all stored steps."""

    fields: LearningFields[np.ndarray]
    """(s,) each; the actions are int64."""
    masks: np.ndarray
    """(o, a) int8, by number of the observation: 0 for each action that is not allowed; (0, a): all are."""
    reference: np.ndarray
    """(s, a), probabilities of a reference policy, 0 for each action that is not allowed; (0, a): none."""


class StoredSets(NamedTuple):
    """Stored observations that encoders read, by number of the observation; those that are missing have 0 rows."""

    grids: np.ndarray
    """(o, c) uint8, cells of ``locals``."""
    states: np.ndarray
    """(o, m, d), rows of the entities."""
    kinds: np.ndarray
    """(o, m) uint8, their kinds, 0 for rows that are not used."""


class NetworkLayout(NamedTuple):
    """The parameters, and the index of the weight of each layer; its bias follows."""

    parameters: np.ndarray
    """(p,)."""
    hidden: np.ndarray
    """(t, l) int64, the hidden layers."""
    outputs: np.ndarray
    """(2,) int64, the layers of the logits and of the value."""
    encoders: np.ndarray
    """(4,) int64, first column of the inputs and first parameter of the encoder of ``locals``, then of entities."""


class EntityScratch(NamedTuple):
    """The entities of up to r sets of up to m; empty without an encoder of entities."""

    firsts: np.ndarray
    """(r + 1,) int64: of all used entities, those of set i are from firsts[i] to firsts[i + 1] - 1."""
    states: np.ndarray
    """(r * m, d), states of these."""
    kinds: np.ndarray
    """(r * m,) int64, their kinds."""
    hidden: np.ndarray
    """(r * m, u), outputs of the layer for these."""
    chosen: np.ndarray
    """(r, u), the entity with the maximum, -1 if the maximum is 0; float32 for the vector units."""


class Scratch(NamedTuple):
    """What one seat writes."""

    inputs: np.ndarray
    """(n, w), vectors and features."""
    hidden: np.ndarray
    """(t, l, r, h), outputs of the hidden layers."""
    cells: np.ndarray
    """(r, c), grids from 0 to 1; without an encoder of grids (0, 0)."""
    entities: EntityScratch
    logits: np.ndarray
    """(n, a)."""
    values: np.ndarray
    """(n, 1)."""
    delta_logits: np.ndarray
    """(r, a), gradient in the logits."""
    delta_values: np.ndarray
    """(r, 1), gradient in the values."""
    deltas: np.ndarray
    """(2, r, h), gradients in the hidden layers, in turns."""
    delta_inputs: np.ndarray
    """(n, w), gradient in the inputs; (0, w) without encoders."""
    transposed: np.ndarray
    """(t, h * (w + (l - 1) * h)), weights of the hidden layers, transposed as BLAS multiplies them fastest."""


class Seen(NamedTuple):
    """What the network reads of stored observations, by their number."""

    sources: tuple[tuple[np.ndarray, int, int], ...]
    """Bytes of each vector, those of one of its rows, and where they go in a row of inputs."""
    sets: StoredSets


class PassArrays(NamedTuple):
    """What a kernel of one seat needs to compute outputs of the network, and the gradient of stored steps."""

    seen: Seen
    """The stored observations."""
    input_bytes: np.ndarray
    """Bytes of the inputs of the scratch."""
    steps: Steps
    layout: NetworkLayout
    scratch: Scratch


class PictureLayout(NamedTuple):
    """The encoder of pictures of k frames; ``train.policies.encoder_kernels`` describes the table of its layers."""

    corners: np.ndarray
    """(b,) int64, the first pixel of each of b patches in a frame."""
    line: int
    """Pixels of a line of a frame."""
    layers: np.ndarray
    """(l, 6) int64, a row for each layer."""
    parameters: np.ndarray
    """(p,)."""
    column: int
    """First column of the features in the inputs."""


class PictureScratch(NamedTuple):
    """What one seat writes for calls of n pictures, of which q are computed at a time."""

    transposed: np.ndarray
    """Weights of all layers, transposed as BLAS multiplies them fastest, one after the other."""
    pixels: np.ndarray
    """(q * b * k * 64,) uint8, the patches."""
    patches: np.ndarray
    """(q * b, k * 64), the patches, from 0 to 1."""
    hidden: np.ndarray
    """(h,), outputs of the layers over places for all pictures, one layer after the other."""
    above: np.ndarray
    """(n * width,) for the width of the last layer: gradients in its inputs."""
    below: np.ndarray
    """(2, q * b * units) for the units of the first layer: gradients in the outputs of the others."""


def stacked_shape(name: str, shape: tuple[int, ...], depth: int) -> tuple[int, ...]:
    """Return the shape of a stack of an observation as the policy sees it; of masks it sees only the newest."""
    return (depth, *shape) if depth > 1 and name != "action_mask" else tuple(shape)
