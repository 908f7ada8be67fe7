"""The reward of one step: events and potential-based shaping."""

from __future__ import annotations

import math

from nclone_env.env.compiled.records import DIED, WON
from nclone_env.jit import kernel
from nclone_env.obs import path_remaining

_LONGEST_PATH = 3.0  # in initial path lengths; also used where no path exists, as for ninjas below the world


@kernel
def potential(levels, paths, worlds, index):
    """Return the negative remaining path length in multiples of the initial one; 0 if the level has no path at all."""
    initial = paths.header[worlds.ninjas[index]["level"]]["start_distance"]
    if initial == math.inf or initial == 0.0:
        return 0.0
    remaining = path_remaining(levels, paths, worlds, index)
    return -remaining if remaining < _LONGEST_PATH else -_LONGEST_PATH


@kernel
def reward(rules, outcome, frames, gold, switches, potential_before, potential_after):
    """Return the reward of a step.

    Args:
        rules: ``SETTINGS`` record.
        outcome: outcome code after the step.
        frames: frames simulated in the step.
        gold: pieces of gold collected in the step.
        switches: exit switches collected in the step.
        potential_before: potential before the step.
        potential_after: potential after the step; 0 if the episode has terminated.
    """
    total = rules["time"] * frames + rules["gold"] * gold + rules["switch"] * switches
    if outcome == WON:
        total += rules["completion"]
    elif outcome == DIED:
        total += rules["death"]
    return total + rules["shaping"] * (rules["gamma"] * potential_after - potential_before)
