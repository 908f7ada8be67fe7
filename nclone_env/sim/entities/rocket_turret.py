"""Rocket turrets, one rocket at a time (physics 03, section 8).

The state is ``IDLE``; ``WARNING`` + frames, up to 14; ``FLYING`` + steps since the launch, up to 24. While the rocket
flies the mover is the rocket: position, direction (``a`` and ``b``, a unit vector) and cell; otherwise it lies on the
turret and is in no cell.

Evidence: two sources for the predecessor, converted from 40 to 60 frames per second; that rockets which face away from
the ninja fly straight on (rule R1) by one source; no recording.
"""

import math

from nclone_env.game import KINDS, ROCKET_TURRET
from nclone_env.jit import kernel
from nclone_env.sim.cells import cell_of, enter, refresh
from nclone_env.sim.geometry import lesser, unit
from nclone_env.sim.ninja import is_targetable, kill, meets
from nclone_env.sim.query import NO_BEAM, ROCKET_TRAIL, sees, step_meets_wall
from nclone_env.sim.state import NO_CELL

IDLE, WARNING, FLYING = KINDS[ROCKET_TURRET].states.values()
DIRECTION_X, DIRECTION_Y = "a", "b"
_PAUSE = 15  # frames of warning
_LAST_STEP = 24
LAST_STATE = FLYING + _LAST_STEP
_ACCELERATION, _GROWTH = 0.04444444444444444, 1.0656022367666107
_TOP_SPEED = 2.2857142857142856
_TURN = 0.06666666666666667
_LOOK_AHEAD = 1.5  # frames
_TRAIL_LENGTH = 12.0


def _speeds() -> tuple[float, ...]:
    """Return the speed in each step, pixels: it grows until it exceeds the limit, then it is the limit."""
    speeds, acceleration = [0.0], _ACCELERATION
    for _ in range(_LAST_STEP):
        acceleration = acceleration * _GROWTH
        speeds.append(speeds[-1] + acceleration if speeds[-1] < _TOP_SPEED else _TOP_SPEED)
    return tuple(speeds)


SPEEDS = _speeds()


@kernel
def rest(entity, mover):
    """Put the rocket back into its turret, out of the cells."""
    mover["x"], mover["y"] = entity["x"], entity["y"]
    mover[DIRECTION_X], mover[DIRECTION_Y] = 1.0, 0.0
    mover["order"], mover["cell"] = entity["order"], NO_CELL


@kernel
def think(levels, worlds, index, slot, entity, mover):
    """Search for the ninja, warn, launch, fly."""
    ninja, states = worlds.ninjas[index], worlds.entity_states
    state = states[index, slot]
    if state >= FLYING:
        fly(levels, ninja, entity, mover, states, index, slot)
    elif state >= WARNING:
        if not is_targetable(ninja):
            states[index, slot] = IDLE
        elif state + 1 < WARNING + _PAUSE:
            states[index, slot] = state + 1
        else:
            states[index, slot] = FLYING
            ux, uy = unit(ninja["x"] - mover["x"], ninja["y"] - mover["y"], 1.0, 0.0)
            mover[DIRECTION_X], mover[DIRECTION_Y] = ux, uy
            enter(ninja, mover, cell_of(mover["x"], mover["y"]))
    elif sees(levels, states, index, ninja, mover["x"], mover["y"]):
        states[index, slot] = WARNING


@kernel
def fly(levels, ninja, entity, mover, states, index, slot):
    """Fly one step; explode at a wall, else steer."""
    step = states[index, slot] - FLYING + 1
    if step > _LAST_STEP:
        step = _LAST_STEP
    states[index, slot] = FLYING + step
    x, y, mx, my = mover["x"], mover["y"], SPEEDS[step] * mover[DIRECTION_X], SPEEDS[step] * mover[DIRECTION_Y]
    mover["x"], mover["y"] = x + mx, y + my
    refresh(ninja, mover)
    if step_meets_wall(levels, states, index, ninja["level"], x, y, mx, my):
        explode(entity, mover, states, index, slot)
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
def explode(entity, mover, states, index, slot):
    """End the flight; the turret may see the ninja again in its next frame."""
    states[index, slot] = IDLE
    rest(entity, mover)


@kernel
def touch(ninja, entity, mover, states, index, slot):
    """Kill, and explode."""
    if states[index, slot] >= FLYING and meets(ninja, mover["x"], mover["y"], 0.0):
        explode(entity, mover, states, index, slot)
        kill(ninja)


@kernel
def is_flying(state):
    """Return whether the rocket has left its turret."""
    return state >= FLYING


@kernel
def describe(mover, state):
    """Describe a flying rocket, or a turret without one, see ``sim.dispatch.describe``."""
    if not is_flying(state):
        return 0.0, 0.0, 0.0, 0.0, 0.5 if state != IDLE else 0.0, False, False
    speed, dx, dy = SPEEDS[state - FLYING], mover[DIRECTION_X], mover[DIRECTION_Y]
    return speed * dx, speed * dy, dx, dy, 1.0, True, False


@kernel
def beam(entity, mover, state):
    """Return (emission, dx, dy, length): the trail behind a rocket."""
    emission = ROCKET_TRAIL if is_flying(state) else NO_BEAM
    dx, dy = mover["x"] - entity["x"], mover["y"] - entity["y"]
    return emission, -mover[DIRECTION_X], -mover[DIRECTION_Y], lesser(_TRAIL_LENGTH, math.sqrt(dx * dx + dy * dy))
