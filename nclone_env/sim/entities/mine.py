"""Mines and toggle mines (physics 02, section 6.1). State 0 armed, 1 safe, 2 stepped on; toggle mines start safe."""

from __future__ import annotations

from nclone_env.constants import DEAD, DISABLED, MINE_ARMED, MINE_RADII, MINE_SAFE, MINE_STEPPED_ON, RADIUS
from nclone_env.jit import kernel
from nclone_env.sim.geometry import discs_overlap
from nclone_env.sim.life import is_targetable, kill


@kernel
def think(ninja, entity, states, index, slot):
    """Notice being stepped on, and arm when left; a ninja that dies on the mine leaves it safe.

    A mine that is not a toggle mine is safe only after it has killed, and then for good: it need not think.
    """
    state = states[index, slot]
    if state == MINE_ARMED:
        return
    reach = MINE_RADII[state] + RADIUS
    touched = is_targetable(ninja) and discs_overlap(entity["x"], entity["y"], ninja["x"], ninja["y"], reach)
    if state == MINE_STEPPED_ON and not touched:
        gone = ninja["state"] == DEAD or ninja["state"] == DISABLED
        states[index, slot] = MINE_SAFE if gone else MINE_ARMED
    elif state == MINE_SAFE and touched:
        states[index, slot] = MINE_STEPPED_ON


@kernel
def touch(ninja, entity, states, index, slot):
    """Kill a targetable ninja that touches an armed mine; the mine becomes safe."""
    if states[index, slot] != MINE_ARMED or not is_targetable(ninja):
        return
    if discs_overlap(entity["x"], entity["y"], ninja["x"], ninja["y"], MINE_RADII[MINE_ARMED] + RADIUS):
        states[index, slot] = MINE_SAFE
        kill(ninja)
