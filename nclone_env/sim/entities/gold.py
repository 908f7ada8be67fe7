"""Gold: collected once (physics 02, section 6.2)."""

from nclone_env.constants import CELEBRATING, RADIUS
from nclone_env.jit import kernel
from nclone_env.kinds import GOLD, KINDS
from nclone_env.sim.geometry import discs_overlap

_PRESENT, _TAKEN = KINDS[GOLD].states.values()
_REACH = KINDS[GOLD].radii[0] + RADIUS


@kernel
def touch(ninja, entity, states, index, slot):
    """Count and take the gold unless the ninja has won."""
    if states[index, slot] != _PRESENT or ninja["state"] == CELEBRATING:
        return
    if discs_overlap(entity["x"], entity["y"], ninja["x"], ninja["y"], _REACH):
        states[index, slot] = _TAKEN
        ninja["gold"] += 1
