"""Blocks: solid entities that move (physics 02, sections 6.16, 6.17 and 6.21; physics 03, section 14, rule S2).

Bounce blocks use no state; ``a`` and ``b`` of their mover are the velocity. The state of a thwump is a phase, that of a
shove thwump a phase plus a bit while the ninja holds it; ``a`` and ``b`` of its mover are the direction from the block
to the ninja that pressed it.
"""

from nclone_env.game import KINDS, SHOVE_THWUMP, THWUMP
from nclone_env.jit import kernel
from nclone_env.sim.geometry import difference, disc_meets_segment, square_penetration
from nclone_env.sim.ninja import is_targetable, kill, touches
from nclone_env.sim.query import empty_line, half_cell, refresh
from nclone_env.sim.store import states_of

_HALF, _WALL_HALF = 19.0, 19.1  # half side of bounce blocks and thwumps plus the ninja's radius

VELOCITY_X, VELOCITY_Y = "a", "b"
_SPRING = 0.02222222222222222  # one unit in the last place below 1 / 45
_DAMPING = 0.98
_SHARE = 0.2  # of a penetration by which the ninja is pushed; the block takes the rest
_REST = 1.0 - _SHARE

_IDLE, _CHARGING, _RETURNING = KINDS[THWUMP].states.values()
_CHARGE_SPEED, _RETURN_SPEED = 20.0 / 7.0, 8.0 / 7.0
_PASSAGE = 11.0
_SIGHT = 38.0
_FACE, _FACE_HALF, _FACE_REACH = 11.0, 7.0, 12.0
_LOOK_AHEAD = 100

_SHOVE_IDLE, _PRESSED, _LAUNCHING, _SHOVE_RETURNING = KINDS[SHOVE_THWUMP].states.values()
_PHASE, _HELD = 3, 4  # bits of the state
PRESS_X, PRESS_Y = "a", "b"
_SHOVE_HALF, _SHOVE_WALL_HALF = 22.0, 22.1
_CORE, _SHOVE_PASSAGE = 8.0, 8.0
_LAUNCH_SPEED, _SHOVE_RETURN_SPEED = 4.0, 1.0
_SAME_FACE = 0.01
_OFF_CORNER = 0.2  # how deep the ninja must be along the other axis to press a face


@kernel
def move_bounce_block(levels, worlds, index, slot, entity, mover):
    """Swing towards home; a block that rests there, and has never left its first cell, stays as it is."""
    if mover["order"] == entity["order"] and is_at_rest(entity, mover):
        return
    swing(entity, mover)
    refresh(worlds.ninjas[index], mover)


@kernel
def is_at_rest(entity, mover):
    """Return whether a block is at home, without a velocity, to the last bit."""
    moving = difference(mover[VELOCITY_X], 0.0) | difference(mover[VELOCITY_Y], 0.0)
    return moving | difference(mover["x"], entity["x"]) | difference(mover["y"], entity["y"]) == 0


@kernel
def swing(entity, mover):
    """Move by the velocity, which a spring to the home changes."""
    ux, uy = mover[VELOCITY_X] * _DAMPING, mover[VELOCITY_Y] * _DAMPING
    x, y = mover["x"] + ux, mover["y"] + uy
    force_x, force_y = _SPRING * (entity["x"] - x), _SPRING * (entity["y"] - y)
    mover["x"], mover["y"] = x + force_x, y + force_y
    mover[VELOCITY_X], mover[VELOCITY_Y] = ux + force_x, uy + force_y


@kernel
def push_bounce_block(ninja, mover):
    """Return (hit, nx, ny, length); the block yields by four fifths of the penetration."""
    inside, nx, ny, depth, _ = square_penetration(mover["x"], mover["y"], ninja["x"], ninja["y"], _HALF)
    if not inside:
        return False, 0.0, 0.0, 0.0
    mover["x"] -= nx * depth * _REST
    mover["y"] -= ny * depth * _REST
    mover[VELOCITY_X] -= nx * depth * _REST
    mover[VELOCITY_Y] -= ny * depth * _REST
    return True, nx, ny, depth * _SHARE


