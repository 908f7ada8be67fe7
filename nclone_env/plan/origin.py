"""The world in which a search begins: the start of a level, or any world of an environment or session."""

from __future__ import annotations

import numpy as np

from nclone_env.constants import DEAD
from nclone_env.errors import ConfigError
from nclone_env.level.level_set import LevelSet
from nclone_env.sim.state import WorldArrays, make_worlds
from nclone_env.sim.tick import start as start_world

Start = tuple[WorldArrays, int]
"""Worlds of any level set, and the index of one of them."""


def origin_of(levels: LevelSet, start: Start | None = None) -> WorldArrays:
    """Return the world in which a search begins, as the only one.

    Args:
        levels: level set of one level.
        start: a world on this level, of any level set; None: the start of the level.

    Raises:
        ConfigError: if the world cannot be one of this level, or the ninja is dead or has won.
    """
    origin = make_worlds(1, levels)
    if start is None:
        start_world(levels.arrays, origin, 0, 0)
        return origin
    worlds, index = start
    if not 0 <= index < len(worlds.ninjas):
        raise ConfigError(f"start: expected the index of a world from 0 to {len(worlds.ninjas) - 1}, got {index}")
    if worlds.ninjas[index]["state"] >= DEAD:
        raise ConfigError("start: expected a world in which the ninja is alive and has not won")
    origin.ninjas[0] = worlds.ninjas[index]
    for name in ("entity_states", "movers", "trail"):
        _copy_row(name, getattr(worlds, name)[index], getattr(origin, name)[0])
    origin.ninjas[0]["level"] = 0
    return origin


def _copy_row(name: str, source: np.ndarray, target: np.ndarray) -> None:
    """Copy what belongs to the level; rows of other level sets are longer, those with a time limit have a short trail.

    Raises:
        ConfigError: if the row is too short for the level.
    """
    if name != "trail" and len(source) < len(target):
        raise ConfigError(f"start: expected a world of this level, with {len(target)} {name}, got {len(source)}")
    size = min(len(source), len(target))
    target[:size] = source[:size]
