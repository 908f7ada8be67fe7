"""Short searches with a budget of frames: a first solution by archives, shorter ones by an archive or by edits."""

from itertools import cycle
from typing import NamedTuple

import numpy as np

from nclone_env.plan.archive import Archive, Rules, cells_that_fit, make_archive
from nclone_env.plan.searches import ArchiveSearch, PolishSearch, Search
from nclone_env.plan.task import Replayed, Task

MAX_FRAMES = 3600
"""The longest solution: 60 seconds of the game."""
_CELLS, _MEMORY = 20_000, 150_000_000
"""Cells and bytes of an archive, at most; worlds with many evil ninjas are tens of kilobytes large."""
_RULES = (Rules(), Rules(15.0, 2.0), Rules(period=240))
_TURNS = (0, 0, 1, 2)
"""Rules of the searches for a first solution, and the order in which these take turns."""
_SHORTER_RULES = Rules(48.0, 8.0, greed=0.3, slowness=1.0 / 3.0)
"""Rules of the search for shorter ones: large cells, and hardly time for detours, so that it is soon at the end."""
_TURN = 20_000
_NO_INPUTS = np.zeros(0, np.uint8)


def _small_archive(task: Task) -> Archive:
    """Return an archive for a short search."""
    cells = max(min(_CELLS, cells_that_fit(task.level_set, _MEMORY)), 1)
    return make_archive(task.level_set, cells, task.origin)


class Found(NamedTuple):
    """A solution, (T,) uint8, one input byte a frame, empty if none was found; and the frames simulated."""

    inputs: np.ndarray
    simulated: int


def first_solution(task: Task, frames: int, seed: int) -> Found:
    """Search for a solution within a number of frames, at most about 20,000 more."""
    task = task._replace(max_frames=MAX_FRAMES)
    searches: dict[int, ArchiveSearch] = {}
    simulated = 0
    for number in cycle(_TURNS):
        if simulated >= frames:
            break
        if number not in searches:
            searches[number] = ArchiveSearch(task, _small_archive(task), _RULES[number], seed + number)
        simulated += _advance(searches[number], _TURN)
        inputs = searches[number].found()
        if inputs is not None:
            return Found(inputs, simulated)
    return Found(_NO_INPUTS, simulated)


def _advance(search: Search, frames: int) -> int:
    """Search for so many frames, or until there is a new solution; return the number simulated."""
    before = search.simulated
    search.advance(before + frames, lambda: search.found() is not None)
    return search.simulated - before


def _run(inputs: np.ndarray) -> Replayed:
    return Replayed(inputs, 0, len(inputs))


def shorter_solution(task: Task, inputs: np.ndarray, frames: int, seed: int) -> np.ndarray:
    """Return the shortest solution that an archive finds within some frames, (T,) uint8; the given one if none is."""
    task = task._replace(max_frames=MAX_FRAMES)
    search = ArchiveSearch(task, _small_archive(task), _SHORTER_RULES, seed, _run(inputs))
    search.advance(frames, lambda: False)
    found = search.found()
    return inputs if found is None else found


class Edits:
    """Edits of a solution that make it shorter; ``best`` is the shortest so far."""

    def __init__(self, task: Task, inputs: np.ndarray, seed: int):
        self.best = inputs
        self._search = PolishSearch(task, len(inputs), seed, _run(inputs))

    def advance(self, frames: int) -> int:
        """Simulate about so many frames, or until the solution is shorter; return the number simulated."""
        simulated = _advance(self._search, frames)
        found = self._search.found()
        if found is not None:
            self.best = found
            self._search.learn(_run(found))
        return simulated

    def spend(self, frames: int) -> np.ndarray:
        """Simulate a number of frames; return the shortest solution."""
        while frames > 0:
            frames -= max(self.advance(frames), 1)
        return self.best
