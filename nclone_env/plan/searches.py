"""Searches that take turns on one level; each goes on from where it stopped."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from nclone_env.errors import UnsupportedLevelError
from nclone_env.level.level import Level
from nclone_env.level.level_set import LevelArrays, LevelSet, pack
from nclone_env.plan.archive import RULES, Archive, begin, best_inputs, explore
from nclone_env.plan.guide import Guide, make_guide
from nclone_env.plan.polish import Polisher, polish, take
from nclone_env.sim.keys import KeyParts, key_parts


class Task(NamedTuple):
    """A level as searches need it."""

    level_set: LevelSet
    levels: LevelArrays
    guide: Guide
    parts: KeyParts


def make_task(level: Level) -> Task:
    """Prepare a level.

    Raises:
        UnsupportedLevelError: if it has no exit.
    """
    levels = pack([level])
    if not levels.arrays.header[0]["exit_count"]:
        raise UnsupportedLevelError(f"level: expected a level with an exit, got {level.name!r}, which has none")
    return Task(levels, levels.arrays, make_guide(levels), key_parts(levels))


class Turn(NamedTuple):
    """What a turn of a search came to."""

    inputs: np.ndarray | None
    """(T,) uint8, a solution that is shorter than the best so far; None if it found none."""
    simulated: int
    """Frames simulated."""


class Search(Protocol):
    """A search for solutions shorter than the best so far."""

    stage: str
    """Name of what it does."""

    def advance(self, best: np.ndarray, limit: int, frames: int) -> Turn:
        """Search for about so many frames, or until there is a shorter solution.

        Args:
            best: (T,) uint8, the inputs of the best solution so far; empty if there is none.
            limit: solutions must have fewer frames.
            frames: to simulate.
        """
        ...


class ArchiveSearch:
    """Looks for the exit from an archive of worlds.

    Args:
        task: the level.
        archive: memory; emptied.
        rules: a row of ``RULES``.
        seed: of its random numbers.
        limit: its solutions must have fewer frames.
        stage: name of what it does.
    """

    def __init__(self, task: Task, archive: Archive, rules: tuple[float, ...], seed: int, limit: int, stage: str):
        self.stage = stage
        self._task, self._archive, self._rules = task, archive, np.array([rules], dtype=RULES)
        archive.search["limit"] = limit
        begin(task.levels, archive, task.guide, task.parts, self._rules, seed)

    def advance(self, best: np.ndarray, limit: int, frames: int) -> Turn:
        """Search on; see :class:`Search`."""
        task, search = self._task, self._archive.search[0]
        search["limit"], before = limit, int(search["frames"])
        found = explore(task.levels, self._archive, task.guide, task.parts, self._rules, before + frames)
        return Turn(best_inputs(self._archive) if found else None, int(search["frames"]) - before)


class PolishSearch:
    """Edits the best solution.

    Args:
        task: the level.
        polisher: memory.
        seed: of its random numbers.
        stage: name of what it does.
    """

    def __init__(self, task: Task, polisher: Polisher, seed: int, stage: str):
        self.stage = stage
        self._task, self._polisher = task, polisher
        polisher.search["seed"], polisher.search["length"] = seed, 0

    def advance(self, best: np.ndarray, limit: int, frames: int) -> Turn:
        """Search on; see :class:`Search`."""
        task, polisher, search = self._task, self._polisher, self._polisher.search[0]
        before = int(search["frames"])
        if search["length"] != len(best):  # another search found a shorter one
            take(task.levels, polisher, task.guide, best)
        found = polish(task.levels, polisher, task.guide, before + frames)
        inputs = polisher.inputs[: search["length"]].copy() if found else None
        return Turn(inputs, int(search["frames"]) - before)
