"""What hunts the ninja: floor guards, death balls and evil ninjas.

Floor guards run along a floor (physics 02, section 6.15). Death balls (section 6.20) use no state; ``a`` and ``b`` of
their mover are the velocity, and ``timer`` is 1 once the ball is stuck for good.

Evil ninjas repeat the path of the ninja, some seconds behind (physics 03, section 12; section 17, choice E1). Their
state is a phase. ``a`` of the mover is the frame in which the ninja touched it, ``b`` its ordinal among those touched.
The path of the ninja is kept in the world's trail (``sim.store``), from the first touch on. The k-th evil ninja needs
the last 120 k - 1 positions. Evidence: one source. No recording contains one.
"""

import math

import numpy as np

from nclone_env.game import CELLS, DEATH_BALL, EVIL_DELAY, EVIL_NINJA, FLOOR_GUARD, KINDS
from nclone_env.jit import called_kernel, kernel
from nclone_env.level import DOOR_CLOSED_AT_0, HORIZONTAL, SOLID_EDGES, STRAIGHT
from nclone_env.sim.ninja import is_targetable, kill, meets
from nclone_env.sim.query import (
    cells_within,
    closest_on,
    closest_point,
    edge_bits,
    empty_line,
    half_cell,
    is_absent,
    refresh,
    segments_of,
    sweep_tiles,
)
from nclone_env.sim.store import mover_of, movers_of, recall, remember, states_of

_IDLE, _RIGHT, _LEFT = KINDS[FLOOR_GUARD].states.values()
_GUARD_RADIUS = KINDS[FLOOR_GUARD].radii[0]
_GUARD_SPEED = 3.428571428571428  # one unit in the last place below 24 / 7
_GUARD_STOP = 6.01  # distance at which it stops before a wall or the end of the floor

VELOCITY_X, VELOCITY_Y, STUCK = "a", "b", "timer"
_BALL_RADIUS, _SEGMENT_RADIUS, _SWEEP_RADIUS = KINDS[DEATH_BALL].radii[0], 8.0, 4.0
_PAIR_DISTANCE, _PAIR_PUSH = 16.0, 4.0
_ACCELERATION, _COASTING = 0.04, 0.95
_TOP_SPEED, _OVERSPEED_KEPT, _OVERSPEED_LEAST = 0.85, 0.9, 0.01
_REFLECTING_SPEED = 1.35
_PUSHES, _TOUCHING = 16, 0.0000001
_RECOIL = 10.0

WAITING, TOUCHED, CHARGING, ACTIVE = KINDS[EVIL_NINJA].states.values()
TOUCH_FRAME, ORDINAL = "a", "b"
_NEVER = 1 << 30  # frames
_WAITING_RADIUS, _ACTIVE_RADIUS = (KINDS[EVIL_NINJA].radii[state] for state in (WAITING, ACTIVE))


@kernel
def move_floor_guard(levels, worlds, index, slot, entity, mover):
    """Run until a wall or the end of a fully solid floor."""
    ninja = worlds.ninjas[index]
    states, own = states_of(worlds, index)
    state = states[own + slot]
    if state == _IDLE:
        return
    sign = 1 if state == _RIGHT else -1
    x, level = mover["x"], ninja["level"]
    ahead = x + sign * _GUARD_SPEED
    place, next_place = half_cell(x + sign * _GUARD_RADIUS), half_cell(ahead + sign * _GUARD_RADIUS)
    if place != next_place:
        row = half_cell(mover["y"])
        free = empty_line(levels, states, own, level, True, place, row, row, sign)
        if not free or edge_bits(levels, level, SOLID_EDGES, HORIZONTAL, row + 1, next_place, next_place) == 0:
            if sign == 1:
                place += 1
            ahead = 12.0 * place - _GUARD_STOP * sign
            states[own + slot] = _IDLE
    mover["x"] = ahead
    refresh(ninja, mover)


