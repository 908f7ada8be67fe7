"""Gauss turrets and rocket turrets (physics 03, sections 8 and 9); ``laser`` has the laser turrets.

Gauss turrets are in no cell and never touched: only their shot kills. The state is ``IDLE``; ``AIMING`` + twice the
aiming time, which is a multiple of a half up to 90; ``WARNING`` or ``RECOVERING`` + frames, up to 14. ``a`` and ``b``
of the mover are the point aimed at, the turret's own while idle.

Rocket turrets have one rocket at a time. The state is ``ROCKET_IDLE``; ``ROCKET_WARNING`` + frames, up to 14;
``FLYING`` + steps since the launch, up to 24. While the rocket flies the mover is the rocket: position, direction
(``a`` and ``b``, a unit vector) and cell; otherwise it lies on the turret and is in no cell.

Evidence: two sources for the predecessor, converted from 40 to 60 frames per second; that rockets which face away from
the ninja fly straight on (rule R1) by one source; no recording.
"""

import math

from nclone_env.game import GAUSS_TURRET, KINDS, ROCKET_TURRET
from nclone_env.jit import kernel
from nclone_env.sim.geometry import lesser, unit
from nclone_env.sim.ninja import is_targetable, kill, meets
from nclone_env.sim.query import cell_of, enter, refresh
from nclone_env.sim.sight import (
    AIM,
    NO_BEAM,
    ROCKET_TRAIL,
    SHOT_FIRED,
    SHOT_SHOWN,
    TO_THE_WALL,
    sees,
    shot,
    step_meets_wall,
)
from nclone_env.sim.state import NO_CELL
from nclone_env.sim.store import states_of

IDLE, AIMING, WARNING, RECOVERING = KINDS[GAUSS_TURRET].states.values()
AIM_X, AIM_Y = "a", "b"
_PAUSE = 15  # of warning and of recovery, frames; of rockets, too
_AIMED = 180  # twice the time after which the turret warns
_LOOK_AHEAD = 1.5  # frames
_FAR, _MIDDLE, _NEAR = 9216.0, 1764.0, 576.0  # squared distances of the aim from the ninja, pixels
_TIME_STEPS = (0, 1, 3, 7)  # twice the time gained in each zone, from the outermost
_RATE = 40.0 / 60.0
_AIM_RATES = (0.03 * _RATE, 0.035 * _RATE, 0.05 * _RATE, 0.05 * _RATE)

ROCKET_IDLE, ROCKET_WARNING, FLYING = KINDS[ROCKET_TURRET].states.values()
DIRECTION_X, DIRECTION_Y = "a", "b"
_LAST_STEP = 24
LAST_STATE = FLYING + _LAST_STEP
_ACCELERATION, _GROWTH = 0.04444444444444444, 1.0656022367666107
_TOP_SPEED = 2.2857142857142856
_TURN = 0.06666666666666667
_TRAIL_LENGTH = 12.0


@kernel
def rest_gauss(entity, mover):
    """Aim at the turret itself, as at the start."""
    mover[AIM_X], mover[AIM_Y] = entity["x"], entity["y"]


@kernel
def think_gauss(levels, worlds, index, slot, entity, mover):
    """Search for the ninja, aim, warn, shoot, recover."""
    ninja = worlds.ninjas[index]
    states, own = states_of(worlds, index)
    state = states[own + slot]
    if WARNING <= state < RECOVERING:
        if state + 1 < WARNING + _PAUSE:
            states[own + slot] = state + 1
            return
        fire(levels, ninja, entity, mover, states, own)
        states[own + slot] = RECOVERING
        return
    if state >= RECOVERING and state + 1 < RECOVERING + _PAUSE:
        states[own + slot] = state + 1
        return
    if not sees(levels, worlds, index, entity["mover"], mover["x"], mover["y"]):
        states[own + slot] = IDLE
        rest_gauss(entity, mover)
    elif AIMING <= state < WARNING:
        states[own + slot] = aim(ninja, mover, state)
    else:  # on sight after recovery the aim is kept
        states[own + slot] = AIMING


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
def fire(levels, ninja, entity, mover, states, own):
    """Shoot through the point aimed at, up to the first wall."""
    x, y = mover["x"], mover["y"]
    dx, dy = mover[AIM_X] - x, mover[AIM_Y] - y
    if dx == 0.0 and dy == 0.0:
        hit = meets(ninja, x, y, 0.0)
    else:
        ux, uy = unit(dx, dy, 1.0, 0.0)
        hit = shot(levels, states, own, ninja, x, y, ux, uy)
    if hit:
        kill(ninja)


@kernel
def describe_gauss(mover, state):
    """Describe a gauss turret, see ``sim.dispatch.describe``."""
    facing_x, facing_y = unit(mover[AIM_X] - mover["x"], mover[AIM_Y] - mover["y"], 0.0, 0.0)
    phase = 0.0
    if AIMING <= state < RECOVERING:
        phase = 1.0 if state >= WARNING else 0.5
    return 0.0, 0.0, facing_x, facing_y, phase, False, False


@kernel
def beam_gauss(mover, state):
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


