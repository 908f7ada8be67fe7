"""Inputs that complete a level: archive searches in turn; then, until the end, earlier arrivals and edits."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle, islice

import numpy as np

from nclone_env.constants import CELEBRATING
from nclone_env.errors import ConfigError
from nclone_env.level.level import Level
from nclone_env.level.load import LevelSource, load_level
from nclone_env.plan.archive import cells_that_fit, make_archive
from nclone_env.plan.polish import make_polisher
from nclone_env.plan.searches import ArchiveSearch, PolishSearch, Search, make_task
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
_NEXT_TURNS = (2, 1, 3)
"""The same of the searches for shorter solutions, which do not prefer places near the exit; the last are turns of edits
of the best solution."""
FIRST, SHORTER, POLISHED = "first", "shorter", "polished"
"""Stages of a search."""
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
        stage: of the search that found it: ``first``, ``shorter`` (by an archive) or ``polished`` (by edits); empty if
            there is none.
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
    search = _Solver(load_level(level), seed, max_frames, memory, _Budget(seconds, frames, stop, clock))
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


class _Solver:
    """The searches on one level, in turn."""

    def __init__(self, level: Level, seed: int, max_frames: int, memory: int, budget: _Budget):
        self._level, self._seed, self._max_frames, self._budget = level, seed, max_frames, budget
        self._task = task = make_task(level)
        cells = min(cells_that_fit(task.level_set, memory // len(_FIRST_RULES), max_frames), _MOST_CELLS)
        if cells < 1:
            raise ConfigError(f"memory: expected room for {len(_FIRST_RULES)} archives of worlds, got {memory} bytes")
        self._archives = [make_archive(task.level_set, cells, max_frames) for _ in _FIRST_RULES]
        self._begun = 0
        self._best = np.zeros(0, dtype=np.uint8)

    def solutions(self) -> Iterator[Solution]:
        """Yield ever shorter solutions until the budget is spent."""
        yield from islice(self._in_turn(self._archive_searches(_FIRST_RULES, FIRST), _FIRST_TURNS), 1)
        if len(self._best):
            polisher = make_polisher(self._task.level_set, len(self._best))
            searches = self._archive_searches(_NEXT_RULES, SHORTER)
            searches.append(PolishSearch(self._task, polisher, self._next_seed(), POLISHED))
            yield from self._in_turn(searches, _NEXT_TURNS)

    def result(self, inputs: np.ndarray, stage: str) -> Solution:
        """Return a solution with the statistics so far."""
        return Solution(inputs, self._budget.used, self._budget.elapsed, stage)

    def _archive_searches(self, settings: Sequence[tuple[float, ...]], stage: str) -> list[Search]:
        """Begin searches with the archives."""
        return [
            ArchiveSearch(self._task, archive, rules, self._next_seed(), self._limit, stage)
            for archive, rules in zip(self._archives, settings)
        ]

    @property
    def _limit(self) -> int:
        """Solutions must have fewer frames."""
        return len(self._best) or self._max_frames + 1

    def _next_seed(self) -> int:
        self._begun += 1
        return int(random_bits(self._seed, self._begun - 1))

    def _in_turn(self, searches: Sequence[Search], turns: Sequence[int]) -> Iterator[Solution]:
        """Yield the solutions of searches that take turns."""
        for search in cycle([search for search, count in zip(searches, turns) for _ in range(count)]):
            frames = self._budget.chunk
            if not frames:
                return
            turn = search.advance(self._best, self._limit, frames)
            self._budget.used += turn.simulated
            if turn.inputs is not None:
                self._best = self._verified(turn.inputs)
                yield self.result(self._best, search.stage)

    def _verified(self, inputs: np.ndarray) -> np.ndarray:
        """Return the inputs of a solution after a replay."""
        states = simulate(self._level, inputs).state
        if states[-1] != CELEBRATING or (states[:-1] == CELEBRATING).any():
            raise RuntimeError(
                f"solve: a replay of {len(inputs)} frames on {self._level.name!r} does not win at the end"
            )
        return inputs


def _check(seconds: float, frames: float, seed: int, max_frames: int) -> None:
    for name, value in (("seconds", seconds), ("frames", frames), ("max_frames", max_frames)):
        if not value > 0:
            raise ConfigError(f"{name}: expected a number above 0, got {value}")
    if math.isinf(seconds) and math.isinf(frames):
        raise ConfigError("seconds, frames: expected at least one budget, got none; pass seconds=4, for example")
    if seed < 0:
        raise ConfigError(f"seed: expected a whole number of at least 0, got {seed}")
