"""Mines and toggle mines (physics 02, section 6.1). Toggle mines start safe."""

from nclone_env.game import DEAD, DISABLED, KINDS, MINE
from nclone_env.jit import kernel
from nclone_env.sim.ninja import kill, meets

ARMED, SAFE, STEPPED_ON = KINDS[MINE].states.values()
RADII = KINDS[MINE].radii  # by state


@kernel
def think(levels, worlds, index, slot, entity, mover):
    """Register the ninja stepping on, arm when it steps off; a ninja that dies on the mine leaves it safe.

    A mine that is not a toggle mine is safe only after it has killed, and then for good: it need not think.
    """
    ninja, states = worlds.ninjas[index], worlds.entity_states
    state = states[index, slot]
    if state == ARMED:
        return
    touched = meets(ninja, entity["x"], entity["y"], RADII[state])
    if state == STEPPED_ON and not touched:
        gone = ninja["state"] == DEAD or ninja["state"] == DISABLED
        states[index, slot] = SAFE if gone else ARMED
    elif state == SAFE and touched:
        states[index, slot] = STEPPED_ON


@kernel
def touch(ninja, entity, states, index, slot):
    """Kill a targetable ninja that touches an armed mine; the mine becomes safe."""
    if states[index, slot] == ARMED and meets(ninja, entity["x"], entity["y"], RADII[ARMED]):
        states[index, slot] = SAFE
        kill(ninja)


@kernel
def describe(state):
    """Describe a mine, see ``sim.dispatch.describe``."""
    phase = 1.0 if state == ARMED else (0.5 if state == STEPPED_ON else 0.0)
    return 0.0, 0.0, 0.0, 0.0, phase, state == ARMED, False


@kernel
def radius(state):
    """Return the radius, pixels."""
    return RADII[state]
