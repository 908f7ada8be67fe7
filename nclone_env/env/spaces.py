"""Gymnasium spaces, derived from the table of observations."""

from __future__ import annotations

from collections.abc import Sequence

import gymnasium
import numpy as np

from nclone_env.obs import ObservationSpec


def observation_space(specs: Sequence[ObservationSpec], only: str | None = None) -> gymnasium.Space:
    """Return the single observation space: a Dict with one Box per array, or the Box of the array named ``only``."""
    return _space({spec.name: _box(spec, spec.shape) for spec in specs}, only)


def batched_space(specs: Sequence[ObservationSpec], num_envs: int, only: str | None = None) -> gymnasium.Space:
    """Return the observation space of ``num_envs`` environments, equal to Gymnasium's ``batch_space``."""
    return _space({spec.name: _box(spec, (num_envs, *spec.shape)) for spec in specs}, only)


def _space(boxes: dict[str, gymnasium.Space], only: str | None) -> gymnasium.Space:
    return gymnasium.spaces.Dict(boxes) if only is None else boxes[only]


def _box(spec: ObservationSpec, shape: tuple[int, ...]) -> gymnasium.spaces.Box:
    """Return a Box whose bounds are views of one element.

    Gymnasium stores two bounds and two masks per element, four times the bytes of a picture.
    """
    box = gymnasium.spaces.Box(spec.low, spec.high, (1,) * len(shape), spec.dtype.type)
    for name in ("low", "high", "bounded_below", "bounded_above"):
        setattr(box, name, np.broadcast_to(getattr(box, name), shape))
    box._shape = shape
    return box
