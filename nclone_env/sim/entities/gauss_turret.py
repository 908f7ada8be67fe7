"""Gauss turrets (physics 03, section 9). In no cell and never touched: they kill by their shot alone.

State: 0 idle; ``AIMING`` + twice the aiming time, which is a multiple of a half up to 90; ``WARNING`` and
``RECOVERING`` + frames, up to 14. The mover's pair is the point aimed at, the turret's own while it is idle.

Evidence: two sources for the predecessor, converted from 40 to 60 frames per second; no recording.
"""

from __future__ import annotations

from nclone_env.constants import RADIUS
from nclone_env.jit import kernel
from nclone_env.sim.geometry import discs_overlap
from nclone_env.sim.life import is_targetable, kill
from nclone_env.sim.rays import sees, shot, unit

IDLE, AIMING, WARNING, RECOVERING = 0, 1, 182, 197
_PAUSE = 15  # of warning and of recovery, frames
_AIMED = 180  # twice the time after which the turret warns
_LOOK_AHEAD = 1.5  # frames
_FAR, _MIDDLE, _NEAR = 9216.0, 1764.0, 576.0  # squared distances of the aim from the ninja, pixels
_TIME_STEPS = (0, 1, 3, 7)  # twice the time gained in each zone, from the outermost
_RATE = 40.0 / 60.0
_AIM_RATES = (0.03 * _RATE, 0.035 * _RATE, 0.05 * _RATE, 0.05 * _RATE)


@kernel
def rest(entity, mover):
    """Aim at the turret itself, as before the ninja was ever seen."""
    mover["ux"], mover["uy"] = entity["x"], entity["y"]


@kernel
def think(levels, worlds, index, slot, entity, mover):
    """Look out, aim, warn, shoot, recover."""
    ninja, states = worlds.ninjas[index], worlds.entity_states
    state = states[index, slot]
    if WARNING <= state < RECOVERING:
        if state + 1 < WARNING + _PAUSE:
            states[index, slot] = state + 1
            return
        fire(levels, ninja, entity, mover, states, index)
        states[index, slot] = RECOVERING
        return
    if state >= RECOVERING and state + 1 < RECOVERING + _PAUSE:
        states[index, slot] = state + 1
        return
    if not sees(levels, states, index, ninja, mover["x"], mover["y"]):
        states[index, slot] = IDLE
        rest(entity, mover)
    elif AIMING <= state < WARNING:
        states[index, slot] = aim(ninja, mover, state)
    else:  # seen again after recovery, the aim stays where it was
        states[index, slot] = AIMING


@kernel
def aim(ninja, mover, state):
    """Move the aim towards where the ninja will be; return the next state."""
    tx = (ninja["x"] + _LOOK_AHEAD * ninja["vx"]) - mover["ux"]
    ty = (ninja["y"] + _LOOK_AHEAD * ninja["vy"]) - mover["uy"]
    distance = tx * tx + ty * ty
    zone = 0
    if distance <= _FAR:
        zone = 1
        if distance <= _MIDDLE:
            zone = 2
            if distance <= _NEAR:
                zone = 3
    mover["ux"] += _AIM_RATES[zone] * tx
    mover["uy"] += _AIM_RATES[zone] * ty
    time = state - AIMING + _TIME_STEPS[zone]
    return AIMING + time if time <= _AIMED else WARNING


@kernel
def fire(levels, ninja, entity, mover, states, index):
    """Shoot through the point aimed at, on to the first wall."""
    x, y = mover["x"], mover["y"]
    dx, dy = mover["ux"] - x, mover["uy"] - y
    if dx == 0.0 and dy == 0.0:
        hit = is_targetable(ninja) and discs_overlap(ninja["x"], ninja["y"], x, y, RADIUS)
    else:
        ux, uy = unit(dx, dy)
        hit = shot(levels, states, index, ninja, x, y, ux, uy)
    if hit:
        kill(ninja)