@kernel
def touch_bounce_block(ninja, mover):
    """Return the wall normal, 0 if the ninja is not at a vertical side."""
    _, nx, _, _, _ = square_penetration(mover["x"], mover["y"], ninja["x"], ninja["y"], _WALL_HALF)
    return nx


@kernel
def describe_bounce_block(mover):
    """Describe a bounce block, see ``sim.dispatch.describe``."""
    return mover[VELOCITY_X], mover[VELOCITY_Y], 0.0, 0.0, 0.0, False, True


@kernel
def axis(entity):
    """Return (horizontal, direction of the charge)."""
    orientation = entity["orientation"]
    return orientation == 0 or orientation == 4, 1 if orientation == 0 or orientation == 2 else -1


@kernel
def move_thwump(levels, worlds, index, slot, entity, mover):
    """Charge up to an obstacle, then return home."""
    ninja = worlds.ninjas[index]
    states, own = states_of(worlds, index)
    state = states[own + slot]
    if state == _IDLE:
        return
    horizontal, direction = axis(entity)
    along, across = (mover["x"], mover["y"]) if horizontal else (mover["y"], mover["x"])
    home = entity["x"] if horizontal else entity["y"]
    speed = _CHARGE_SPEED if state == _CHARGING else _RETURN_SPEED
    sign = direction if state == _CHARGING else -direction
    ahead = along + speed * sign
    if state == _RETURNING and (ahead - home) * (along - home) <= 0.0:
        place_at(mover, horizontal, home + 0.0)
        states[own + slot] = _IDLE
        return
    place = half_cell(along + sign * _PASSAGE)
    if place != half_cell(ahead + sign * _PASSAGE):
        first, last = half_cell(across - _PASSAGE), half_cell(across + _PASSAGE)
        if not empty_line(levels, states, own, ninja["level"], horizontal, place, first, last, sign):
            states[own + slot] = _RETURNING
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
def think_thwump(levels, worlds, index, slot, entity, mover):
    """Charge at a targetable ninja ahead if the path to it is free."""
    ninja = worlds.ninjas[index]
    states, own = states_of(worlds, index)
    if states[own + slot] != _IDLE or not is_targetable(ninja):
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
        if not empty_line(levels, states, own, ninja["level"], horizontal, place, first, last, direction):
            gap = goal - place
            seen = step
            break
        place += direction
    if seen > 0 and gap * direction <= 0:
        states[own + slot] = _CHARGING


@kernel
def push_thwump(ninja, mover):
    """Return (hit, nx, ny, length): out of the square."""
    inside, nx, ny, depth, _ = square_penetration(mover["x"], mover["y"], ninja["x"], ninja["y"], _HALF)
    return inside, nx, ny, depth


@kernel
def touch_thwump(ninja, entity, mover):
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
def describe_thwump(entity, state):
    """Describe a thwump, see ``sim.dispatch.describe``."""
    horizontal, direction = axis(entity)
    vx, vy = 0.0, 0.0
    if state != _IDLE:
        speed = direction * (_CHARGE_SPEED if state == _CHARGING else -_RETURN_SPEED)
        if horizontal:
            vx = speed
        else:
            vy = speed
    facing_x, facing_y = (1.0 * direction, 0.0) if horizontal else (0.0, 1.0 * direction)
    phase = 1.0 if state == _CHARGING else (0.5 if state != _IDLE else 0.0)
    return vx, vy, facing_x, facing_y, phase, True, True


@kernel
def think_shove_thwump(levels, worlds, index, slot, entity, mover):
    """Launch when released; travel; stop at home."""
    ninja = worlds.ninjas[index]
    states, own = states_of(worlds, index)
    code = states[own + slot]
    if code & _PHASE == _PRESSED:
        if code & _HELD:
            states[own + slot] = _PRESSED
            return
        states[own + slot] = _LAUNCHING
    state = states[own + slot] & _PHASE
    ex, ey = mover[PRESS_X], mover[PRESS_Y]
    if state == _SHOVE_RETURNING:
        hx, hy = entity["x"], entity["y"]
        if abs(mover["x"] - hx) + abs(mover["y"] - hy) >= 1.0:
            travel_shove_thwump(levels, ninja, mover, states, own, slot, ex, ey, _SHOVE_RETURN_SPEED)
        else:
            mover["x"], mover["y"] = hx, hy
            states[own + slot] = _SHOVE_IDLE | (states[own + slot] & _HELD)
    elif state == _LAUNCHING:
        travel_shove_thwump(levels, ninja, mover, states, own, slot, -ex, -ey, _LAUNCH_SPEED)


