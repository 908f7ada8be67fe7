"""Exits and their switches (physics 02, sections 6.3 and 6.4). Exit 0 closed, 1 open; switch 0 present, 1 taken.

A closed exit is in no cell; it enters its cell when its switch is taken, so it can be touched in the next frame first
(physics 01, section 12.4).
"""

from __future__ import annotations

from nclone_env.constants import EXIT_RADIUS, RADIUS, SWITCH_RADIUS
from nclone_env.jit import kernel
from nclone_env.sim.geometry import discs_overlap, sweep_point
from nclone_env.sim.life import win

_PRESENT, _TAKEN = 0, 1


@kernel
def touch_exit(ninja, entity, x0, y0):
    """Win; store the fraction of the frame used, and rewrite it as long as the contact lasts."""
    x, y = ninja["x"], ninja["y"]
    reach = EXIT_RADIUS + RADIUS
    if discs_overlap(entity["x"], entity["y"], x, y, reach):
        win(ninja)
        ninja["finish_fraction"] = sweep_point(x0, y0, x - x0, y - y0, entity["x"], entity["y"], reach)


@kernel
def touch_switch(ninja, entity, states, index, slot):
    """Take the switch and return whether that happened."""
    if states[index, slot] != _PRESENT:
        return False
    if discs_overlap(entity["x"], entity["y"], ninja["x"], ninja["y"], SWITCH_RADIUS + RADIUS):
        states[index, slot] = _TAKEN
        return True
    return False
