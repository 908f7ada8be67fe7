"""Death balls (physics 02, section 6.20).

The state is unused. ``a`` and ``b`` of the mover are the velocity; ``timer`` is 1 once the ball is stuck for good.
"""

import math

from nclone_env.game import DEATH_BALL, KINDS, ROWS
from nclone_env.jit import called_kernel, kernel
from nclone_env.level import DOOR_CLOSED_AT_0, STRAIGHT
from nclone_env.sim.cells import refresh
from nclone_env.sim.ninja import is_targetable, kill, meets
from nclone_env.sim.query import cells_within, closest_on, closest_point, sweep_tiles

VELOCITY_X, VELOCITY_Y, STUCK = "a", "b", "timer"
_BALL_RADIUS, _SEGMENT_RADIUS, _SWEEP_RADIUS = KINDS[DEATH_BALL].radii[0], 8.0, 4.0
_PAIR_DISTANCE, _PAIR_PUSH = 16.0, 4.0
_ACCELERATION, _COASTING = 0.04, 0.95
_TOP_SPEED, _OVERSPEED_KEPT, _OVERSPEED_LEAST = 0.85, 0.9, 0.01
_REFLECTING_SPEED = 1.35
_PUSHES, _TOUCHING = 16, 0.0000001
_RECOIL = 10.0


@kernel
def think_run(levels, worlds, index, first, stop):
    """Let the death balls with movers ``first`` to ``stop - 1`` think."""
    for number in range(first, stop):
        think(levels, worlds, index, number, stop)


@kernel
def think(levels, worlds, index, number, stop):
    """Steer, move, leave the tiles, bounce off, push the balls after this one, up to mover ``stop``."""
    ninja, mover = worlds.ninjas[index], worlds.movers[index, number]
    steer(ninja, mover)
    if mover[STUCK] != 0:
        return
    complete, nx, ny = travel(levels, ninja["level"], worlds.entity_states, index, mover)
    if not complete:
        mover[STUCK] = is_stuck(levels, ninja["level"], mover["x"], mover["y"])
        return
    respond(mover, nx, ny)
    push_others(worlds, index, number, stop)
    refresh(ninja, mover)


@kernel
def steer(ninja, mover):
    """Accelerate towards a targetable ninja, up to a soft limit; else coast (step A)."""
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
def travel(levels, level, states, index, mover):
    """Move and leave the tiles; return (complete, sum of normals) (steps B and C).

    Not complete if the centre lies on a segment: then the ball skips the rest of its frame.
    """
    qx, qy, ux, uy = mover["x"], mover["y"], mover[VELOCITY_X], mover[VELOCITY_Y]
    start, segments = levels.segment_start, levels.segments
    fraction = sweep_tiles(start, segments, level, states, index, qx, qy, ux, uy, _SWEEP_RADIUS)
    x, y = qx + fraction * ux, qy + fraction * uy
    normal_x, normal_y, complete = 0.0, 0.0, True
    for _ in range(_PUSHES):
        facing, a, b = closest_point(start, segments, level, states, index, x, y, _SEGMENT_RADIUS)
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
    """Return whether a ball whose centre lies on a segment stays there: the segment is straight and no door is near."""
    stuck = False
    first_column, last_column, first_row, last_row = cells_within(x, y, _SEGMENT_RADIUS)
    for column in range(first_column, last_column + 1):
        start = levels.segment_start[level, column * ROWS + first_row]
        stop = levels.segment_start[level, column * ROWS + last_row + 1]
        for i in range(start, stop):
            if levels.segments[i]["kind"] >= DOOR_CLOSED_AT_0:
                return False
            _, a, b = closest_on(levels.segments[i], x, y)
            stuck |= levels.segments[i]["kind"] == STRAIGHT and a == x and b == y
    return stuck


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
    mover = worlds.movers[index, number]
    x, y = mover["x"], mover["y"]
    for k in range(number + 1, stop):
        other = worlds.movers[index, k]
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
def touch(ninja, mover):
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
def describe(mover):
    """Describe a death ball, see ``sim.dispatch.describe``."""
    return mover[VELOCITY_X], mover[VELOCITY_Y], 0.0, 0.0, 1.0, True, False