@kernel
def travel_shove_thwump(levels, ninja, mover, states, own, slot, zx, zy, speed):
    """Move in a direction, or return if an obstacle is ahead; only the middle looks ahead."""
    horizontal = mover[PRESS_Y] == 0.0
    along, across = (mover["x"], mover["y"]) if horizontal else (mover["y"], mover["x"])
    z = zx if horizontal else zy
    ahead = along + z * speed
    place = half_cell(along)
    if place != half_cell(ahead):
        first, last = half_cell(across - _SHOVE_PASSAGE), half_cell(across + _SHOVE_PASSAGE)
        direction = 1 if z > 0.0 else -1
        if not empty_line(levels, states, own, ninja["level"], horizontal, place, first, last, direction):
            states[own + slot] = _SHOVE_RETURNING | (states[own + slot] & _HELD)
            return
    if horizontal:
        mover["x"] = ahead
    else:
        mover["y"] = ahead
    refresh(ninja, mover)


@kernel
def push_shove_thwump(ninja, mover, states, own, slot):
    """Return (hit, nx, ny, length): solid when idle; when pressed only the pressed face is."""
    state = states[own + slot] & _PHASE
    if state > _PRESSED:
        return False, 0.0, 0.0, 0.0
    inside, nx, ny, depth, _ = square_penetration(mover["x"], mover["y"], ninja["x"], ninja["y"], _SHOVE_HALF)
    if inside and state == _PRESSED and not mover[PRESS_X] * nx + mover[PRESS_Y] * ny >= _SAME_FACE:
        return False, 0.0, 0.0, 0.0
    return inside, nx, ny, depth


@kernel
def touch_shove_thwump(ninja, mover, states, own, slot):
    """Register a press and return the wall normal; the core kills while the block moves."""
    state = states[own + slot] & _PHASE
    inside, nx, ny, _, other = square_penetration(mover["x"], mover["y"], ninja["x"], ninja["y"], _SHOVE_WALL_HALF)
    if inside and state == _SHOVE_IDLE:
        states[own + slot] = _SHOVE_IDLE | _HELD
        if other > _OFF_CORNER:
            mover[PRESS_X], mover[PRESS_Y] = nx, ny
            states[own + slot] = _PRESSED | _HELD
        return nx
    if inside and state == _PRESSED:
        if mover[PRESS_X] * nx + mover[PRESS_Y] * ny >= _SAME_FACE:
            states[own + slot] = _PRESSED | _HELD
            return nx
        return 0.0
    if touches(ninja, mover["x"], mover["y"], _CORE):
        kill(ninja)
    return 0.0


@kernel
def describe_shove_thwump(mover, state):
    """Describe a shove thwump, see ``sim.dispatch.describe``."""
    phase, vx, vy, facing_x, facing_y = state & _PHASE, 0.0, 0.0, 0.0, 0.0
    if phase > _PRESSED:
        speed = -_LAUNCH_SPEED if phase == _LAUNCHING else _SHOVE_RETURN_SPEED
        vx, vy = speed * mover[PRESS_X], speed * mover[PRESS_Y]
    if phase != _SHOVE_IDLE:
        sign = -1.0 if phase == _LAUNCHING else 1.0
        facing_x, facing_y = sign * mover[PRESS_X], sign * mover[PRESS_Y]
    progress = 1.0 if phase == _LAUNCHING else (0.5 if phase != _SHOVE_IDLE else 0.0)
    return vx, vy, facing_x, facing_y, progress, phase > _PRESSED, phase <= _PRESSED
