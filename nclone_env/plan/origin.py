"""The world in which a search begins: the start of a level, or any world of an environment or session."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from nclone_env.constants import DEAD
from nclone_env.errors import ConfigError
from nclone_env.level import LevelSet
from nclone_env.sim import WorldArrays, make_worlds, transfer_world
from nclone_env.sim.tick import start as start_world


class LevelWorlds(Protocol):
    """Worlds that tell their levels: a vector environment or a session."""

    @property
    def worlds(self) -> WorldArrays:
        """The worlds."""
        ...

    @property
    def level_set(self) -> LevelSet:
        """Their levels."""
        ...


AnyWorlds = WorldArrays | LevelWorlds
"""Worlds of any level set; bare arrays do not tell their levels."""
Start = tuple[AnyWorlds, int]
"""Worlds, and the index of one of them."""


def origin_of(levels: LevelSet, start: Start | None = None) -> WorldArrays:
    """Return the world in which a search begins, as the only one.

    Args:
        levels: level set of one level.
        start: a world on this level, of any level set; None: the start of the level.

    Raises:
        ConfigError: if the world cannot be one of this level, or the ninja is dead or has won.
    """
    if start is None:
        origin = make_worlds(1, levels)
        start_world(levels.arrays, origin, 0, 0)
        return origin
    origin = transferred(levels, start[0], [start[1]], "start")
    if origin.ninjas[0]["state"] >= DEAD:
        raise ConfigError("start: expected a world in which the ninja is alive and has not won")
    return origin


def checked_rows(worlds: WorldArrays, rows: Sequence[int] | np.ndarray, argument: str) -> np.ndarray:
    """Return the indices of worlds as (n,) int64.

    Raises:
        ConfigError: if one is not among the worlds; it names the argument.
    """
    places, count = np.ascontiguousarray(rows, np.int64).reshape(-1), len(worlds.ninjas)
    outside = places[(places < 0) | (places >= count)]
    if len(outside):
        raise ConfigError(f"{argument}: expected the index of a world from 0 to {count - 1}, got {outside[0]}")
    return places


def transferred(levels: LevelSet, given: AnyWorlds, rows: Sequence[int] | np.ndarray, argument: str) -> WorldArrays:
    """Return worlds of any level set as worlds of a level set.

    Args:
        levels: level set of one level.
        given: worlds, at least those of ``rows`` on this level.
        rows: (n,) integers, which of them.
        argument: name of the argument for messages.

    Returns:
        n worlds.

    Raises:
        ConfigError: if a row is not among the worlds, or a world cannot be one of this level.
    """
    worlds = given if isinstance(given, WorldArrays) else given.worlds
    places = checked_rows(worlds, rows, argument)
    target = make_worlds(len(places), levels)
    if not isinstance(given, WorldArrays):
        _check_level(levels, given, places, argument)
    _check_sizes(levels, worlds, target, argument)
    for place, index in enumerate(places):
        transfer_world(worlds, int(index), target, place, level=0)
    return target


def _check_level(levels: LevelSet, given: LevelWorlds, places: np.ndarray, argument: str) -> None:
    """Reject worlds on other levels.

    Raises:
        ConfigError: if there is one; it names both levels.
    """
    level = levels.levels[0]
    for number in np.unique(given.worlds.ninjas["level"][places]):
        other = given.level_set.levels[number]
        if other.raw.digest != level.raw.digest:
            raise ConfigError(f"{argument}: expected a world of {level.name!r}, got one of {other.name!r}")


def _check_sizes(levels: LevelSet, worlds: WorldArrays, target: WorldArrays, argument: str) -> None:
    """Reject worlds of level sets that cannot contain the level.

    Raises:
        ConfigError: if their rows are too short for it.
    """
    for name in ("entity_states", "movers"):
        least, count = getattr(target, name).shape[1], getattr(worlds, name).shape[1]
        if count < least:
            level = levels.levels[0].name
            raise ConfigError(f"{argument}: expected a world of {level!r}, which has {least} {name}, got {count}")
