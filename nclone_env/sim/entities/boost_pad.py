"""Boost pads (physics 02, section 6.19)."""

import math

from nclone_env.game import BOOST_PAD, KINDS
from nclone_env.jit import kernel
from nclone_env.sim.ninja import meets

_IDLE, _TOUCHED = KINDS[BOOST_PAD].states.values()
_RADIUS = KINDS[BOOST_PAD].radii[0]
_BOOST = 2.0


@kernel
def move(levels, worlds, index, slot, entity, mover):
    """Accelerate a targetable ninja once on arrival, in its direction of motion."""
    ninja, states = worlds.ninjas[index], worlds.entity_states
    if not meets(ninja, entity["x"], entity["y"], _RADIUS):
        states[index, slot] = _IDLE
    elif states[index, slot] == _IDLE:
        vx, vy = ninja["vx"], ninja["vy"]
        speed = math.sqrt(vx * vx + vy * vy)
        if speed > 0.0:
            ninja["vx"] = vx + _BOOST * vx / speed
            ninja["vy"] = vy + _BOOST * vy / speed
        states[index, slot] = _TOUCHED
