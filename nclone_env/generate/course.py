"""The course of a run: what the ninja does on a level with given inputs."""

from __future__ import annotations

import math

import numpy as np

from nclone_env.constants import CELEBRATING, RADIUS
from nclone_env.kinds import KINDS, ROCKET_TURRET
from nclone_env.level import LevelSet
from nclone_env.sim import Frames, Session

NO_HAZARDS = 10_000
"""Clearance, tenths of a pixel, where nothing is deadly to touch."""
_TOUCHED = tuple(kind.number for kind in KINDS if kind.deadly and not kind.solid)
_FLYING = KINDS[ROCKET_TURRET].states["flying"]


def play_out(levels: LevelSet, inputs: np.ndarray, entities: bool = False) -> Frames:
    """Return the states of the first level of a set after each frame of a run."""
    return Session(levels, max_frames=len(inputs)).record(inputs, entities=entities)


def wins_at_end(ninjas: np.ndarray) -> bool:
    """Return whether a run wins in its last frame, and not before."""
    won = ninjas["state"] == CELEBRATING
    return bool(won[-1] and not won[:-1].any())


def same_course(one: np.ndarray, other: np.ndarray) -> bool:
    """Return whether the ninja is at the same places, in the same states, in all frames of two runs."""
    return all(np.array_equal(one[name], other[name]) for name in ("x", "y", "state"))


def least_clearance(levels: LevelSet, inputs: np.ndarray) -> int:
    """Return the least distance between the ninja and what is deadly to touch along a run, tenths of a pixel.

    Mines, drones, guards, balls and flying rockets count, as circles; shots, and blocks that crush, do not.
    """
    frames, entities = play_out(levels, inputs, entities=True), levels.entities_of(0)
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
