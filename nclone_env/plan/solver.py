"""Inputs that complete a level: archive searches side by side; then, until the end, searches for better inputs."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain, count, islice, repeat

import numpy as np

from nclone_env._table import outline
from nclone_env.errors import ConfigError, check_integer, checked
from nclone_env.level import LevelSource, load_level, make_guide
from nclone_env.plan.archive import Rules, cells_that_fit, make_archive
from nclone_env.plan.searches import ArchiveSearch, PolishSearch, Rounds, Search, TubeSearch, compile_kernels
from nclone_env.plan.task import (
    CLOCK,
    MAX_FRAMES,
    MOST_FRAMES,
    PRICES,
    Replayed,
    Start,
    Task,
    make_task,
    price_of,
    replay,
    with_all_gold,
)
from nclone_env.sim import random_bits

MEMORY = 600_000_000
"""Bytes of the archives, at most; they fill as cells are found."""
_MOST_MEMORY = 1 << 60
_MOST_CELLS = 100_000  # of one archive
_FIRST_RULES = (
    (Rules(thins=True), 4),
    (Rules(15.0, 2.0, thins=True), 1),
    (Rules(period=240, thins=True), 1),
    (Rules(24.0, 4.0, period=60, thins=True), 1),
)
"""Rules of the searches for a first solution and their weights: large cells, small ones, and such that are others
after four seconds or one, for levels in which the ninja has to wait for what moves. All but the first succeed seldom,
and join it when the easy levels are done."""
_ALONE = 4
"""Rounds in which only the first of them plays."""
_CARELESS = 2
"""Rounds before the guide is a careful one, which takes longer to make than a search of an easy level."""
_SLOWNESS = 1.0 / 4.5  # the ninja runs 3.3 pixels in a frame, and falls faster
_NEXT_RULES = ((Rules(period=240, greed=0.0, slowness=_SLOWNESS), 1),)
"""The same of the search for better solutions, which does not prefer places near the exit."""
_GOLD_RULES = ((Rules(slowness=_SLOWNESS), 2), (Rules(22.0, 3.5, slowness=_SLOWNESS), 1))
"""The same if gold counts: cells are larger, as the number of pieces multiplies them; less gold left is preferred."""
_TUBES = ((Rules(20.0, 2.0), 150), (Rules(12.0, 1.0), 40), (Rules(6.0, 0.5), 15))
"""Cells of the searches around the best solution, and the frames that a state may be behind it; weight 1 each."""
_WORSE = (0, 3)
"""Frames by which the solution that a search edits may be worse than the best one; weight 1 each."""
FIRST, SHORTER, TUBE, POLISHED = "first", "shorter", "tube", "polished"
"""Stages of a search."""


@dataclass(frozen=True, eq=False)
class Solution:
    """What a search found.

    Attributes:
        inputs: (T,) uint8, one input byte a frame, the last one of the frame in which the ninja wins; empty if no
            solution was found.
        simulated: frames that the search simulated.
        seconds: seconds that it took.
        stage: of the search that found it: ``first``, ``shorter`` (by an archive), ``tube`` (around the best one) or
            ``polished`` (by edits); empty if there is none.
        gold: pieces of gold that it collects.
        gold_total: pieces of the level.
        won: frames by which each stage after the first has lowered the cost: the frames of the solution for ``time``;
            for other objectives with the price of the gold that is left.
    """

    inputs: np.ndarray
    simulated: int
    seconds: float
    stage: str
    gold: int = 0
    gold_total: int = 0
    won: Mapping[str, int] = field(default_factory=dict)

    __repr__ = outline

    @property
    def completed(self) -> bool:
        """Whether the inputs complete the level."""
        return self.frames > 0

    @property
    def frames(self) -> int:
        """Frames until the level is completed, 0 if it is not."""
        return len(self.inputs)

    @property
    def score(self) -> int:
        """Frames on the game's clock at the end: 5400 at the start, two seconds more for each piece of gold."""
        return CLOCK + PRICES["score"] * self.gold - self.frames if self.completed else 0