@kernel
def think_floor_guard(levels, worlds, index, slot, entity, mover):
    """Start towards a targetable ninja at the guard's height with nothing in between."""
    ninja = worlds.ninjas[index]
    states, own = states_of(worlds, index)
    if states[own + slot] != _IDLE or not is_targetable(ninja):
        return
    x, y = mover["x"], mover["y"]
    if not y + _GUARD_RADIUS - 24.0 <= ninja["y"] <= y + _GUARD_RADIUS:
        return
    sign = 0
    if ninja["x"] < x:
        sign = -1
    elif ninja["x"] > x:
        sign = 1
    goal, place, row = half_cell(ninja["x"]), half_cell(x), half_cell(y)
    while goal != place:
        if not empty_line(levels, states, own, ninja["level"], True, place, row, row, sign):
            return
        place += sign
    if sign != 0:
        states[own + slot] = _RIGHT if sign == 1 else _LEFT


@kernel
def touch_floor_guard(ninja, mover):
    """Kill."""
    if meets(ninja, mover["x"], mover["y"], _GUARD_RADIUS):
        kill(ninja)


@kernel
def describe_floor_guard(state):
    """Describe a floor guard, see ``sim.dispatch.describe``."""
    side = 1.0 if state == _RIGHT else (-1.0 if state == _LEFT else 0.0)
    return side * _GUARD_SPEED, 0.0, side, 0.0, 1.0 if state != _IDLE else 0.0, True, False


@kernel
def think_death_balls(levels, worlds, index, first, stop):
    """Let the death balls with movers ``first`` to ``stop - 1`` think."""
    for number in range(first, stop):
        think_death_ball(levels, worlds, index, number, stop)


@kernel
def think_death_ball(levels, worlds, index, number, stop):
    """Steer, move, leave the tiles, bounce off, push the balls after this one, up to mover ``stop``."""
    ninja, mover = worlds.ninjas[index], mover_of(worlds, index, number)
    steer(ninja, mover)
    if mover[STUCK] != 0:
        return
    states, own = states_of(worlds, index)
    place = worlds.rooms[index]["movers"]["first"] + number
    if is_in_door(levels, ninja["level"], states, own, worlds.hints[place], mover["x"], mover["y"]):
        return
    complete, nx, ny = travel(levels, ninja["level"], states, own, mover)
    if not complete:
        mover[STUCK], door = is_stuck(levels, ninja["level"], mover["x"], mover["y"])
        if door >= 0:
            worlds.hints[place] = door
        return
    respond(mover, nx, ny)
    push_others(worlds, index, number, stop)
    refresh(ninja, mover)


@kernel
def steer(ninja, mover):
    """Accelerate towards a targetable ninja, up to a soft limit; else coast (physics 02, section 6.20, step A)."""
    if not is_targetable(ninja):
        mover[VELOCITY_X] *= _COASTING
        mover[VELOCITY_Y] *= _COASTING
        return
    dx, dy = ninja["x"] - mover["x"], ninja["y"] - mover["y"]
    length = math.sqrt(dx * dx + dy * dy)
    if length > 0.0:
        dx, dy = dx / length, dy / length
    ux, uy = mover[VELOCITY_X] + dx * _ACCELERATION, mover[VELOCITY_Y] + dy * _ACCELERATION
    speed = math.sqrt(ux * ux + uy * uy)
    if speed > _TOP_SPEED:
        wanted = (speed - _TOP_SPEED) * _OVERSPEED_KEPT
        if wanted <= _OVERSPEED_LEAST:
            wanted = 0.0
        wanted += _TOP_SPEED
        ux, uy = ux / speed * wanted, uy / speed * wanted
    mover[VELOCITY_X], mover[VELOCITY_Y] = ux, uy


@kernel
def travel(levels, level, states, own, mover):
    """Move and leave the tiles; return (complete, sum of normals) (steps B and C).

    Not complete if the centre lies on a segment: then the ball skips the rest of its frame.
    """
    qx, qy, ux, uy = mover["x"], mover["y"], mover[VELOCITY_X], mover[VELOCITY_Y]
    fraction = sweep_tiles(levels, level, states, own, qx, qy, ux, uy, _SWEEP_RADIUS)
    x, y = qx + fraction * ux, qy + fraction * uy
    normal_x, normal_y, complete = 0.0, 0.0, True
    for _ in range(_PUSHES):
        facing, a, b = closest_point(levels, level, states, own, x, y, _SEGMENT_RADIUS)
        if facing == 0:
            break
        dx, dy = x - a, y - b
        length = math.sqrt(dx * dx + dy * dy)
        depth = _SEGMENT_RADIUS - length * facing
        if depth < _TOUCHING:
            break
        if length == 0.0:
            complete = False
            break
        nx, ny = dx / length, dy / length
        x += nx * depth
        y += ny * depth
        normal_x += nx
        normal_y += ny
    mover["x"], mover["y"] = x, y
    return complete, normal_x, normal_y


