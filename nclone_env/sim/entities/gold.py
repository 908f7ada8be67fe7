"""Gold: collected once (physics 02, section 6.2). State 0 present, 1 taken."""

from __future__ import annotations

from nclone_env.constants import CELEBRATING, GOLD_RADIUS, RADIUS
from nclone_env.jit import kernel
from nclone_env.sim.geometry import discs_overlap

_PRESENT, _TAKEN = 0, 1


@kernel
def touch(ninja, entity, states, index, slot):
    """Count and take the gold unless the ninja has won."""
    if states[index, slot] != _PRESENT or ninja["state"] == CELEBRATING:
        return
    if discs_overlap(entity["x"], entity["y"], ninja["x"], ninja["y"], GOLD_RADIUS + RADIUS):
        states[index, slot] = _TAKEN
        ninja["gold"] += 1
