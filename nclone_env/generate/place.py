"""Doors and movers that are put in the way: each blocks the best solution of the level without it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from nclone_env.generate.course import play_out, same_course
from nclone_env.generate.matters import LANDMARKS, RecordGroup, added_records
from nclone_env.generate.search import Found, first_solution, shorter_solution, with_levels
from nclone_env.generate.sketch import Proposal, Sketch
from nclone_env.level import Level, LevelSet, pack
from nclone_env.plan import Task, make_task

_SHORTER_FRAMES = 20_000


@dataclass(frozen=True, eq=False)
class Furnished:
    """A level with the proposed entities that are in the way.

    Attributes:
        level: the level.
        task: the same, prepared.
        found: its first solution.
        inputs: (T,) uint8; the best solution known.
        blocked: for the records of each of these entities, the solution that they block.
    """

    level: Level
    task: Task
    found: Found
    inputs: np.ndarray
    blocked: dict[RecordGroup, np.ndarray]


def furnish(sketch: Sketch, bare: Furnished, frames: int, seed: int, is_safe: Callable[[LevelSet], bool]) -> Furnished:
    """Add proposed entities to a level, as long as it can be completed, until there are as many as wanted.

    Args:
        sketch: the level with its proposals.
        bare: the level without them, and its solution.
        frames: that the search for each first solution may simulate.
        seed: of the random choices.
        is_safe: whether a level is safe at the start.
    """
    chosen: list[Proposal] = []
    for proposal in sketch.proposals:
        if len(chosen) >= sketch.wanted:
            break
        level = sketch.level([*chosen, proposal])
        levels = pack([level])
        if same_course(play_out(levels, bare.inputs).ninjas, play_out(bare.task.level_set, bare.inputs).ninjas):
            continue
        if not is_safe(levels):
            continue
        group = added_records(bare.level, level)
        task = make_task(level) if group[0][0] in LANDMARKS else with_levels(bare.task, levels)
        found = first_solution(task, frames, seed)
        if len(found.inputs):
            chosen.append(proposal)
            inputs = shorter_solution(task, found.inputs, _SHORTER_FRAMES, seed)
            bare = Furnished(level, task, found, inputs, {**bare.blocked, group: bare.inputs})
    return bare