@called_kernel
def is_stuck(levels, level, x, y):
    """Return whether a ball whose centre lies on a segment stays there, and the number of a door under it, -1 if none.

    It stays for good if the segment is straight and no door is near.
    """
    stuck, has_door, under = False, False, -1
    first_column, last_column, first_row, last_row = cells_within(x, y, _SEGMENT_RADIUS)
    for column in range(first_column, last_column + 1):
        start, stop = segments_of(levels, level, column, first_row, last_row)
        for i in range(start, stop):
            is_door = levels.segments[i]["kind"] >= DOOR_CLOSED_AT_0
            has_door |= is_door
            if is_door or not has_door:
                _, a, b = closest_on(levels.segments[i], x, y)
                if a == x and b == y:
                    stuck |= levels.segments[i]["kind"] == STRAIGHT
                    under = i - levels.header[level]["first_segment"] if is_door else under
    return stuck and not has_door, under


@kernel
def is_in_door(levels, level, states, own, hint, x, y):
    """Return whether the centre of a ball plainly lies on a closed door, segment ``hint`` of the level.

    Then neither sweep nor search need be made: the ball does not move, does not complete its frame and, as the door is
    near, is not stuck for good. A door that sticks out of its cell might not be found by them.
    """
    header = levels.header[level]
    if hint >= levels.segment_start[level, CELLS] or header["has_plain_walls"] == 0:
        return False
    segment = levels.segments[header["first_segment"] + hint]
    if segment["kind"] < DOOR_CLOSED_AT_0 or is_absent(segment, states, own):
        return False
    _, a, b = closest_on(segment, x, y)
    return a == x and b == y


@kernel
def respond(mover, normal_x, normal_y):
    """Slide along the obstacle, or bounce off it at high speed (step D)."""
    length = math.sqrt(normal_x * normal_x + normal_y * normal_y)
    if length > 0.0:
        nx, ny = normal_x / length, normal_y / length
        ux, uy = mover[VELOCITY_X], mover[VELOCITY_Y]
        into = ux * nx + uy * ny
        if into < 0.0:
            speed = math.sqrt(ux * ux + uy * uy)
            share = 1.0 if speed <= _REFLECTING_SPEED else 2.0
            mover[VELOCITY_X] = ux - nx * into * share
            mover[VELOCITY_Y] = uy - ny * into * share


@kernel
def push_others(worlds, index, number, stop):
    """Push the balls of higher index away (step E). Coinciding centres, a fault in the reference, do not push."""
    mover = mover_of(worlds, index, number)
    x, y = mover["x"], mover["y"]
    for k in range(number + 1, stop):
        other = mover_of(worlds, index, k)
        dx, dy = x - other["x"], y - other["y"]
        if abs(dx) >= _PAIR_DISTANCE or abs(dy) >= _PAIR_DISTANCE:
            continue
        length = math.sqrt(dx * dx + dy * dy)
        if 0.0 < length < _PAIR_DISTANCE:
            dx, dy = dx / length * _PAIR_PUSH, dy / length * _PAIR_PUSH
            mover[VELOCITY_X] += dx
            mover[VELOCITY_Y] += dy
            other[VELOCITY_X] -= dx
            other[VELOCITY_Y] -= dy


@kernel
def touch_death_ball(ninja, mover):
    """Kill, and recoil."""
    x, y = mover["x"], mover["y"]
    if meets(ninja, x, y, _BALL_RADIUS):
        dx, dy = x - ninja["x"], y - ninja["y"]
        length = math.sqrt(dx * dx + dy * dy)
        if length > 0.0:
            mover[VELOCITY_X] += dx / length * _RECOIL
            mover[VELOCITY_Y] += dy / length * _RECOIL
        kill(ninja)


@kernel
def describe_death_ball(mover):
    """Describe a death ball, see ``sim.dispatch.describe``."""
    return mover[VELOCITY_X], mover[VELOCITY_Y], 0.0, 0.0, 1.0, True, False


