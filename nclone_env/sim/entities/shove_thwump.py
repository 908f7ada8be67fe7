"""Shove thwumps (physics 02, section 6.21). State 0 idle, 1 pressed, 2 launching, 3 returning; + 4 while held.

The mover's pair is the direction from the block to the ninja that pressed it.
"""

from __future__ import annotations

from nclone_env.constants import RADIUS
from nclone_env.jit import kernel
from nclone_env.sim.cells import refresh
from nclone_env.sim.geometry import discs_overlap, square_penetration
from nclone_env.sim.lattice import empty_line, half_cell
from nclone_env.sim.life import kill

IDLE, PRESSED, LAUNCHING, RETURNING = 0, 1, 2, 3
STATE, _HELD = 3, 4  # bits of the state byte
_HALF, _WALL_HALF = 22.0, 22.1  # half side and the ninja's radius
_CORE, _PASSAGE = 8.0, 8.0
LAUNCH_SPEED, RETURN_SPEED = 4.0, 1.0
_SAME_FACE = 0.01
_OFF_CORNER = 0.2  # how deep the ninja must be along the other axis to press a face


@kernel
def think(levels, worlds, index, slot, entity, mover):
    """Launch when let go; travel; stop at home."""
    ninja, states = worlds.ninjas[index], worlds.entity_states
    code = states[index, slot]
    if code & STATE == PRESSED:
        if code & _HELD:
            states[index, slot] = PRESSED
            return
        states[index, slot] = LAUNCHING
    state = states[index, slot] & STATE
    ex, ey = mover["ux"], mover["uy"]
    if state == RETURNING:
        hx, hy = entity["x"], entity["y"]
        if abs(mover["x"] - hx) + abs(mover["y"] - hy) >= 1.0:
            travel(levels, ninja, mover, states, index, slot, ex, ey, RETURN_SPEED)
        else:
            mover["x"], mover["y"] = hx, hy
            states[index, slot] = IDLE | (states[index, slot] & _HELD)
    elif state == LAUNCHING:
        travel(levels, ninja, mover, states, index, slot, -ex, -ey, LAUNCH_SPEED)


@kernel
def travel(levels, ninja, mover, states, index, slot, zx, zy, speed):
    """Go on in a direction, or return if something is in the way; the middle is what looks ahead."""
    horizontal = mover["uy"] == 0.0
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
    state = states[index, slot] & STATE
    if state > PRESSED:
        return False, 0.0, 0.0, 0.0
    inside, nx, ny, depth, _ = square_penetration(mover["x"], mover["y"], ninja["x"], ninja["y"], _HALF)
    if inside and state == PRESSED and not mover["ux"] * nx + mover["uy"] * ny >= _SAME_FACE:
        return False, 0.0, 0.0, 0.0
    return inside, nx, ny, depth


@kernel
def touch(ninja, mover, states, index, slot):
    """Note being pressed and return the wall normal; the core kills when it moves."""
    state = states[index, slot] & STATE
    inside, nx, ny, _, other = square_penetration(mover["x"], mover["y"], ninja["x"], ninja["y"], _WALL_HALF)
    if inside and state == IDLE:
        states[index, slot] = IDLE | _HELD
        if other > _OFF_CORNER:
            mover["ux"], mover["uy"] = nx, ny
            states[index, slot] = PRESSED | _HELD
        return nx
    if inside and state == PRESSED:
        if mover["ux"] * nx + mover["uy"] * ny >= _SAME_FACE:
            states[index, slot] = PRESSED | _HELD
            return nx
        return 0.0
    if discs_overlap(ninja["x"], ninja["y"], mover["x"], mover["y"], RADIUS + _CORE):
        kill(ninja)
    return 0.0
