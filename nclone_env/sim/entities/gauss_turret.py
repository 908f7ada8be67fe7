"""Gauss turrets (physics 03, section 9). They are in no cell and never touched: only their shot kills.

The state is ``IDLE``; ``AIMING`` + twice the aiming time, which is a multiple of a half up to 90; ``WARNING`` or
``RECOVERING`` + frames, up to 14. ``a`` and ``b`` of the mover are the point aimed at, the turret's own while idle.

Evidence: two sources for the predecessor, converted from 40 to 60 frames per second; no recording.
"""

import math

from nclone_env.game import GAUSS_TURRET, KINDS
from nclone_env.jit import kernel
from nclone_env.sim.geometry import unit
from nclone_env.sim.ninja import kill, meets
from nclone_env.sim.query import AIM, NO_BEAM, SHOT_FIRED, SHOT_SHOWN, TO_THE_WALL, sees, shot

IDLE, AIMING, WARNING, RECOVERING = KINDS[GAUSS_TURRET].states.values()
AIM_X, AIM_Y = "a", "b"
_PAUSE = 15  # of warning and of recovery, frames
_AIMED = 180  # twice the time after which the turret warns
_LOOK_AHEAD = 1.5  # frames
_FAR, _MIDDLE, _NEAR = 9216.0, 1764.0, 576.0  # squared distances of the aim from the ninja, pixels
_TIME_STEPS = (0, 1, 3, 7)  # twice the time gained in each zone, from the outermost
_RATE = 40.0 / 60.0
_AIM_RATES = (0.03 * _RATE, 0.035 * _RATE, 0.05 * _RATE, 0.05 * _RATE)


@kernel
def rest(entity, mover):
    """Aim at the turret itself, as at the start."""
    mover[AIM_X], mover[AIM_Y] = entity["x"], entity["y"]


@kernel
def think(levels, worlds, index, slot, entity, mover):
    """Search for the ninja, aim, warn, shoot, recover."""
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
    else:  # on sight after recovery the aim is kept
        states[index, slot] = AIMING


@kernel
def aim(ninja, mover, state):
    """Move the aim towards the ninja's predicted position; return the next state."""
    tx = (ninja["x"] + _LOOK_AHEAD * ninja["vx"]) - mover[AIM_X]
    ty = (ninja["y"] + _LOOK_AHEAD * ninja["vy"]) - mover[AIM_Y]
    distance = tx * tx + ty * ty
    zone = 0
    if distance <= _FAR:
        zone = 1
        if distance <= _MIDDLE:
            zone = 2
            if distance <= _NEAR:
                zone = 3
    mover[AIM_X] += _AIM_RATES[zone] * tx
    mover[AIM_Y] += _AIM_RATES[zone] * ty
    time = state - AIMING + _TIME_STEPS[zone]
    return AIMING + time if time <= _AIMED else WARNING


@kernel
def fire(levels, ninja, entity, mover, states, index):
    """Shoot through the point aimed at, up to the first wall."""
    x, y = mover["x"], mover["y"]
    dx, dy = mover[AIM_X] - x, mover[AIM_Y] - y
    if dx == 0.0 and dy == 0.0:
        hit = meets(ninja, x, y, 0.0)
    else:
        ux, uy = unit(dx, dy, 1.0, 0.0)
        hit = shot(levels, states, index, ninja, x, y, ux, uy)
    if hit:
        kill(ninja)


@kernel
def describe(mover, state):
    """Describe a gauss turret, see ``sim.dispatch.describe``."""
    facing_x, facing_y = unit(mover[AIM_X] - mover["x"], mover[AIM_Y] - mover["y"], 0.0, 0.0)
    phase = 0.0
    if AIMING <= state < RECOVERING:
        phase = 1.0 if state >= WARNING else 0.5
    return 0.0, 0.0, facing_x, facing_y, phase, False, False


@kernel
def beam(mover, state):
    """Return (emission, dx, dy, length): the line to the point aimed at, then through it to the wall, then the shot."""
    emission, length = NO_BEAM, TO_THE_WALL
    dx, dy = mover[AIM_X] - mover["x"], mover[AIM_Y] - mover["y"]
    if AIMING <= state < RECOVERING:
        emission = AIM
        if state < WARNING:
            length = math.sqrt(dx * dx + dy * dy)
    elif RECOVERING <= state < RECOVERING + SHOT_SHOWN:
        emission = SHOT_FIRED
    dx, dy = unit(dx, dy, 1.0, 0.0)
    return emission, dx, dy, length
