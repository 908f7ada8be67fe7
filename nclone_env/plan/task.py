"""A task of searches: a level, the world in which they begin, and the objective.

A solution costs its frames, and the price of the objective for each piece of gold that is left. A search begins at the
start of the level, or in any world of an environment or session.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from nclone_env.errors import ConfigError, UnsupportedLevelError
from nclone_env.game import CELEBRATING, DEAD, FRAMES_PER_SECOND
from nclone_env.level import Guide, Level, LevelArrays, LevelSet, make_guide, pack
from nclone_env.sim import KeyParts, Session, WorldArrays, copy_world, key_parts, make_worlds, transfer_world
from nclone_env.sim import start as start_world

PRICES = {"time": 0, "score": 2 * FRAMES_PER_SECOND, "all-gold": 1_000_000}
"""Frames that a piece of gold left behind costs, by objective. The game's clock gains two seconds with each piece. The
price of ``all-gold`` is more than any solution has frames: first as many pieces as possible, then as few frames."""
CLOCK = 90 * FRAMES_PER_SECOND
"""Frames on the game's clock at the start of a level."""
MAX_FRAMES = 5400
"""The longest solution by default: 90 seconds of the game."""
MOST_FRAMES = PRICES["all-gold"] - 1
"""The longest solution that can be asked for, four and a half hours of the game; also the longest hold of an input."""


def price_of(objective: str) -> int:
    """Return the price of an objective; ConfigError if there is no such objective."""
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
    """Replay the inputs of a solution on the level of a set of one, from the only world of ``origin``.

    Raises:
        RuntimeError: if they do not win in their last frame.
    """
    played = play_from(Session(levels), origin, inputs)
    if not wins_at_end(played):
        name = levels.levels[0].name
        raise RuntimeError(f"solve: a replay of {len(inputs)} frames on {name!r} does not win at the end")
    gold = int(played["gold"][-1])
    return Replayed(inputs, gold, len(inputs) + price * (int(levels.arrays.header[0]["gold_count"]) - gold))


def wins_at_end(ninjas: np.ndarray) -> bool:
    """Return whether a run, (T,) ``NINJA_RECORD``, wins in its last frame, and not before."""
    won = ninjas["state"] == CELEBRATING
    return bool(won[-1:].any() and not won[:-1].any())


def play_from(session: Session, origin: WorldArrays, inputs: np.ndarray) -> np.ndarray:
    """Return the (T,) ``NINJA_RECORD`` after each frame that is played from the only world of ``origin``."""
    copy_world(origin, 0, session.worlds, 0)
    return session.record(inputs, entities=False).ninjas


class LevelWorlds(Protocol):
    """Worlds that tell their levels: a vector environment or a session."""

    @property
    def worlds(self) -> WorldArrays:
        """The worlds."""

    @property
    def level_set(self) -> LevelSet:
        """Their levels."""


AnyWorlds = WorldArrays | LevelWorlds
"""Worlds of any level set; bare arrays do not tell their levels."""
Start = tuple[AnyWorlds, int]
"""Worlds, and the index of one of them."""


def origin_of(levels: LevelSet, start: Start | None = None) -> WorldArrays:
    """Return the world in which a search begins, as the only one: by default the start of the level of a set of one.

    Raises:
        ConfigError: if ``start`` cannot be a world of this level, or the ninja is dead or has won.
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
    """Return worlds of any level set as worlds of a level set of one level.

    Args:
        given: worlds, at least those of ``rows``, (n,) integers, on this level.
        argument: name of the argument for messages.

    Raises:
        ConfigError: if a row is not among the worlds, or a world cannot be one of this level.
    """
    worlds = given if isinstance(given, WorldArrays) else given.worlds
    places = checked_rows(worlds, rows, argument)
    target, level = make_worlds(len(places), levels), levels.levels[0]
    if not isinstance(given, WorldArrays):
        for number in np.unique(worlds.ninjas["level"][places]):
            other = given.level_set.levels[number]
            if other.raw.digest != level.raw.digest:
                raise ConfigError(f"{argument}: expected a world of {level.name!r}, got one of {other.name!r}")
    for name in ("entity_states", "movers"):  # rows of other level sets can be too short
        least, count = getattr(target, name).shape[1], getattr(worlds, name).shape[1]
        if count < least:
            raise ConfigError(f"{argument}: expected a world of {level.name!r}, which has {least} {name}, got {count}")
    for place, index in enumerate(places):
        transfer_world(worlds, int(index), target, place, level=0)
    return target


class Task(NamedTuple):
    """A level and an objective as searches need them."""

    level_set: LevelSet
    levels: LevelArrays
    guide: Guide
    parts: KeyParts
    origin: WorldArrays
    """The world in which solutions begin."""
    price: int = 0
    """Frames that a piece of gold left behind costs."""
    max_frames: int = MAX_FRAMES
    """Longest solution to look for."""
    hold: int = 1
    """Inputs change only in frames that are multiples of it."""

    @property
    def gold(self) -> int:
        """Pieces of gold of the level."""
        return int(self.levels.header[0]["gold_count"])


def make_task(
    level: Level, price: int = 0, max_frames: int = MAX_FRAMES, hold: int = 1, start: Start | None = None
) -> Task:
    """Prepare a level; the arguments are those of ``solve``.

    Raises:
        UnsupportedLevelError: if it has no exit.
        ConfigError: if the world to start from is not one of the level.
    """
    levels = pack([level])
    if not levels.arrays.header[0]["exit_count"]:
        raise UnsupportedLevelError(f"level: expected a level with an exit, got {level.name!r}, which has none")
    guide, parts = make_guide(levels, gold=price > 0), key_parts(levels)
    task = Task(levels, levels.arrays, guide, parts, origin_of(levels, start), price, max_frames, hold)
    return with_all_gold(task) if price == PRICES["all-gold"] else task


def with_all_gold(task: Task) -> Task:
    """Return the task with a guide by which every piece of gold must be collected, if gold counts."""
    gold = task.guide.gold._replace(each=np.ones(1, np.bool_))
    return task._replace(guide=task.guide._replace(gold=gold)) if len(gold.slots) else task
