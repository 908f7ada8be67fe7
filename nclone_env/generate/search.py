"""Runs on a level: solutions by search, made shorter by edits, the course that inputs lead to, and random play.

A first solution is searched for by archives; the budgets of all searches are frames.
"""

import math
from itertools import cycle
from typing import NamedTuple

import numpy as np

from nclone_env.game import CELEBRATING, DEAD, INPUT_OF_ACTION, KINDS, RADIUS, ROCKET_TURRET
from nclone_env.jit import kernel
from nclone_env.level import LevelSet
from nclone_env.plan import (
    Archive,
    ArchiveSearch,
    PolishSearch,
    Replayed,
    Rules,
    Search,
    Task,
    cells_that_fit,
    make_archive,
    origin_of,
    play,
)
from nclone_env.sim import Session, key_parts, make_worlds, random_bits, start

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
NO_HAZARDS = 10_000
"""Clearance, tenths of a pixel, where nothing is deadly to touch."""
_TOUCHED = tuple(kind.number for kind in KINDS if kind.deadly and not kind.solid)
_FLYING = KINDS[ROCKET_TURRET].states["flying"]
_REST = 60
"""Frames that the ninja must survive at the start without input."""
HOLD = 12
"""Frames that each random input is held."""
FRAMES = 1800
"""Frames after which a run has failed: 30 seconds of the game."""


def small_archive(task: Task) -> Archive:
    """Return an archive for a short search."""
    cells = max(min(_CELLS, cells_that_fit(task.level_set, _MEMORY)), 1)
    return make_archive(task.level_set, cells, task.origin)


def with_levels(task: Task, levels: LevelSet) -> Task:
    """Return a task for a level that differs by entities that do not count for the guide."""
    return task._replace(level_set=levels, levels=levels.arrays, parts=key_parts(levels), origin=origin_of(levels))


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
            searches[number] = ArchiveSearch(task, small_archive(task), _RULES[number], seed + number)
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
    search = ArchiveSearch(task, small_archive(task), _SHORTER_RULES, seed, _run(inputs))
    search.advance(frames, lambda: False)
    found = search.found()
    return inputs if found is None else found


class Edits:
    """Edits of a solution that make it shorter.

    Attributes:
        best: the shortest solution so far.
    """

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


def edited(task: Task, inputs: np.ndarray, frames: int, seed: int) -> np.ndarray:
    """Return a solution made shorter by edits within a number of frames."""
    edits = Edits(task, inputs, seed)
    while frames > 0:
        frames -= max(edits.advance(frames), 1)
    return edits.best


def play_out(levels: LevelSet, inputs: np.ndarray) -> np.ndarray:
    """Return the (T,) ``NINJA_RECORD`` of the first level of a set after each frame of a run."""
    return Session(levels, max_frames=len(inputs)).record(inputs, entities=False).ninjas


def is_safe(levels: LevelSet) -> bool:
    """Return whether the ninja survives a while at the start without input."""
    return bool((play_out(levels, np.zeros(_REST, np.uint8))["state"] < DEAD).all())


def same_course(one: np.ndarray, other: np.ndarray) -> bool:
    """Return whether the ninja is at the same places, in the same states, in all frames of two runs."""
    return all(np.array_equal(one[name], other[name]) for name in ("x", "y", "state"))


def least_clearance(levels: LevelSet, inputs: np.ndarray) -> int:
    """Return the least distance between the ninja and what is deadly to touch along a run, tenths of a pixel.

    Mines, drones, guards, balls and flying rockets count, as circles; shots, and blocks that crush, do not.
    """
    frames, entities = Session(levels, max_frames=len(inputs)).record(inputs), levels.entities_of(0)
    least = NO_HAZARDS / 10.0
    for slot in np.flatnonzero(np.isin(entities["type"], _TOUCHED)).tolist():
        entity, kind = entities[slot], KINDS[int(entities[slot]["type"])]
        states = frames.entity_states[:, slot]
        places = frames.movers[:, entity["mover"]] if kind.has_mover else entity
        radii = np.array(kind.radii)[np.minimum(states, len(kind.radii) - 1)]
        dx, dy = frames.ninjas["x"] - places["x"], frames.ninjas["y"] - places["y"]
        gaps = np.sqrt(dx * dx + dy * dy) - RADIUS - radii
        if kind.number == ROCKET_TURRET:
            gaps = gaps[states >= _FLYING]
        least = min(least, float(gaps.min(initial=least)))
    return max(math.floor(10.0 * least), 0)


@kernel
def count_wins(levels, worlds, seed, runs):
    """Return how many of some runs with random held inputs win the first level; they take turns in the first world."""
    wins, number = 0, 0
    for _ in range(runs):
        start(levels, worlds, 0, 0)
        for _ in range(FRAMES // HOLD):
            code = INPUT_OF_ACTION[random_bits(seed, number) % len(INPUT_OF_ACTION)]
            number += 1
            if play(levels, worlds, 0, code, HOLD) < HOLD:
                break
        if worlds.ninjas[0]["state"] == CELEBRATING:
            wins += 1
    return wins


def random_wins(levels: LevelSet, runs: int, seed: int) -> int:
    """Return how many of some runs with random inputs, each held for 12 frames, complete a level within 30 seconds."""
    return int(count_wins(levels.arrays, make_worlds(1, levels, FRAMES), seed, runs))
