"""Inputs that complete a level: archive searches in turn, then earlier arrivals until the end."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle, islice

import numpy as np

from nclone_env.constants import CELEBRATING
from nclone_env.errors import ConfigError, UnsupportedLevelError
from nclone_env.level.level import Level
from nclone_env.level.level_set import pack
from nclone_env.level.load import LevelSource, load_level
from nclone_env.plan.archive import RULES, Archive, begin, best_inputs, cells_that_fit, explore, make_archive
from nclone_env.plan.guide import make_guide
from nclone_env.sim.keys import key_parts
from nclone_env.sim.random_numbers import random_bits
from nclone_env.sim.simulate import simulate

MAX_FRAMES = 5400
"""The longest solution by default: 90 seconds of the game."""
MEMORY = 600_000_000
"""Bytes of the archives, at most; they fill as cells are found."""
_MOST_CELLS = 100_000  # of one archive
_NEVER = 1 << 30
_FIRST_RULES = ((30.0, 5.0, _NEVER, 1.0, 0.0), (15.0, 2.0, _NEVER, 1.0, 0.0), (30.0, 5.0, 240, 1.0, 0.0))
_FIRST_TURNS = (4, 1, 1)
"""``RULES`` of the searches for a first solution, and how many turns each has in a row: large cells, small ones, and
large ones that are others after four seconds, for levels in which the ninja has to wait for what moves. The last two
succeed soon or not at all."""
_SLOWNESS = 1.0 / 4.5  # the ninja runs 3.3 pixels in a frame, and falls faster
_NEXT_RULES = ((16.0, 1.5, _NEVER, 0.0, _SLOWNESS), (30.0, 5.0, 240, 0.0, _SLOWNESS))
_NEXT_TURNS = (3, 1)
"""The same of the searches for shorter solutions, which do not prefer places near the exit."""
_TURN = 40_000
"""Frames of one search before the next takes its turn: some milliseconds."""


@dataclass(frozen=True, eq=False)
class Solution:
    """What a search found.

    Attributes:
        inputs: (T,) uint8, one input byte a frame, the last one of the frame in which the ninja wins; empty if no
            solution was found.
        simulated: frames that the search simulated.
        seconds: seconds that it took.
        stage: that found it, ``first`` or ``shorter``; empty if there is none.
    """

    inputs: np.ndarray
    simulated: int
    seconds: float
    stage: str

    @property
    def completed(self) -> bool:
        """Whether the inputs complete the level."""
        return self.frames > 0

    @property
    def frames(self) -> int:
        """Frames until the level is completed, 0 if it is not."""
        return len(self.inputs)


def solve(
    level: LevelSource,
    *,
    seconds: float = math.inf,
    frames: float = math.inf,
    seed: int = 0,
    max_frames: int = MAX_FRAMES,
    memory: int = MEMORY,
    on_solution: Callable[[Solution], None] | None = None,
    stop: Callable[[], bool] | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> Solution:
    """Search for the shortest inputs that complete a level, until a budget is spent.

    The same arguments give the same solutions if ``frames`` ends the search. Every solution is replayed by ``simulate``
    before it is reported. Ctrl-C ends the search with the best solution so far; without one, the exception is raised.

    Args:
        level: the level, in any form that ``load_level`` accepts.
        seconds: budget of time, preparation included.
        frames: budget of simulated frames.
        seed: seed of the random choices, 0 or more.
        max_frames: longest solution to look for.
        memory: bytes of the archives, at most.
        on_solution: called with each better solution.
        stop: asked every few milliseconds whether to end the search.
        clock: measures the time; ``time.process_time`` leaves out the time that other processes take.

    Raises:
        LevelFormatError, UnknownLevelError: if the level cannot be loaded.
        UnsupportedLevelError: if it has no exit.
        ConfigError: if a budget or ``max_frames`` is not positive, none is given, the seed is negative, or the memory
            is too small for the level.
    """
    _check(seconds, frames, seed, max_frames)
    search = _Search(load_level(level), seed, max_frames, memory, _Budget(seconds, frames, stop, clock))
    best = search.result(np.zeros(0, dtype=np.uint8), "")
    try:
        for best in search.solutions():
            if on_solution is not None:
                on_solution(best)
    except KeyboardInterrupt:
        if not best.completed:
            raise
    return search.result(best.inputs, best.stage)


class _Budget:
    """What is left of a number of seconds and of frames.

    Attributes:
        used: frames simulated.
    """

    def __init__(self, seconds: float, frames: float, stop: Callable[[], bool] | None, clock: Callable[[], float]):
        self._clock, self._began = clock, clock()
        self._seconds, self._frames, self._stop = seconds, frames, stop
        self.used = 0

    @property
    def elapsed(self) -> float:
        """Seconds since the beginning."""
        return self._clock() - self._began

    @property
    def chunk(self) -> int:
        """Frames to simulate before the next look at the budget; 0 if it is spent."""
        if self.elapsed >= self._seconds or (self._stop is not None and self._stop()):
            return 0
        return int(min(_TURN, max(self._frames - self.used, 0)))


class _Search:
    """The searches on one level."""

    def __init__(self, level: Level, seed: int, max_frames: int, memory: int, budget: _Budget):
        self._level, self._seed, self._limit, self._budget = level, seed, max_frames + 1, budget
        levels = pack([level])
        if not levels.arrays.header[0]["exit_count"]:
            raise UnsupportedLevelError(f"level: expected a level with an exit, got {level.name!r}, which has none")
        cells = min(cells_that_fit(levels, memory // len(_FIRST_RULES), max_frames), _MOST_CELLS)
        if cells < 1:
            raise ConfigError(f"memory: expected room for {len(_FIRST_RULES)} archives of worlds, got {memory} bytes")
        self._levels, self._guide, self._parts = levels.arrays, make_guide(levels), key_parts(levels)
        self._archives = [make_archive(levels, cells, max_frames) for _ in _FIRST_RULES]
        self._begun = 0

    def solutions(self) -> Iterator[Solution]:
        """Yield ever shorter solutions until the budget is spent."""
        yield from islice(self._in_turn(_FIRST_RULES, _FIRST_TURNS, "first"), 1)
        yield from self._in_turn(_NEXT_RULES, _NEXT_TURNS, "shorter")

    def _in_turn(self, settings: Sequence[tuple[float, ...]], turns: Sequence[int], stage: str) -> Iterator[Solution]:
        """Yield the solutions of searches that begin now and take turns."""
        searches = [(archive, np.array([rules], dtype=RULES)) for archive, rules in zip(self._archives, settings)]
        for archive, rules in searches:
            archive.search["limit"] = self._limit
            begin(self._levels, archive, self._guide, self._parts, rules, random_bits(self._seed, self._begun))
            self._begun += 1
        for archive, rules in cycle([search for search, count in zip(searches, turns) for _ in range(count)]):
            frames = self._budget.chunk
            if not frames:
                return
            if self._explore(archive, rules, frames):
                yield self._verified(archive, stage)

    def _explore(self, archive: Archive, rules: np.ndarray, frames: int) -> bool:
        """Search for so many frames, or until a better solution is found; return whether one was."""
        search = archive.search[0]
        search["limit"], before = self._limit, int(search["frames"])
        found = explore(self._levels, archive, self._guide, self._parts, rules, before + frames)
        self._budget.used += int(search["frames"]) - before
        return found

    def result(self, inputs: np.ndarray, stage: str) -> Solution:
        """Return a solution with the statistics so far."""
        return Solution(inputs, self._budget.used, self._budget.elapsed, stage)

    def _verified(self, archive: Archive, stage: str) -> Solution:
        """Return the solution that a search found, after a replay."""
        inputs = best_inputs(archive)
        self._limit = len(inputs)
        states = simulate(self._level, inputs).state
        if states[-1] != CELEBRATING or (states[:-1] == CELEBRATING).any():
            raise RuntimeError(
                f"solve: a replay of {len(inputs)} frames on {self._level.name!r} does not win at the end"
            )
        return self.result(inputs, stage)


def _check(seconds: float, frames: float, seed: int, max_frames: int) -> None:
    for name, value in (("seconds", seconds), ("frames", frames), ("max_frames", max_frames)):
        if not value > 0:
            raise ConfigError(f"{name}: expected a number above 0, got {value}")
    if math.isinf(seconds) and math.isinf(frames):
        raise ConfigError("seconds, frames: expected at least one budget, got none; pass seconds=4, for example")
    if seed < 0:
        raise ConfigError(f"seed: expected a whole number of at least 0, got {seed}")
