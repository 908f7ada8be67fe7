"""Searches on one level that go on from where they stopped, and know nothing of each other between exchanges.

In a round each plays its share of frames, then all learn of the best solution. So threads can run them side by side,
and the result does not depend on their number. A round that was stopped goes on later and ends as if it never had been.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np

from nclone_env.level import Guide, build_room, make_guide
from nclone_env.plan.archive import HOLD, Archive, Rules, begin, best_inputs, explore, make_archive, rate_cells
from nclone_env.plan.polish import make_polisher, polish, take
from nclone_env.plan.task import Replayed, Task, make_task
from nclone_env.plan.tube import lay, make_tube, search_tube
from nclone_env.sim import Pace, Session

_FIRST_TURN, _LONGEST_TURN = 5_000, 40_000
"""Frames of a search with weight 1 in the first round and in later ones; short rounds find easy solutions soon."""
_GROWING = 3
"""Rounds in which they double."""


@cache
def compile_kernels() -> None:
    """Compile the kernels of all searches, or load them, once per process."""
    task = make_task(build_room("exit 60 57", "exit_switch 50 57"))
    waiting = Replayed(np.zeros(1, np.uint8), 0, 1)
    archive = make_archive(task.level_set, 1, task.origin)
    search = ArchiveSearch(task, archive, Rules(), 0, waiting)
    search.advance(1, lambda: False)
    search.follow(make_guide(task.level_set, careful=True))
    TubeSearch(task, archive, Rules(), 1, 1, 0, waiting).advance(1, lambda: False)
    PolishSearch(task, 1, 0, waiting).advance(2, lambda: False)
    Session(task.level_set).record(waiting.inputs, entities=False)  # replays solutions


class Search(ABC):
    """A search for solutions that cost less than the best known to it.

    Args:
        progress: (1,) record, whose ``frames`` are those simulated since it began.
        known: solutions cost less.
        stage: name of the stage.
        weight: its share of a round.
    """

    def __init__(self, task: Task, progress: np.ndarray, known: int, stage: str, weight: int):
        self.stage, self.weight = stage, weight
        self._task, self._progress, self._pace = task, progress, Pace()
        self._known = known  # the limit after the last exchange

    @property
    def simulated(self) -> int:
        """Frames simulated since it began."""
        return int(self._progress[0]["frames"])

    def advance(self, until: int, stop: Callable[[], bool]) -> None:
        """Search until so many frames are simulated since it began, or ``stop`` returns True.

        The state afterwards does not depend on how often it was stopped on the way.
        """
        for _, end in self._pace.pieces(self.simulated, until):
            while self.simulated < end:  # it returns at each solution
                if stop():
                    return
                self._play(end)

    @abstractmethod
    def _play(self, until: int) -> None:
        """Search until so many frames are simulated, or a better solution is found."""

    @abstractmethod
    def found(self) -> np.ndarray | None:
        """Return (T,) uint8, the inputs of the best solution found since the last :meth:`learn`; None without one."""

    @abstractmethod
    def learn(self, best: Replayed) -> None:
        """Take note of the best solution of all searches."""


class ArchiveSearch(Search):
    """A search for the exit from an archive of worlds, which is emptied; ``best`` is the best solution so far."""

    def __init__(
        self,
        task: Task,
        archive: Archive,
        rules: Rules,
        seed: int,
        best: Replayed | None = None,
        stage: str = "",
        weight: int = 1,
    ):
        known = best.cost if best else task.max_frames + 1 + task.price * task.gold
        super().__init__(task, archive.search, known, stage, weight)
        self._archive, self._rules = archive, rules
        search = archive.search[0]
        search["longest"], search["price"], search["limit"] = task.max_frames, task.price, known
        search["hold"] = task.hold if task.hold > 1 else HOLD
        begin(task.levels, archive, task.guide, task.parts, rules, seed)

    def _play(self, until: int) -> None:
        explore(self._task.levels, self._archive, self._task.guide, self._task.parts, self._rules, until)

    def follow(self, guide: Guide) -> None:
        """Go on with another guide, by which all cells are rated again; whether all gold must be collected stays."""
        each = self._task.guide.gold.each
        self._task = self._task._replace(guide=guide._replace(gold=guide.gold._replace(each=each)))
        rate_cells(self._archive, self._task.guide)

    def found(self) -> np.ndarray | None:
        """Return the best new solution; see :class:`Search`."""
        return best_inputs(self._archive) if self._archive.search[0]["limit"] < self._known else None

    def learn(self, best: Replayed) -> None:
        """Take note of the best solution; see :class:`Search`."""
        self._known = self._archive.search[0]["limit"] = best.cost


class TubeSearch(Search):
    """A search around the best solution.

    ``lag`` is the frames that a state may be behind the solution, ``longest`` those of its longest solution.
    """

    def __init__(
        self,
        task: Task,
        archive: Archive,
        rules: Rules,
        lag: int,
        longest: int,
        seed: int,
        best: Replayed,
        stage: str = "",
    ):
        super().__init__(task, archive.search, best.cost, stage, 1)
        way = 2.0 * float(task.guide.longest.max()) + float(task.guide.gold.shares.sum())
        self._rules, self._tube = rules, make_tube(archive, longest, way, lag)
        search = archive.search[0]
        search["longest"], search["price"], search["hold"] = task.max_frames, task.price, task.hold
        search["limit"] = task.max_frames + 1
        begin(task.levels, archive, task.guide, task.parts, rules, seed)
        self._take(best)

    def _play(self, until: int) -> None:
        search_tube(self._task.levels, self._tube, self._task.guide, self._task.parts, self._rules, until)

    def found(self) -> np.ndarray | None:
        """Return the best new solution; see :class:`Search`."""
        better = self._tube.archive.search[0]["limit"] < self._known
        return self._tube.inputs[: self._tube.state[0]["length"]].copy() if better else None

    def learn(self, best: Replayed) -> None:
        """Take note of the best solution, unless the own one is as good; see :class:`Search`."""
        self._known = best.cost
        if self._tube.archive.search[0]["limit"] > best.cost:
            self._take(best)

    def _take(self, best: Replayed) -> None:
        self._tube.archive.search[0]["limit"], self._tube.state[0]["length"] = best.cost, len(best.inputs)
        self._tube.inputs[: len(best.inputs)] = best.inputs
        lay(self._tube)


class PolishSearch(Search):
    """Edits the best solution, of at most ``longest`` frames; the edited one may cost ``worse`` frames more."""

    def __init__(self, task: Task, longest: int, seed: int, best: Replayed, worse: int = 0, stage: str = ""):
        self._polisher = polisher = make_polisher(task.level_set, longest, task.origin, task.hold, worse)
        super().__init__(task, polisher.search, best.cost, stage, 1)
        polisher.search["seed"], polisher.search["price"] = seed, task.price
        take(task.levels, polisher, task.guide, best.inputs)

    def _play(self, until: int) -> None:
        polish(self._task.levels, self._polisher, self._task.guide, until)

    def found(self) -> np.ndarray | None:
        """Return the best new solution; see :class:`Search`."""
        search = self._polisher.search[0]
        return self._polisher.best[: search["best_length"]].copy() if search["least"] < self._known else None

    def learn(self, best: Replayed) -> None:
        """Take note of the best solution, unless the own one is as good; see :class:`Search`."""
        self._known = best.cost
        if self._polisher.search[0]["least"] > best.cost:
            take(self._task.levels, self._polisher, self._task.guide, best.inputs)


class Rounds:
    """Searches that advance side by side, in threads; in the first ``alone`` rounds only the first search plays.

    ``number`` rounds are complete.
    """

    def __init__(self, searches: Sequence[Search], threads: int, alone: int = 0):
        self.searches = tuple(searches)
        self.number = 0
        self._alone = alone
        self._pool = ThreadPoolExecutor(min(threads, len(searches))) if threads > 1 else None

    @property
    def simulated(self) -> int:
        """Frames simulated by all searches."""
        return sum(search.simulated for search in self.searches)

    @property
    def before(self) -> int:
        """Frames that belong to the complete rounds, apart from the end of the last trial of each search."""
        return sum(self._frames_after(search, self.number) for search in self.searches)

    def play(self, budget: float, stop: Callable[[], bool]) -> bool:
        """Go on with the round; return whether it is complete.

        Args:
            budget: frames of this round to simulate at most, those before it was interrupted included; every search
                gets the same share of its own.
            stop: asked every few milliseconds whether to stop at once.
        """
        begins, targets = (
            [self._frames_after(search, number) for search in self.searches]
            for number in (self.number, self.number + 1)
        )
        share = min(budget / (sum(targets) - sum(begins)), 1.0)
        untils = [begin + math.ceil(share * (target - begin)) for begin, target in zip(begins, targets)]
        self._advance(untils, stop)
        return share == 1.0 and all(search.simulated >= target for target, search in zip(targets, self.searches))

    def _frames_after(self, search: Search, rounds: int) -> int:
        """Return the frames of a search after so many rounds, apart from the end of its last trial."""
        turns = rounds if search is self.searches[0] else max(rounds - self._alone, 0)
        growing = sum(min(_FIRST_TURN << number, _LONGEST_TURN) for number in range(min(turns, _GROWING)))
        return search.weight * (growing + max(turns - _GROWING, 0) * _LONGEST_TURN)

    def close(self) -> None:
        """End the threads."""
        if self._pool is not None:
            self._pool.shutdown()

    def _advance(self, untils: Sequence[int], stop: Callable[[], bool]) -> None:
        if self._pool is None:
            for search, until in zip(self.searches, untils):
                search.advance(until, stop)
            return
        longest_first = sorted(zip(self.searches, untils), key=lambda pair: -pair[0].weight)
        futures = [self._pool.submit(search.advance, until, stop) for search, until in longest_first]
        for future in futures:
            future.result()
