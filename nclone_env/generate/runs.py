"""Runs on a level: the course that inputs lead to, its clearance from what is deadly, and random play."""

import math

import numpy as np

from nclone_env.game import CELEBRATING, DEAD, INPUT_OF_ACTION, KINDS, RADIUS, ROCKET_TURRET
from nclone_env.jit import kernel
from nclone_env.level import LevelSet
from nclone_env.plan import play
from nclone_env.sim import Session, make_worlds, random_bits, start

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