def _speeds() -> tuple[float, ...]:
    """Return the speed in each step, pixels: it grows until it exceeds the limit, then it is the limit."""
    speeds, acceleration = [0.0], _ACCELERATION
    for _ in range(_LAST_STEP):
        acceleration = acceleration * _GROWTH
        speeds.append(speeds[-1] + acceleration if speeds[-1] < _TOP_SPEED else _TOP_SPEED)
    return tuple(speeds)


SPEEDS = _speeds()


@kernel
def rest_rocket(entity, mover):
    """Put the rocket back into its turret, out of the cells."""
    mover["x"], mover["y"] = entity["x"], entity["y"]
    mover[DIRECTION_X], mover[DIRECTION_Y] = 1.0, 0.0
    mover["order"], mover["cell"] = entity["order"], NO_CELL


@kernel
def think_rocket(levels, worlds, index, slot, entity, mover):
    """Search for the ninja, warn, launch, fly."""
    ninja = worlds.ninjas[index]
    states, own = states_of(worlds, index)
    state = states[own + slot]
    if state >= FLYING:
        fly(levels, ninja, entity, mover, states, own, slot)
    elif state >= ROCKET_WARNING:
        if not is_targetable(ninja):
            states[own + slot] = ROCKET_IDLE
        elif state + 1 < ROCKET_WARNING + _PAUSE:
            states[own + slot] = state + 1
        else:
            states[own + slot] = FLYING
            ux, uy = unit(ninja["x"] - mover["x"], ninja["y"] - mover["y"], 1.0, 0.0)
            mover[DIRECTION_X], mover[DIRECTION_Y] = ux, uy
            enter(ninja, mover, cell_of(mover["x"], mover["y"]))
    elif sees(levels, worlds, index, entity["mover"], mover["x"], mover["y"]):
        states[own + slot] = ROCKET_WARNING


@kernel
def fly(levels, ninja, entity, mover, states, own, slot):
    """Fly one step; explode at a wall, else steer."""
    step = states[own + slot] - FLYING + 1
    if step > _LAST_STEP:
        step = _LAST_STEP
    states[own + slot] = FLYING + step
    x, y, mx, my = mover["x"], mover["y"], SPEEDS[step] * mover[DIRECTION_X], SPEEDS[step] * mover[DIRECTION_Y]
    mover["x"], mover["y"] = x + mx, y + my
    refresh(ninja, mover)
    if step_meets_wall(levels, states, own, ninja["level"], x, y, mx, my):
        explode(entity, mover, states, own, slot)
    elif is_targetable(ninja):
        steer(ninja, mover, mx, my)


@kernel
def steer(ninja, mover, mx, my):
    """Turn to the ninja's predicted position, the more the further it is to the side, unless it is behind (rule R1)."""
    tx = (ninja["x"] + _LOOK_AHEAD * ninja["vx"]) - (mover["x"] + _LOOK_AHEAD * mx)
    ty = (ninja["y"] + _LOOK_AHEAD * ninja["vy"]) - (mover["y"] + _LOOK_AHEAD * my)
    if tx == 0.0 and ty == 0.0:
        return
    tx, ty = unit(tx, ty, 1.0, 0.0)
    ux, uy = mover[DIRECTION_X], mover[DIRECTION_Y]
    if ux * tx + uy * ty < 0.0:
        return
    side = -uy * tx + ux * ty
    wx, wy = ux + _TURN * side * (-uy), uy + _TURN * side * ux
    length = math.sqrt(wx * wx + wy * wy)
    if length > 0.0:
        wx, wy = wx / length, wy / length
    mover[DIRECTION_X], mover[DIRECTION_Y] = wx, wy


@kernel
def explode(entity, mover, states, own, slot):
    """End the flight; the turret may see the ninja again in its next frame."""
    states[own + slot] = ROCKET_IDLE
    rest_rocket(entity, mover)


@kernel
def touch_rocket(ninja, entity, mover, states, own, slot):
    """Kill, and explode."""
    if states[own + slot] >= FLYING and meets(ninja, mover["x"], mover["y"], 0.0):
        explode(entity, mover, states, own, slot)
        kill(ninja)


@kernel
def is_flying(state):
    """Return whether the rocket has left its turret."""
    return state >= FLYING


@kernel
def describe_rocket(mover, state):
    """Describe a flying rocket, or a turret without one, see ``sim.dispatch.describe``."""
    if not is_flying(state):
        return 0.0, 0.0, 0.0, 0.0, 0.5 if state != ROCKET_IDLE else 0.0, False, False
    speed, dx, dy = SPEEDS[state - FLYING], mover[DIRECTION_X], mover[DIRECTION_Y]
    return speed * dx, speed * dy, dx, dy, 1.0, True, False


@kernel
def beam_rocket(entity, mover, state):
    """Return (emission, dx, dy, length): the trail behind a rocket."""
    emission = ROCKET_TRAIL if is_flying(state) else NO_BEAM
    dx, dy = mover["x"] - entity["x"], mover["y"] - entity["y"]
    return emission, -mover[DIRECTION_X], -mover[DIRECTION_Y], lesser(_TRAIL_LENGTH, math.sqrt(dx * dx + dy * dy))
