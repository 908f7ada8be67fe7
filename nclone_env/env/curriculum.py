"""Which level an episode plays: one asked for, one assigned to the environment, or one drawn by weight."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nclone_env.errors import ConfigError, UnknownLevelError

_BITS = 63


def level_thresholds(weights: np.ndarray) -> np.ndarray:
    """Return the bounds, (L,) uint64, below which a random number of 63 bits draws each level."""
    shares = np.cumsum(weights / weights.sum())
    bounds = [min(int(share * 2**_BITS), 2**_BITS) for share in shares.tolist()]
    last = int(np.flatnonzero(weights)[-1])
    bounds[last:] = [2**_BITS] * (len(bounds) - last)
    return np.array(bounds, dtype=np.uint64)


def check_weights(weights: Any, names: Sequence[str]) -> np.ndarray:
    """Return the weight of each level, (L,) float64.

    Args:
        weights: one number a level in their order, or some by name (the others get 0), or None for equal ones.
        names: names of the levels.

    Raises:
        UnknownLevelError: if a name is not one of them.
        ConfigError: if the number of weights is wrong, one is negative or not finite, or all are 0.
    """
    if weights is None:
        return np.ones(len(names))
    if isinstance(weights, Mapping):
        array = np.zeros(len(names))
        for name, weight in weights.items():
            array[find_level(name, names, "weights")] = weight
    else:
        array = np.array(weights, dtype=np.float64)
    if array.shape != (len(names),):
        raise ConfigError(f"weights: expected one number for each of the {len(names)} levels, got shape {array.shape}")
    if not np.isfinite(array).all() or (array < 0).any() or not array.any():
        raise ConfigError(f"weights: expected finite numbers of at least 0, not all 0, got {array.tolist()}")
    return array


def check_assignment(argument: str, levels: Any, names: Sequence[str], num_envs: int) -> np.ndarray:
    """Return the level of each environment, (n,) int64, -1 where levels are drawn.

    Args:
        argument: what to call them in messages.
        levels: n names or indices, with None (or -1) where levels are drawn; or None for all.
        names: names of the levels.
        num_envs: n.

    Raises:
        UnknownLevelError: if a level is not one of them.
        ConfigError: if the number of levels is wrong.
    """
    if levels is None:
        return np.full(num_envs, -1)
    if isinstance(levels, (str, bytes)) or not isinstance(levels, (Sequence, np.ndarray)) or len(levels) != num_envs:
        raise ConfigError(
            f"{argument}: expected one level or None for each of the {num_envs} environments, got {levels!r}"
        )
    drawn = [level is None or (not isinstance(level, str) and level == -1) for level in levels]
    pairs = zip(drawn, levels, strict=True)
    return np.array([-1 if free else find_level(level, names, argument) for free, level in pairs], dtype=np.int64)


def find_level(level: Any, names: Sequence[str], argument: str) -> int:
    """Return the index of a level given by name or index.

    Raises:
        UnknownLevelError: if there is none; the message lists the names.
    """
    if isinstance(level, str) and level in names:
        return names.index(level)
    if isinstance(level, (int, np.integer)) and not isinstance(level, bool) and 0 <= level < len(names):
        return int(level)
    raise UnknownLevelError(
        f"{argument}: expected a name or an index below {len(names)}, got {level!r}; "
        f"levels of this environment: {', '.join(names)}"
    )
