"""Searches on one level that go on from where they stopped, and know nothing of each other between exchanges."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import NamedTuple, Protocol

import numpy as np

from nclone_env.errors import UnsupportedLevelError
from nclone_env.level.build import build_room
from nclone_env.level.level import Level
from nclone_env.level.level_set import LevelArrays, LevelSet, pack
from nclone_env.level.routes.guide import Guide, make_guide
from nclone_env.plan.archive import HOLD, Archive, Rules, begin, best_inputs, explore, make_archive
from nclone_env.plan.objective import PRICES, Replayed
from nclone_env.plan.origin import Start, origin_of
from nclone_env.plan.polish import Polisher, make_polisher, polish, take
from nclone_env.sim.keys import KeyParts, key_parts
from nclone_env.sim.pace import Pace
from nclone_env.sim.session import Session
from nclone_env.sim.state import WorldArrays

MAX_FRAMES = 5400
"""The longest solution by default: 90 seconds of the game."""
MOST_FRAMES = PRICES["all-gold"] - 1
"""The longest solution that can be asked for, four and a half hours of the game; also the longest hold of an input."""


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


def task_archive(task: Task, cells: int) -> Archive:
    """Return an archive for a task."""
    return make_archive(task.level_set, cells, task.origin)


def task_polisher(task: Task, max_frames: int) -> Polisher:
    """Return a polisher for solutions of a task of at most so many frames."""
    return make_polisher(task.level_set, max_frames, task.origin, task.hold)


@cache
def compile_kernels() -> None:
    """Compile the kernels of all searches, or load them, once per process."""
    task = make_task(build_room("exit 60 57", "exit_switch 50 57"))
    waiting = Replayed(np.zeros(1, np.uint8), 0, 1)
    ArchiveSearch(task, task_archive(task, 1), Rules(), 0, waiting, "", 1).advance(1, lambda: False)
    PolishSearch(task, task_polisher(task, 1), 0, waiting, "", 1).advance(2, lambda: False)
    Session(task.level_set).record(waiting.inputs, entities=False)  # replays solutions


def with_all_gold(task: Task) -> Task:
    """Return the task with a guide by which every piece of gold must be collected, if gold counts."""
    gold = task.guide.gold._replace(each=np.ones(1, np.bool_))
    return task._replace(guide=task.guide._replace(gold=gold)) if len(gold.slots) else task


class Search(Protocol):
    """A search for solutions that cost less than the best known to it."""

    stage: str
    """Name of what it does."""
    weight: int
    """Its share of a round."""

    @property
    def simulated(self) -> int:
        """Frames simulated since it began."""
        ...

    def advance(self, until: int, stop: Callable[[], bool]) -> None:
        """Search until so many frames are simulated since it began, or ``stop`` returns True.

        The state afterwards does not depend on how often it was stopped on the way.
        """
        ...

    def found(self) -> np.ndarray | None:
        """Return (T,) uint8, the inputs of the best solution found since the last :meth:`learn`; None without one."""
        ...

    def learn(self, best: Replayed) -> None:
        """Take note of the best solution of all searches."""
        ...

    def state(self) -> dict[str, np.ndarray]:
        """Return what :meth:`restore` needs, views."""
        ...

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Go on from a saved state of a search that was made with the same arguments."""
        ...


