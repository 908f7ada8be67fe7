"""Doors (physics 02, sections 6.5 to 6.8; physics 03, section 14, rule S1).

Regular door: state 0 shut, else open with 1 + frames since the ninja left it. Locked door: 0 shut, 1 open. Trap door:
0 open, 1 shut. Whether the segment and the lattice edges are there follows from the state alone.
"""

from __future__ import annotations

from nclone_env.constants import RADIUS
from nclone_env.jit import kernel
from nclone_env.sim.geometry import discs_overlap

_REGULAR_RADIUS, _SWITCH_RADIUS = 10.0, 5.0
_UNTOUCHED, _USED = 0, 1
_SHUT, _JUST_OPENED, _LAST_OPEN = 0, 1, 6


@kernel
def think_regular(states, index, slot):
    """Count the frames since the last touch; shut in the sixth."""
    state = states[index, slot]
    if state != _SHUT:
        states[index, slot] = state + 1 if state < _LAST_OPEN else _SHUT


@kernel
def touch_regular(ninja, entity, states, index, slot):
    """Open."""
    if discs_overlap(entity["x"], entity["y"], ninja["x"], ninja["y"], _REGULAR_RADIUS + RADIUS):
        states[index, slot] = _JUST_OPENED


@kernel
def touch_switched(ninja, entity, states, index, slot):
    """Open a locked door or shut a trap door, once, at its switch."""
    if states[index, slot] != _UNTOUCHED:
        return
    if discs_overlap(entity["x"], entity["y"], ninja["x"], ninja["y"], _SWITCH_RADIUS + RADIUS):
        states[index, slot] = _USED
