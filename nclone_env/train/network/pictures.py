"""Pictures on the fast path: an encoder of ``train.network.encoders`` by hand, with its place in the network."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from torch import nn

from nclone_env.jit import specialised
from nclone_env.train.network.arrays import PictureLayout, PictureScratch
from nclone_env.train.network.encoders import PictureEncoder
from nclone_env.train.network.picture_kernels import add_picture_gradients, encode_pictures
from nclone_env.train.network.policy import FlatParameters

_PATCH_BYTES = 1 << 18
"""Most bytes of the patches that are computed together: a quarter of the second level of the cache."""


class PictureLayers:
    """The encoder of one observation, for use by several threads.

    Args:
        encoder: the module; its parameters are among those of ``parameters``.
        column: first column of its features in the inputs of the MLP.
    """

    def __init__(
        self, name: str, encoder: PictureEncoder, parameters: FlatParameters, column: int, seats: int, most_rows: int
    ):
        layers = _layer_table(name, encoder, parameters)
        self._frames = encoder.frames
        self._layout = PictureLayout(encoder.corners(), encoder.line, layers, parameters.vector, column)
        self.scratch = [picture_scratch(encoder, most_rows) for _ in range(seats)]

    def encode(self, seat: int, pictures: np.ndarray, rows: np.ndarray, inputs: np.ndarray) -> None:
        """Write the features of the pictures of n ``rows`` to their columns of ``inputs``, (n, w) float32.

        Args:
            pictures: (s, height, width, 1) uint8, or (s, k, height, width, 1).
            rows: (n,) int64.
        """
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

        Args:
            pictures: as for :meth:`encode`, like the next two.
            deltas: (n, w) float32, gradients in the inputs; those of the pictures are overwritten.
        """
        flat = self._flat(pictures)
        self._add_gradients(flat, rows, self._layout, self.scratch[seat], inputs, deltas, gradients)

    @cached_property
    def _encode(self) -> Callable[..., Any]:
        return specialised(encode_pictures, *self._examples)

    @cached_property
    def _add_gradients(self) -> Callable[..., Any]:
        *_, inputs = self._examples
        return specialised(add_picture_gradients, *self._examples, inputs, np.zeros(0, np.float32))

    @property
    def _examples(self) -> tuple[Any, ...]:
        """Arguments of ``encode_pictures``."""
        pictures, inputs = np.zeros((0, 0, 0), np.uint8), np.zeros((0, 0), np.float32)
        return pictures, np.zeros(0, np.int64), self._layout, self.scratch[0], inputs

    def _flat(self, pictures: np.ndarray) -> np.ndarray:
        """Return pictures as (s, k, pixels)."""
        return np.ascontiguousarray(pictures).reshape(len(pictures), self._frames, -1)


def picture_scratch(encoder: PictureEncoder, most_rows: int) -> PictureScratch:
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
