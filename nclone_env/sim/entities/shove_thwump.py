"""Shove thwumps (physics 02, section 6.21).

The state is a phase, plus a bit while the ninja holds the block. ``a`` and ``b`` of the mover are the direction from
the block to the ninja that pressed it.
"""

from nclone_env.game import KINDS, SHOVE_THWUMP
from nclone_env.jit import kernel
from nclone_env.sim.cells import empty_line, half_cell, refresh
from nclone_env.sim.geometry import square_penetration
from nclone_env.sim.ninja import kill, touches

IDLE, PRESSED, LAUNCHING, RETURNING = KINDS[SHOVE_THWUMP].states.values()
PHASE, _HELD = 3, 4  # bits of the state
PRESS_X, PRESS_Y = "a", "b"
_HALF, _WALL_HALF = 22.0, 22.1  # half side plus the ninja's radius
_CORE, _PASSAGE = 8.0, 8.0
_LAUNCH_SPEED, _RETURN_SPEED = 4.0, 1.0
_SAME_FACE = 0.01
_OFF_CORNER = 0.2  # how deep the ninja must be along the other axis to press a face


@kernel
def think(levels, worlds, index, slot, entity, mover):
    """Launch when released; travel; stop at home."""
    ninja, states = worlds.ninjas[index], worlds.entity_states
    code = states[index, slot]
    if code & PHASE == PRESSED:
        if code & _HELD:
            states[index, slot] = PRESSED
            return
        states[index, slot] = LAUNCHING
    state = states[index, slot] & PHASE
    ex, ey = mover[PRESS_X], mover[PRESS_Y]
    if state == RETURNING:
        hx, hy = entity["x"], entity["y"]
        if abs(mover["x"] - hx) + abs(mover["y"] - hy) >= 1.0:
            travel(levels, ninja, mover, states, index, slot, ex, ey, _RETURN_SPEED)
        else:
            mover["x"], mover["y"] = hx, hy
            states[index, slot] = IDLE | (states[index, slot] & _HELD)
    elif state == LAUNCHING:
        travel(levels, ninja, mover, states, index, slot, -ex, -ey, _LAUNCH_SPEED)


@kernel
def travel(levels, ninja, mover, states, index, slot, zx, zy, speed):
    """Move in a direction, or return if an obstacle is ahead; only the middle looks ahead."""
    horizontal = mover[PRESS_Y] == 0.0
    along, across = (mover["x"], mover["y"]) if horizontal else (mover["y"], mover["x"])
    z = zx if horizontal else zy
    ahead = along + z * speed
    place = half_cell(along)
    if place != half_cell(ahead):
        first, last = half_cell(across - _PASSAGE), half_cell(across + _PASSAGE)
        direction = 1 if z > 0.0 else -1
        if not empty_line(levels, states, index, ninja["level"], horizontal, place, first, last, direction):
            states[index, slot] = RETURNING | (states[index, slot] & _HELD)
            return
    if horizontal:
        mover["x"] = ahead
    else:
        mover["y"] = ahead
    refresh(ninja, mover)


@kernel
def push(ninja, mover, states, index, slot):
    """Return (hit, nx, ny, length): solid when idle; when pressed only the pressed face is."""
    state = states[index, slot] & PHASE
    if state > PRESSED:
        return False, 0.0, 0.0, 0.0
    inside, nx, ny, depth, _ = square_penetration(mover["x"], mover["y"], ninja["x"], ninja["y"], _HALF)
    if inside and state == PRESSED and not mover[PRESS_X] * nx + mover[PRESS_Y] * ny >= _SAME_FACE:
        return False, 0.0, 0.0, 0.0
    return inside, nx, ny, depth


@kernel
def touch(ninja, mover, states, index, slot):
    """Register a press and return the wall normal; the core kills while the block moves."""
    state = states[index, slot] & PHASE
    inside, nx, ny, _, other = square_penetration(mover["x"], mover["y"], ninja["x"], ninja["y"], _WALL_HALF)
    if inside and state == IDLE:
        states[index, slot] = IDLE | _HELD
        if other > _OFF_CORNER:
            mover[PRESS_X], mover[PRESS_Y] = nx, ny
            states[index, slot] = PRESSED | _HELD
        return nx
    if inside and state == PRESSED:
        if mover[PRESS_X] * nx + mover[PRESS_Y] * ny >= _SAME_FACE:
            states[index, slot] = PRESSED | _HELD
            return nx
        return 0.0
    if touches(ninja, mover["x"], mover["y"], _CORE):
        kill(ninja)
    return 0.0


@kernel
def describe(mover, state):
    """Describe a shove thwump, see ``sim.dispatch.describe``."""
    phase, vx, vy, facing_x, facing_y = state & PHASE, 0.0, 0.0, 0.0, 0.0
    if phase > PRESSED:
        speed = -_LAUNCH_SPEED if phase == LAUNCHING else _RETURN_SPEED
        vx, vy = speed * mover[PRESS_X], speed * mover[PRESS_Y]
    if phase != IDLE:
        sign = -1.0 if phase == LAUNCHING else 1.0
        facing_x, facing_y = sign * mover[PRESS_X], sign * mover[PRESS_Y]
    progress = 1.0 if phase == LAUNCHING else (0.5 if phase != IDLE else 0.0)
    return vx, vy, facing_x, facing_y, progress, phase > PRESSED, phase <= PRESSED
