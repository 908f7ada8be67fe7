"""Doors (physics 02, sections 6.5 to 6.8; physics 03, section 14, rule S1).

The state of a regular door is ``CLOSED``, or 1 + frames since the ninja left it, while it is open. Whether the segment
and the lattice edges of a door are present follows from its state alone.
"""

from nclone_env.game import KINDS, LOCKED_DOOR_SWITCH, REGULAR_DOOR, TRAP_DOOR
from nclone_env.jit import kernel
from nclone_env.sim.ninja import touches

_CLOSED, _JUST_OPENED, _LAST_OPEN = KINDS[REGULAR_DOOR].states.values()
_TRAP_OPEN, _ = KINDS[TRAP_DOOR].states.values()
_UNTOUCHED, _USED = 0, 1  # of the switch, which is one entity with its locked or trap door
_REGULAR_RADIUS, _SWITCH_RADIUS = 10.0, KINDS[LOCKED_DOOR_SWITCH].radii[0]


@kernel
def think(levels, worlds, index, slot, entity, mover):
    """Count the frames since the last touch of a regular door; close in the sixth."""
    states = worlds.entity_states
    state = states[index, slot]
    if state != _CLOSED:
        states[index, slot] = state + 1 if state < _LAST_OPEN else _CLOSED


@kernel
def touch_regular(ninja, entity, states, index, slot):
    """Open on contact."""
    if touches(ninja, entity["x"], entity["y"], _REGULAR_RADIUS):
        states[index, slot] = _JUST_OPENED


@kernel
def touch_switched(ninja, entity, states, index, slot):
    """Open a locked door or close a trap door, once, at its switch."""
    if states[index, slot] == _UNTOUCHED and touches(ninja, entity["x"], entity["y"], _SWITCH_RADIUS):
        states[index, slot] = _USED


@kernel
def is_closed(kind, state):
    """Return whether a door is closed, by its kind and the state of its entity."""
    return (state != _TRAP_OPEN) if kind == TRAP_DOOR else (state == _CLOSED)