class ArchiveSearch:
    """Looks for the exit from an archive of worlds.

    Args:
        task: the level.
        archive: memory; emptied.
        rules: its settings.
        seed: of its random numbers.
        best: the best solution so far, None without one.
        stage: name of what it does.
        weight: its share of a round.
    """

    def __init__(
        self,
        task: Task,
        archive: Archive,
        rules: Rules,
        seed: int,
        best: Replayed | None,
        stage: str,
        weight: int,
    ):
        self.stage, self.weight = stage, weight
        self._task, self._archive, self._rules = task, archive, rules
        self._known, self._pace = np.zeros(1, np.int64), Pace()  # the limit after the last exchange
        search = archive.search[0]
        search["longest"], search["price"] = task.max_frames, task.price
        search["hold"] = task.hold if task.hold > 1 else HOLD
        self._known[0] = best.cost if best else task.max_frames + 1 + task.price * task.gold
        search["limit"] = self._known[0]
        begin(task.levels, archive, task.guide, task.parts, self._rules, seed)

    @property
    def simulated(self) -> int:
        """Frames simulated."""
        return int(self._archive.search[0]["frames"])

    def advance(self, until: int, stop: Callable[[], bool]) -> None:
        """Search on; see :class:`Search`."""
        task = self._task
        for _, end in self._pace.pieces(self.simulated, until):
            while self.simulated < end:  # a call returns at each solution
                if stop():
                    return
                explore(task.levels, self._archive, task.guide, task.parts, self._rules, end)

    def found(self) -> np.ndarray | None:
        """Return the best new solution; see :class:`Search`."""
        return best_inputs(self._archive) if self._archive.search[0]["limit"] < self._known[0] else None

    def learn(self, best: Replayed) -> None:
        """Take note of the best solution; see :class:`Search`."""
        self._known[0] = self._archive.search[0]["limit"] = best.cost

    def state(self) -> dict[str, np.ndarray]:
        """Return the used part of the archive; see :class:`Search`."""
        archive, search = self._archive, self._archive.search[0]
        cells, nodes = int(search["cells"]), int(search["nodes"])
        worlds = {f"world {name}": array[:cells] for name, array in archive.worlds._asdict().items()}
        table = {"keys": archive.table.keys, "numbers": archive.table.numbers}
        rest = {"cells": archive.cells[:cells], "nodes": archive.nodes[:nodes], "search": archive.search}
        rest["visits"] = archive.visits
        return worlds | table | rest | {"known": self._known}

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Go on from a saved state; see :class:`Search`."""
        fill(self.state_arrays(), state)

    def state_arrays(self) -> dict[str, np.ndarray]:
        """Return the whole arrays behind :meth:`state`."""
        archive = self._archive
        worlds = {f"world {name}": array for name, array in archive.worlds._asdict().items()}
        table = {"keys": archive.table.keys, "numbers": archive.table.numbers}
        return (
            worlds
            | table
            | {
                "cells": archive.cells,
                "nodes": archive.nodes,
                "visits": archive.visits,
                "search": archive.search,
                "known": self._known,
            }
        )


class PolishSearch:
    """Edits the best solution.

    Args:
        task: the level.
        polisher: memory.
        seed: of its random numbers.
        best: the solution to begin with.
        stage: name of what it does.
        weight: its share of a round.
    """

    def __init__(self, task: Task, polisher: Polisher, seed: int, best: Replayed, stage: str, weight: int):
        self.stage, self.weight = stage, weight
        self._task, self._polisher = task, polisher
        self._known, self._pace = np.full(1, best.cost, np.int64), Pace()
        polisher.search["seed"], polisher.search["price"] = seed, task.price
        take(task.levels, polisher, task.guide, best.inputs)

    @property
    def simulated(self) -> int:
        """Frames simulated."""
        return int(self._polisher.search[0]["frames"])

    def advance(self, until: int, stop: Callable[[], bool]) -> None:
        """Search on; see :class:`Search`."""
        for _, end in self._pace.pieces(self.simulated, until):
            while self.simulated < end:
                if stop():
                    return
                polish(self._task.levels, self._polisher, self._task.guide, end)

    def found(self) -> np.ndarray | None:
        """Return the best new solution; see :class:`Search`."""
        search = self._polisher.search[0]
        return self._polisher.inputs[: search["length"]].copy() if search["cost"] < self._known[0] else None

    def learn(self, best: Replayed) -> None:
        """Take note of the best solution, unless the own one is as good; see :class:`Search`."""
        self._known[0] = best.cost
        if self._polisher.search[0]["cost"] > best.cost:
            take(self._task.levels, self._polisher, self._task.guide, best.inputs)

    def state(self) -> dict[str, np.ndarray]:
        """Return all arrays; see :class:`Search`."""
        worlds = {f"world {name}": array for name, array in self._polisher.worlds._asdict().items()}
        polisher = self._polisher
        return worlds | {
            "inputs": polisher.inputs,
            "ways": polisher.ways,
            "search": polisher.search,
            "known": self._known,
        }

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Go on from a saved state; see :class:`Search`."""
        fill(self.state(), state)


def fill(arrays: Mapping[str, np.ndarray], saved: Mapping[str, np.ndarray]) -> None:
    """Copy saved arrays into the first rows of arrays with the same names.

    Raises:
        ValueError: if one is missing, or has another dtype, other rows or too many.
    """
    for name, array in arrays.items():
        rows = saved.get(name)
        if rows is None or rows.dtype != array.dtype or rows.ndim != array.ndim:
            raise ValueError(f"another dtype or number of axes for {name!r}")
        if rows.shape[1:] != array.shape[1:] or len(rows) > len(array):
            raise ValueError(f"shape {rows.shape} for {name!r}")
    for name, array in arrays.items():
        array[: len(saved[name])] = saved[name]
