"""A task of searches: a level, the world in which they begin, and the objective; and what becomes of a solution.

A solution costs its frames, and the price of the objective for each piece of gold that is left. A search begins at the
start of the level, or in any world of an environment or session.

What a search finds changes its inputs at random where they do not matter. :func:`smooth` joins runs of equal inputs
with those before or after them as long as the level is still won in time, and of inputs that do equally well takes the
one with the lowest number, for people and policies to learn from. Every step is determined by the solution alone.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple, Protocol

import numpy as np

from nclone_env.errors import ConfigError, UnsupportedLevelError, check_integer, shortened
from nclone_env.game import CELEBRATING, DEAD, FRAMES_PER_SECOND
from nclone_env.level import Guide, Level, LevelArrays, LevelSet, LevelSource, load_level, make_guide, pack
from nclone_env.plan.kernels import INPUTS
from nclone_env.sim import KeyParts, Session, WorldArrays, copy_world, key_parts, make_worlds
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

_SHIFTED = 12
"""Frames by which a joined run may become longer or shorter."""


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
    """Replay the inputs of a solution on the level of a set of one, from the only world of ``origin``."""
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
    """Return the world in which a search begins, as the only one: by default the start of the level of a set of one."""
    if start is None:
        origin = make_worlds(1, levels)
        start_world(levels.arrays, origin, 0, 0)
        return origin
    is_pair = isinstance(start, tuple | list) and len(start) == 2
    if not is_pair or not (isinstance(start[0], WorldArrays) or hasattr(start[0], "worlds")):
        expected = "an environment or session, and the index of its world, such as (envs, 3)"
        raise ConfigError(f"start: expected {expected}, got {shortened(start)}")
    origin = _transferred(levels, start[0], check_integer("start[1], the index of the world", start[1], low=0))
    if origin.ninjas[0]["state"] >= DEAD:
        raise ConfigError("start: expected a world in which the ninja is alive and has not won")
    return origin


def _transferred(levels: LevelSet, given: AnyWorlds, index: int) -> WorldArrays:
    """Return a world of any level set as the only one of a level set of one level; errors as of :func:`origin_of`."""
    worlds = given if isinstance(given, WorldArrays) else given.worlds
    level, count, target = levels.levels[0], len(worlds.ninjas), make_worlds(1, levels)
    if not 0 <= index < count:
        raise ConfigError(f"start: expected the index of a world from 0 to {count - 1}, got {index}")
    if not isinstance(given, WorldArrays):
        other = given.level_set.levels[worlds.ninjas["level"][index]]
        if other.raw.digest != level.raw.digest:
            raise ConfigError(f"start: expected a world of {level.name!r}, got one of {other.name!r}")
    header = levels.arrays.header[0]
    for part, count_name in (("entities", "entity_count"), ("movers", "mover_count"), ("trail", "trail_count")):
        needed, found = int(header[count_name]), int(worlds.rooms[index][part]["used"])
        if found != needed:
            raise ConfigError(f"start: expected a world of {level.name!r}, which has {needed} {part}, got {found}")
    copy_world(worlds, index, target, 0)
    target.ninjas[0]["level"] = 0
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

    def with_levels(self, levels: LevelSet) -> "Task":
        """Return the task for a level that differs by entities that do not count for the guide."""
        return self._replace(level_set=levels, levels=levels.arrays, parts=key_parts(levels), origin=origin_of(levels))


def make_task(
    level: Level, price: int = 0, max_frames: int = MAX_FRAMES, hold: int = 1, start: Start | None = None
) -> Task:
    """Prepare a level; the arguments are those of ``solve``."""
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


class _Held(NamedTuple):
    """An input, and the frames that it is held."""

    code: int
    frames: int


def smooth(
    level: LevelSource, inputs: np.ndarray, *, slack: float = 0.05, hold: int = 1, start: Start | None = None
) -> np.ndarray:
    """Return a solution with fewer changes of input, (T,) uint8, that wins in its last frame.

    Args:
        inputs: (T,) uint8, a solution.
        slack: share of the frames by which the result may be longer.
        hold: inputs change only in frames that are multiples of it; ``inputs`` must do so already.
        start: world in which the solution begins, as for ``solve``; None: the start of the level.
    """
    changes = np.flatnonzero(np.diff(inputs)) + 1
    if (changes % hold).any():
        raise ValueError(
            f"inputs: expected changes in multiples of {hold} frames, got one in frame {changes[changes % hold > 0][0]}"
        )
    loaded = load_level(level)
    trial = _Trial(loaded, start)
    runs, frames = _runs(inputs), trial.won_after(inputs)
    if frames == 0:
        raise ValueError(f"inputs: expected a solution of {loaded.name!r}, got {len(inputs)} frames that do not win")
    most = int(len(inputs) * (1.0 + slack))
    runs = _joined(trial, runs, hold, most)
    return _inputs(_renamed(trial, runs))


class _Trial:
    """Plays inputs from the world in which a solution begins."""

    def __init__(self, level: Level, start: Start | None):
        self._session = Session(level)
        self._origin = origin_of(self._session.level_set, start)

    def won_after(self, inputs: np.ndarray) -> int:
        """Return the frames after which the inputs win, 0 if they do not."""
        states = play_from(self._session, self._origin, inputs)["state"]
        over = np.flatnonzero(states >= DEAD)
        return int(over[0]) + 1 if len(over) and states[over[0]] == CELEBRATING else 0

    def shortened(self, runs: list[_Held], most: int) -> list[_Held] | None:
        """Return runs up to the frame in which they win, None if that is none of the first ``most`` frames."""
        inputs = _inputs(runs)[:most]
        frames = self.won_after(inputs)
        return _runs(inputs[:frames]) if frames else None


def _joined(trial: _Trial, runs: list[_Held], hold: int, most: int) -> list[_Held]:
    """Join runs until none can be joined."""
    number = unchanged = 0
    while unchanged < len(runs):
        unchanged += 1
        for tried in _joins(runs, number, hold):
            shorter = trial.shortened(tried, most)
            if shorter is not None and len(shorter) < len(runs):
                runs, unchanged = shorter, 0
                break
        number = (number + 1) % len(runs)
    return runs


def _joins(runs: list[_Held], number: int, hold: int) -> Iterator[list[_Held]]:
    """Yield runs without one of them, whose frames its neighbours take over, more or less."""
    for neighbour in (number - 1, number + 1):
        if 0 <= neighbour < len(runs):
            for shift in sorted(range(-(_SHIFTED // hold) * hold, _SHIFTED + 1, hold), key=abs):
                frames = runs[number].frames + shift
                if frames >= 0:
                    yield [*runs[:number], _Held(runs[neighbour].code, frames), *runs[number + 1 :]]


def _renamed(trial: _Trial, runs: list[_Held]) -> list[_Held]:
    """Take for each run the first input that does equally well."""
    frames = sum(run.frames for run in runs)
    for number in range(len(runs)):
        for code in INPUTS:
            if number >= len(runs) or code == runs[number].code:
                break
            shorter = trial.shortened([*runs[:number], _Held(code, runs[number].frames), *runs[number + 1 :]], frames)
            if shorter is not None and len(shorter) <= len(runs):
                runs, frames = shorter, sum(run.frames for run in shorter)
                break
    return runs


def _runs(inputs: np.ndarray) -> list[_Held]:
    return [_Held(code, len(list(held))) for code, held in groupby(inputs.tolist())]


def _inputs(runs: list[_Held]) -> np.ndarray:
    return np.repeat(np.array([run.code for run in runs], np.uint8), [run.frames for run in runs])
