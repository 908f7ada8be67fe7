"""The reward of one step: events and potential-based shaping."""

from __future__ import annotations

import math

from nclone_env.env.compiled.records import DIED, WON
from nclone_env.jit import kernel
from nclone_env.obs.objective import way_left

_FARTHEST = 3.0  # whole ways; where there is no way, and a bound for ninjas that fall out of the world


@kernel
def potential(levels, fields, worlds, index):
    """Return minus the way still to go in units of the level's whole way; 0 if the level has no way at all."""
    whole = levels.header[worlds.ninjas[index]["level"]]["start_distance"]
    if whole == math.inf or whole == 0.0:
        return 0.0
    left = way_left(levels, fields, worlds, index)
    return -left if left < _FARTHEST else -_FARTHEST


@kernel
def reward(rules, outcome, frames, gold, switches, before, after):
    """Return the reward of a step.

    Args:
        rules: ``SETTINGS`` record.
        outcome: outcome code after the step.
        frames: frames simulated in the step.
        gold: pieces of gold collected in the step.
        switches: exit switches taken in the step.
        before: potential before the step.
        after: potential after the step; 0 if the episode has terminated.
    """
    total = rules["time"] * frames + rules["gold"] * gold + rules["switch"] * switches
    if outcome == WON:
        total += rules["completion"]
    elif outcome == DIED:
        total += rules["death"]
    return total + rules["shaping"] * (rules["gamma"] * after - before)
