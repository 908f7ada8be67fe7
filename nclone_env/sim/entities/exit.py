"""Exits and their switches (physics 02, sections 6.3 and 6.4).

A closed exit is in no cell; it enters its cell when its switch is taken, so the earliest touch is in the next frame
(physics 01, section 12.4).
"""

from nclone_env.game import EXIT, EXIT_SWITCH, KINDS, RADIUS
from nclone_env.jit import kernel
from nclone_env.sim.cells import cell_of, enter
from nclone_env.sim.geometry import sweep_point
from nclone_env.sim.ninja import touches, win

_CLOSED, OPEN = KINDS[EXIT].states.values()
_PRESENT, _TAKEN = KINDS[EXIT_SWITCH].states.values()
_RADIUS, _SWITCH_RADIUS = KINDS[EXIT].radii[0], KINDS[EXIT_SWITCH].radii[0]


@kernel
def touch_exit(ninja, entity, x0, y0):
    """Win; store the fraction of the frame used, and rewrite it as long as the contact lasts."""
    x, y = ninja["x"], ninja["y"]
    if touches(ninja, entity["x"], entity["y"], _RADIUS):
        win(ninja)
        ninja["finish_fraction"] = sweep_point(x0, y0, x - x0, y - y0, entity["x"], entity["y"], _RADIUS + RADIUS)


@kernel
def touch_switch(worlds, index, entity, slot):
    """Take the switch and open its exit, the entity before it, whose mover enters its cell now."""
    ninja, states = worlds.ninjas[index], worlds.entity_states
    if states[index, slot] == _PRESENT and touches(ninja, entity["x"], entity["y"], _SWITCH_RADIUS):
        states[index, slot], states[index, slot - 1] = _TAKEN, OPEN
        mover = worlds.movers[index, entity["mover"]]
        enter(ninja, mover, cell_of(mover["x"], mover["y"]))
