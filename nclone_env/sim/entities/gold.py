"""Gold: collected once (physics 02, section 6.2)."""

from nclone_env.game import CELEBRATING, GOLD, KINDS
from nclone_env.jit import kernel
from nclone_env.sim.ninja import touches

_PRESENT, _TAKEN = KINDS[GOLD].states.values()
_RADIUS = KINDS[GOLD].radii[0]


@kernel
def touch(ninja, entity, states, index, slot):
    """Count and take the gold unless the ninja has won."""
    if states[index, slot] != _PRESENT or ninja["state"] == CELEBRATING:
        return
    if touches(ninja, entity["x"], entity["y"], _RADIUS):
        states[index, slot] = _TAKEN
        ninja["gold"] += 1
