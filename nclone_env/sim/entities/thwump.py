"""Thwumps (physics 02, section 6.17; physics 03, section 14, rule S2)."""

from nclone_env.game import KINDS, THWUMP
from nclone_env.jit import kernel
from nclone_env.sim.cells import empty_line, half_cell, refresh
from nclone_env.sim.geometry import disc_meets_segment, square_penetration
from nclone_env.sim.ninja import is_targetable, kill

IDLE, CHARGING, RETURNING = KINDS[THWUMP].states.values()
_CHARGE_SPEED, _RETURN_SPEED = 20.0 / 7.0, 8.0 / 7.0
_HALF, _WALL_HALF = 19.0, 19.1  # half side plus the ninja's radius
_PASSAGE = 11.0
_SIGHT = 38.0
_FACE, _FACE_HALF, _FACE_REACH = 11.0, 7.0, 12.0
_LOOK_AHEAD = 100


@kernel
def axis(entity):
    """Return (horizontal, direction of the charge)."""
    orientation = entity["orientation"]
    return orientation == 0 or orientation == 4, 1 if orientation == 0 or orientation == 2 else -1


@kernel
def move(levels, worlds, index, slot, entity, mover):
    """Charge up to an obstacle, then return home."""
    ninja, states = worlds.ninjas[index], worlds.entity_states
    state = states[index, slot]
    if state == IDLE:
        return
    horizontal, direction = axis(entity)
    along, across = (mover["x"], mover["y"]) if horizontal else (mover["y"], mover["x"])
    home = entity["x"] if horizontal else entity["y"]
    speed = _CHARGE_SPEED if state == CHARGING else _RETURN_SPEED
    sign = direction if state == CHARGING else -direction
    ahead = along + speed * sign
    if state == RETURNING and (ahead - home) * (along - home) <= 0.0:
        place_at(mover, horizontal, home + 0.0)
        states[index, slot] = IDLE
        return
    place = half_cell(along + sign * _PASSAGE)
    if place != half_cell(ahead + sign * _PASSAGE):
        first, last = half_cell(across - _PASSAGE), half_cell(across + _PASSAGE)
        if not empty_line(levels, states, index, ninja["level"], horizontal, place, first, last, sign):
            states[index, slot] = RETURNING
            return
    place_at(mover, horizontal, ahead)
    refresh(ninja, mover)


@kernel
def place_at(mover, horizontal, along):
    """Put a mover at a coordinate of its axis."""
    if horizontal:
        mover["x"] = along
    else:
        mover["y"] = along


@kernel
def think(levels, worlds, index, slot, entity, mover):
    """Charge at a targetable ninja ahead if the path to it is free."""
    ninja, states = worlds.ninjas[index], worlds.entity_states
    if states[index, slot] != IDLE or not is_targetable(ninja):
        return
    horizontal, direction = axis(entity)
    along, across = (mover["x"], mover["y"]) if horizontal else (mover["y"], mover["x"])
    ninja_along, ninja_across = (ninja["x"], ninja["y"]) if horizontal else (ninja["y"], ninja["x"])
    if not abs(across - ninja_across) < _SIGHT:
        return
    goal, place = half_cell(ninja_along), half_cell(along - direction * _PASSAGE)
    first, last = half_cell(across - _PASSAGE), half_cell(across + _PASSAGE)
    gap = goal - place
    if gap * direction < 0:
        return
    seen = _LOOK_AHEAD - 1
    for step in range(_LOOK_AHEAD):
        if not empty_line(levels, states, index, ninja["level"], horizontal, place, first, last, direction):
            gap = goal - place
            seen = step
            break
        place += direction
    if seen > 0 and gap * direction <= 0:
        states[index, slot] = CHARGING


@kernel
def push(ninja, mover):
    """Return (hit, nx, ny, length): out of the square."""
    inside, nx, ny, depth, _ = square_penetration(mover["x"], mover["y"], ninja["x"], ninja["y"], _HALF)
    return inside, nx, ny, depth


@kernel
def touch(ninja, entity, mover):
    """Kill at the face; return the wall normal, 0 if there is none."""
    if not is_targetable(ninja):
        return 0.0
    px, py, x, y = mover["x"], mover["y"], ninja["x"], ninja["y"]
    inside, nx, _, _, _ = square_penetration(px, py, x, y, _WALL_HALF)
    if not inside:
        return 0.0
    horizontal, direction = axis(entity)
    if horizontal:
        ax, ay, bx, by = px + _FACE * direction, py - _FACE_HALF, px + _FACE * direction, py + _FACE_HALF
    else:
        ax, ay, bx, by = px - _FACE_HALF, py + _FACE * direction, px + _FACE_HALF, py + _FACE * direction
    if disc_meets_segment(x, y, _FACE_REACH, ax, ay, bx, by):
        kill(ninja)
    return nx


@kernel
def describe(entity, state):
    """Describe a thwump, see ``sim.dispatch.describe``."""
    horizontal, direction = axis(entity)
    vx, vy = 0.0, 0.0
    if state != IDLE:
        speed = direction * (_CHARGE_SPEED if state == CHARGING else -_RETURN_SPEED)
        if horizontal:
            vx = speed
        else:
            vy = speed
    facing_x, facing_y = (1.0 * direction, 0.0) if horizontal else (0.0, 1.0 * direction)
    phase = 1.0 if state == CHARGING else (0.5 if state != IDLE else 0.0)
    return vx, vy, facing_x, facing_y, phase, True, True
