"""Encoders: what turns each observation that is no vector into features of the actor-critic."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor, nn

from nclone_env.errors import ConfigError

Shapes = Mapping[str, tuple[int, ...]]


class Encoder(nn.Module):
    """Base class: ``forward`` takes the observations named in ``inputs`` and returns (n, ``width``) float32."""

    inputs: tuple[str, ...]
    width: int

    def forward(self, *inputs: Tensor) -> Tensor:
        """Return the features (n, width) float32 of n observations."""
        raise NotImplementedError


def make_encoders(shapes: Shapes) -> dict[str, Encoder | None]:
    """Return the encoder of each input of the network by the name of its observation, None for vectors."""
    encoders: dict[str, Encoder | None] = {}
    for name, shape in shapes.items():
        if name == "action_mask":
            continue
        if len(shape) > 2:
            raise ConfigError(f"observations: the network has no encoder for {name!r} of shape {shape}")
        encoders[name] = None
    return encoders
