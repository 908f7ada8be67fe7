"""Boost pads (physics 02, section 6.19). State 1 while the ninja touches the pad."""

from __future__ import annotations

import math

from nclone_env.constants import RADIUS
from nclone_env.jit import kernel
from nclone_env.sim.geometry import discs_overlap
from nclone_env.sim.life import is_targetable

_PAD_RADIUS = 6.0
_BOOST = 2.0


@kernel
def move(ninja, entity, states, index, slot):
    """Speed a targetable ninja up once when it arrives, in the direction it moves."""
    reach = _PAD_RADIUS + RADIUS
    if not is_targetable(ninja) or not discs_overlap(entity["x"], entity["y"], ninja["x"], ninja["y"], reach):
        states[index, slot] = 0
    elif states[index, slot] == 0:
        vx, vy = ninja["vx"], ninja["vy"]
        speed = math.sqrt(vx * vx + vy * vy)
        if speed > 0.0:
            ninja["vx"] = vx + _BOOST * vx / speed
            ninja["vy"] = vy + _BOOST * vy / speed
        states[index, slot] = 1
