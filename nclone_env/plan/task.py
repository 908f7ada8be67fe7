"""A task of searches: a level, the world in which they begin, and the objective.

A solution costs its frames, and the price of the objective for each piece of gold that is left. A search begins at the
start of the level, or in any world of an environment or session.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from nclone_env.constants import CELEBRATING, DEAD, FRAMES_PER_SECOND
from nclone_env.errors import ConfigError
from nclone_env.level import LevelSet
from nclone_env.sim import Session, WorldArrays, copy_world, make_worlds, transfer_world
from nclone_env.sim.tick import start as start_world

PRICES = {"time": 0, "score": 2 * FRAMES_PER_SECOND, "all-gold": 1_000_000}
"""Frames that a piece of gold left behind costs, by objective. The game's clock gains two seconds with each piece. The
price of ``all-gold`` is more than any solution has frames: first as many pieces as possible, then as few frames."""
CLOCK = 90 * FRAMES_PER_SECOND
"""Frames on the game's clock at the start of a level."""


def price_of(objective: str) -> int:
    """Return the price of an objective.

    Raises:
        ConfigError: if there is no such objective.
    """
    if objective not in PRICES:
        raise ConfigError(f"objective: expected one of {', '.join(PRICES)}, got {objective!r}")
    return PRICES[objective]


@dataclass(frozen=True, eq=False)
class Replayed:
    """Inputs that win in their last frame, as ``simulate`` replays them.

    Attributes:
        inputs: (T,) uint8, one input byte a frame.
        gold: pieces collected.
        cost: frames, and the price of the gold that is left.
    """

    inputs: np.ndarray
    gold: int
    cost: int


def replay(levels: LevelSet, origin: WorldArrays, inputs: np.ndarray, price: int) -> Replayed:
    """Replay the inputs of a solution.

    Args:
        levels: level set of one level.
        origin: the world in which it begins, as the only one.
        inputs: (T,) uint8.
        price: of a piece of gold.

    Raises:
        RuntimeError: if they do not win in their last frame.
    """
    session = Session(levels)
    copy_world(origin, 0, session.worlds, 0)
    played = session.record(inputs, entities=False).ninjas
    if not len(played) or played["state"][-1] != CELEBRATING or (played["state"][:-1] == CELEBRATING).any():
        name = levels.levels[0].name
        raise RuntimeError(f"solve: a replay of {len(inputs)} frames on {name!r} does not win at the end")
    gold = int(played["gold"][-1])
    return Replayed(inputs, gold, len(inputs) + price * (int(levels.arrays.header[0]["gold_count"]) - gold))


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
