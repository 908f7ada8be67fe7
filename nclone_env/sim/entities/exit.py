"""Exits and their switches (physics 02, sections 6.3 and 6.4). Exit 0 closed, 1 open; switch 0 present, 1 taken."""

from __future__ import annotations

from nclone_env._jit import kernel
from nclone_env.constants import CELEBRATING, EXIT_RADIUS, RADIUS, SWITCH_RADIUS
from nclone_env.sim.geometry import discs_overlap, sweep_point
from nclone_env.sim.ninja_move import leave_play

_PRESENT, _TAKEN, _OPEN = 0, 1, 1


@kernel
def touch_exit(ninja, entity, states, index, slot, x0, y0):
    """Win at an exit that was open when the frame's contacts were gathered; store the fraction of the frame used.

    The fraction is rewritten as long as the contact lasts (physics 01, section 12.4).
    """
    if states[index, slot] != _OPEN:
        return
    x, y = ninja["x"], ninja["y"]
    reach = EXIT_RADIUS + RADIUS
    if discs_overlap(entity["x"], entity["y"], x, y, reach):
        leave_play(ninja, CELEBRATING)
        ninja["finish_fraction"] = sweep_point(x0, y0, x - x0, y - y0, entity["x"], entity["y"], reach)


@kernel
def touch_switch(ninja, entity, states, index, slot):
    """Take the switch and return whether that happened; its exit opens after this frame's contacts."""
    if states[index, slot] != _PRESENT:
        return False
    if discs_overlap(entity["x"], entity["y"], ninja["x"], ninja["y"], SWITCH_RADIUS + RADIUS):
        states[index, slot] = _TAKEN
        return True
    return False