@kernel
def think_evil_ninjas(levels, worlds, index, base, first, stop, shift):
    """Let the evil ninjas ``first`` to ``stop - 1`` take an ordinal, move to the place of the touch, then follow."""
    ninja = worlds.ninjas[index]
    states, own = states_of(worlds, index)
    movers, moved = movers_of(worlds, index)
    remembered = False
    for slot in range(first, stop):
        state = states[own + slot]
        if state == WAITING:
            continue
        mover = movers[moved + shift + slot]
        if state == TOUCHED:
            mover[ORDINAL] = 1 + count_ordinals(states, own, first, stop)
            states[own + slot] = CHARGING
            continue
        if not remembered:
            remember(worlds, index)
            remembered = True
        frame, ordinal = ninja["frame"], int(mover[ORDINAL])
        begin = int(mover[TOUCH_FRAME]) + EVIL_DELAY * ordinal
        if frame >= begin:
            states[own + slot] = ACTIVE
            mover["x"], mover["y"] = recall(worlds, index, frame - EVIL_DELAY * ordinal + 1)
            refresh(ninja, mover)
        elif frame > begin - EVIL_DELAY:
            fraction = (frame - (begin - EVIL_DELAY)) / EVIL_DELAY
            charge(worlds, index, levels.entities[base + slot], mover, fraction)


@kernel
def charge(worlds, index, entity, mover, fraction):
    """Move to a fraction of the line from home to the ninja's position one frame after the touch."""
    x, y = recall(worlds, index, int(mover[TOUCH_FRAME]) + 1)
    mover["x"] = entity["x"] + fraction * (x - entity["x"])
    mover["y"] = entity["y"] + fraction * (y - entity["y"])
    refresh(worlds.ninjas[index], mover)


@kernel
def count_ordinals(states, own, first, stop):
    """Return the number of the evil ninjas ``first`` to ``stop - 1`` that have an ordinal."""
    count = 0
    for slot in range(first, stop):
        count += states[own + slot] >= CHARGING
    return count


@kernel
def touch_evil_ninja(ninja, mover, states, own, slot):
    """Wake up if waiting, kill if active."""
    phase = states[own + slot]
    if phase == TOUCHED or phase == CHARGING or not meets(ninja, mover["x"], mover["y"], evil_ninja_radius(phase)):
        return
    if phase == WAITING:
        states[own + slot] = TOUCHED
        mover[TOUCH_FRAME] = ninja["frame"]
    else:
        kill(ninja)


def first_touch(entities: np.ndarray, states: np.ndarray, movers: np.ndarray) -> int:
    """Return the first frame in which one of the evil ninjas that follow was touched, 2**30 if none does."""
    following = entities["mover"][(entities["type"] == EVIL_NINJA) & (states >= CHARGING)]
    return int(np.nan_to_num(movers[TOUCH_FRAME][following]).clip(0, _NEVER).min(initial=_NEVER))


@kernel
def describe_evil_ninja(worlds, index, entity, mover, state):
    """Describe an evil ninja, see ``sim.dispatch.describe``."""
    vx, vy = next_motion(worlds, index, entity, mover, state)
    phase = 1.0 if state == ACTIVE else (0.5 if state != WAITING else 0.0)
    return vx, vy, 0.0, 0.0, phase, state == ACTIVE, False


@kernel
def next_motion(worlds, index, entity, mover, state):
    """Return the displacement of an evil ninja in the next frame, pixels."""
    frame, met, ordinal = worlds.ninjas[index]["frame"], int(mover[TOUCH_FRAME]), int(mover[ORDINAL])
    begin = met + EVIL_DELAY * ordinal
    if state == ACTIVE:
        x, y = recall(worlds, index, frame - EVIL_DELAY * ordinal + 2)
        return x - mover["x"], y - mover["y"]
    if state == CHARGING and frame > begin - EVIL_DELAY and frame > met + 1:
        x, y = recall(worlds, index, met + 1)
        return (x - entity["x"]) / EVIL_DELAY, (y - entity["y"]) / EVIL_DELAY
    return 0.0, 0.0


@kernel
def evil_ninja_radius(state):
    """Return the radius, pixels."""
    return _ACTIVE_RADIUS if state == ACTIVE else _WAITING_RADIUS
