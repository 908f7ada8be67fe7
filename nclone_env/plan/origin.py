"""The world in which a search begins: the start of a level, or any world of an environment or session."""

from __future__ import annotations

from nclone_env.constants import DEAD
from nclone_env.errors import ConfigError
from nclone_env.level.level_set import LevelSet
from nclone_env.sim.copy import transfer_world
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
    _check_rows(levels, worlds, origin)
    transfer_world(worlds, index, origin, 0, level=0)
    return origin


def _check_rows(levels: LevelSet, worlds: WorldArrays, origin: WorldArrays) -> None:
    """Reject worlds of level sets that cannot contain the level.

    Raises:
        ConfigError: if their rows are too short for it.
    """
    for name in ("entity_states", "movers"):
        least, count = getattr(origin, name).shape[1], getattr(worlds, name).shape[1]
        if count < least:
            level = levels.levels[0].name
            raise ConfigError(f"start: expected a world of {level!r}, which has {least} {name}, got {count}")
