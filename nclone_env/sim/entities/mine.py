"""Mines: lethal discs (physics 02, section 6.1). State 0 armed, 1 safe, 2 stepped on."""

from __future__ import annotations

from nclone_env._jit import kernel
from nclone_env.constants import CELEBRATING, MINE_RADII, RADIUS
from nclone_env.sim.geometry import discs_overlap
from nclone_env.sim.ninja_move import kill

_ARMED, _SAFE = 0, 1


@kernel
def touch(ninja, entity, states, index, slot):
    """Kill a targetable ninja that touches an armed mine; the mine becomes safe."""
    if states[index, slot] != _ARMED or ninja["state"] == CELEBRATING:
        return
    if discs_overlap(entity["x"], entity["y"], ninja["x"], ninja["y"], MINE_RADII[_ARMED] + RADIUS):
        states[index, slot] = _SAFE
        kill(ninja)
