"""How often random play completes a level."""

from __future__ import annotations

from nclone_env.actions import INPUT_OF_ACTION
from nclone_env.constants import CELEBRATING
from nclone_env.jit import kernel
from nclone_env.level import LevelSet
from nclone_env.plan import play
from nclone_env.sim import make_worlds, random_bits
from nclone_env.sim.tick import start

HOLD = 12
"""Frames that each random input is held."""
FRAMES = 1800
"""Frames after which a run has failed: 30 seconds of the game."""
_INPUTS = tuple(INPUT_OF_ACTION)


@kernel
def count_wins(levels, worlds, seed, runs):
    """Return how many of some runs with random held inputs win the first level; they take turns in the first world."""
    wins, number = 0, 0
    for _ in range(runs):
        start(levels, worlds, 0, 0)
        for _ in range(FRAMES // HOLD):
            code = _INPUTS[random_bits(seed, number) % len(_INPUTS)]
            number += 1
            if play(levels, worlds, 0, code, HOLD) < HOLD:
                break
        if worlds.ninjas[0]["state"] == CELEBRATING:
            wins += 1
    return wins


def random_wins(levels: LevelSet, runs: int, seed: int) -> int:
    """Return how many of some runs with random inputs, each held for 12 frames, complete a level within 30 seconds.

    Args:
        levels: a set of one level.
        runs: number of runs.
        seed: of the random inputs.
    """
    return int(count_wins(levels.arrays, make_worlds(1, levels, FRAMES), seed, runs))