@checked("level", "start")
def solve(
    level: LevelSource,
    *,
    seconds: float = math.inf,
    frames: float = math.inf,
    frames_to_first: float = 0,
    objective: str = "time",
    seed: int = 0,
    threads: int = 1,
    max_frames: int = MAX_FRAMES,
    hold: int = 1,
    start: Start | None = None,
    memory: int = MEMORY,
    on_solution: Callable[[Solution], None] | None = None,
    stop: Callable[[], bool] | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> Solution:
    """Search for the best inputs that complete a level, until a budget is spent.

    The same arguments give the same solutions if ``frames`` ends the search, with any number of threads. Every solution
    is replayed by ``simulate`` before it is reported. Ctrl-C ends the search with the best solution so far; without
    one, the exception is raised.

    Args:
        level: the level, in any form that ``load_level`` accepts.
        seconds: budget of time, preparation of the level included; compiling kernels does not count.
        frames: budget of simulated frames.
        frames_to_first: budget of a search that has found no solution within ``frames``; the first one ends it.
        objective: ``time``, as few frames as possible; ``score``, as much time on the game's clock, on which a piece of
            gold counts as two seconds; ``all-gold``, as much gold as possible, then as few frames.
        seed: seed of the random choices, 0 or more.
        threads: threads that search.
        max_frames: longest solution to look for.
        hold: inputs change only in frames that are multiples of it, as those of a policy with this ``frame_skip``.
        start: a vector environment or session, and the index of its world in which solutions begin, such as
            ``(envs, 3)``; the world must be on this level. Bare worlds, ``(envs.worlds, 3)``, do not tell their level:
            whether it is this one is up to the caller. None: the start of the level.
        memory: bytes of the archives, at most.
        on_solution: called with each better solution.
        stop: asked every few milliseconds whether to end the search, by any of the threads.
        clock: measures the time; ``time.process_time`` leaves out the time that other processes take.

    Raises:
        LevelFormatError, UnknownLevelError: if the level cannot be loaded.
        UnsupportedLevelError: if it has no exit.
        ConfigError: if a budget, ``max_frames``, ``hold`` or ``threads`` is not positive, ``max_frames`` or ``hold`` is
            above ``MOST_FRAMES``, no budget is given, the seed is negative or too large, there is no such objective,
            the memory is too small for the level, or ``start`` is not a world of it.
    """
    _check(seconds, frames, seed, max_frames, hold, threads, memory)
    if not frames_to_first >= 0:
        raise ConfigError(f"frames_to_first: expected a number of at least 0, got {frames_to_first}")
    price = price_of(objective)
    compile_kernels()  # it does not count towards the seconds
    budget = _Budget(seconds, frames, frames_to_first, stop, clock)
    search = _Solver(make_task(load_level(level), price, max_frames, hold, start), seed, memory, threads, budget)
    try:
        for best in search.solutions():
            if on_solution is not None:
                on_solution(best)
    except KeyboardInterrupt:
        budget.interrupted = True
        if not search.result().completed:
            raise
    finally:
        search.rounds.close()
    return search.result()


class _Budget:
    """What is left of a number of seconds and of frames.

    Attributes:
        frames: frames to simulate in all.
        frames_to_first: the same for a search that has found no solution within these.
        interrupted: set to end the search.
    """

    def __init__(
        self,
        seconds: float,
        frames: float,
        frames_to_first: float,
        stop: Callable[[], bool] | None,
        clock: Callable[[], float],
    ):
        self._clock, self._began = clock, clock()
        self._seconds, self._stop = seconds, stop
        self.frames, self.frames_to_first = frames, frames_to_first
        self.interrupted = False

    @property
    def elapsed(self) -> float:
        """Seconds since the beginning."""
        return self._clock() - self._began

    def is_over(self) -> bool:
        """Return whether to end the search, apart from its number of frames."""
        return self.interrupted or self.elapsed >= self._seconds or (self._stop is not None and self._stop())


@dataclass(frozen=True)
class _Best:
    """The best solution, and how the search came to it."""

    run: Replayed
    stage: str
    won: Mapping[str, int]
    """Frames won by each stage after the first."""
    first: int
    """Cost of the first solution."""
    before: int
    """Frames simulated until there was a first solution."""

    def improved(self, run: Replayed, stage: str, last: _Best | None) -> _Best:
        """Return a better one; ``last`` is the best one of the last exchange."""
        if last is None:  # better than another first one
            return replace(self, run=run, stage=stage, first=run.cost)
        won = dict(last.won)
        won[stage] = won.get(stage, 0) + last.run.cost - run.cost
        return replace(self, run=run, stage=stage, won=won)


class _Solver:
    """The searches on one level, for a first solution, then for better ones; ``rounds`` are those that are running."""

    def __init__(self, task: Task, seed: int, memory: int, threads: int, budget: _Budget):
        self._task, self._seed, self._threads, self._budget = task, seed, threads, budget
        cells = min(cells_that_fit(task.level_set, memory // len(_FIRST_RULES)), _MOST_CELLS)
        if cells < 1:
            raise ConfigError(f"memory: expected room for {len(_FIRST_RULES)} archives of worlds, got {memory} bytes")
        self._archives = [make_archive(task.level_set, cells, task.origin) for _ in _FIRST_RULES]
        self._best: _Best | None = None
        self.rounds = self._rounds()

    def solutions(self) -> Iterator[Solution]:
        """Yield ever better solutions until the budget is spent."""
        yield from self._within_budget()
        if not self.result().completed:
            self._budget.frames = max(self._budget.frames, self._budget.frames_to_first)
            yield from islice(self._within_budget(), 1)

    def _within_budget(self) -> Iterator[Solution]:
        while not self._budget.is_over() and self._frames_left > 0:
            before = self._best
            if self.rounds.play(self._frames_left, self._budget.is_over):
                self._share_best()
            elif not self._budget.is_over():
                break  # the budget was a part of a round
            if self._best is not before:
                yield self.result()
        if self._newest() is not None:
            yield self.result()

    def result(self) -> Solution:
        """Return the best solution, those of the round that goes on included, with the statistics so far."""
        best = self._newest() or self._best
        seconds = self._budget.elapsed
        if best is None:
            return Solution(np.zeros(0, np.uint8), self._simulated, seconds, "", 0, self._task.gold)
        run = best.run
        return Solution(run.inputs, self._simulated, seconds, best.stage, run.gold, self._task.gold, dict(best.won))

    def _take_care(self) -> None:
        """Give the searches for a first solution a careful guide, all but the last: the guide can be wrong."""
        guide = make_guide(self._task.level_set, gold=self._task.price > 0, careful=True)
        for search in self.rounds.searches[:-1]:
            if isinstance(search, ArchiveSearch):
                search.follow(guide)

    @property
    def _is_switching(self) -> bool:
        """Whether the searches for better solutions are still to begin."""
        return self._best is not None and self.rounds.searches[0].stage == FIRST

    @property
    def _frames_left(self) -> float:
        """Frames of the budget for the round that goes on and later ones."""
        before = self._best.before if self._best else 0
        return self._budget.frames - before - self.rounds.before

    @property
    def _simulated(self) -> int:
        before = self._best.before if self._best else 0
        return before if self._is_switching else before + self.rounds.simulated

    def _share_best(self) -> None:
        """Let all searches learn of the best solution of a complete round; after a first one, begin the other searches.

        Each change is one assignment, so that Ctrl-C at any moment leaves the best solution.
        """
        self._best = self._newest() or self._best
        if self._best is None:
            self.rounds.number += 1
            if self.rounds.number == _CARELESS:
                self._take_care()
        elif self._is_switching:
            self.rounds.close()
            self.rounds = self._rounds()
        else:
            for search in self.rounds.searches:
                search.learn(self._best.run)
            self.rounds.number += 1

    def _newest(self) -> _Best | None:
        """Return the best solution found since the last exchange, None without one."""
        newest, best = None, self._best
        for search in () if self._is_switching else self.rounds.searches:
            inputs = search.found()
            if inputs is None:
                continue
            run = replay(self._task.level_set, self._task.origin, inputs, self._task.price)
            if best is None:
                newest = best = _Best(run, search.stage, {}, run.cost, self.rounds.simulated)
            elif run.cost < best.run.cost:
                newest = best = best.improved(run, search.stage, self._best)
        return newest

    def _rounds(self) -> Rounds:
        """Begin the searches for a first solution, or those for better ones."""
        best = self._best
        next_rules = _GOLD_RULES if self._task.price else _NEXT_RULES
        rules, stage = (_FIRST_RULES, FIRST) if best is None else (next_rules, SHORTER)
        seeds = (int(random_bits(self._seed, number)) for number in count(len(_FIRST_RULES) if best else 0))
        run, task = best.run if best else None, self._task
        tasks = chain([with_all_gold(task)], repeat(task))  # the first one looks for all gold, worth it or not
        searches: list[Search] = [
            ArchiveSearch(one, archive, rule, next(seeds), run, stage, weight)
            for one, archive, (rule, weight) in zip(tasks, self._archives, rules)
        ]
        if best is not None:
            longest = task.max_frames if task.price else min(best.first, task.max_frames)
            searches += [
                TubeSearch(task, archive, rule, lag, longest, next(seeds), best.run, TUBE)
                for archive, (rule, lag) in zip(self._archives[len(searches) :], _TUBES)
            ]
            searches += [PolishSearch(task, longest, next(seeds), best.run, worse, POLISHED) for worse in _WORSE]
        return Rounds(searches, self._threads, alone=_ALONE if best is None else 0)


def _check(seconds: float, frames: float, seed: int, max_frames: int, hold: int, threads: int, memory: int) -> None:
    for name, value in (("seconds", seconds), ("frames", frames), ("max_frames", max_frames), ("hold", hold)):
        if not value > 0:
            raise ConfigError(f"{name}: expected a number above 0, got {value}")
    for name, value in (("max_frames", max_frames), ("hold", hold)):
        if value > MOST_FRAMES:
            raise ConfigError(f"{name}: expected at most {MOST_FRAMES:,} frames, got {value:,}")
    check_integer("threads", threads, low=1)
    check_integer("memory", memory, low=0, high=_MOST_MEMORY)
    if math.isinf(seconds) and math.isinf(frames):
        raise ConfigError("seconds, frames: expected at least one budget, got none; pass seconds=4, for example")
    check_integer("seed", seed, low=0, high=2**63 - 1)
