"""Death balls (physics 02, section 6.20).

No state byte; the mover's pair is the velocity, its ``timer`` is 1 once the ball is stuck for good.
"""

from __future__ import annotations

import math

from nclone_env.constants import RADIUS, ROWS
from nclone_env.jit import called_kernel, kernel
from nclone_env.level.segments import DOOR_SHUT_AT_0
from nclone_env.level.tiles import STRAIGHT
from nclone_env.sim.cells import refresh
from nclone_env.sim.geometry import discs_overlap
from nclone_env.sim.life import is_targetable, kill
from nclone_env.sim.query import cells_within, closest_on, closest_point, sweep_tiles

_BALL_RADIUS, _SEGMENT_RADIUS, _SWEEP_RADIUS = 5.0, 8.0, 4.0
_PAIR_DISTANCE, _PAIR_PUSH = 16.0, 4.0
_ACCELERATION, _COASTING = 0.04, 0.95
_TOP_SPEED, _OVERSPEED_KEPT, _OVERSPEED_LEAST = 0.85, 0.9, 0.01
_REFLECTING_SPEED = 1.35
_PUSHES, _TOUCHING = 16, 0.0000001
_RECOIL = 10.0


@kernel
def think(levels, worlds, index, number, stop):
    """Steer, move, leave the tiles, bounce off, push the balls after this one, up to mover ``stop``."""
    ninja, mover = worlds.ninjas[index], worlds.movers[index, number]
    steer(ninja, mover)
    if mover["timer"] != 0:
        return
    complete, nx, ny = travel(levels, ninja["level"], worlds.entity_states, index, mover)
    if not complete:
        mover["timer"] = is_stuck(levels, ninja["level"], mover["x"], mover["y"])
        return
    respond(mover, nx, ny)
    push_others(worlds, index, number, stop)
    refresh(ninja, mover)


@kernel
def steer(ninja, mover):
    """Accelerate towards a targetable ninja, up to a soft limit; else coast (step A)."""
    if not is_targetable(ninja):
        mover["ux"] *= _COASTING
        mover["uy"] *= _COASTING
        return
    dx, dy = ninja["x"] - mover["x"], ninja["y"] - mover["y"]
    length = math.sqrt(dx * dx + dy * dy)
    if length > 0.0:
        dx, dy = dx / length, dy / length
    ux, uy = mover["ux"] + dx * _ACCELERATION, mover["uy"] + dy * _ACCELERATION
    speed = math.sqrt(ux * ux + uy * uy)
    if speed > _TOP_SPEED:
        wanted = (speed - _TOP_SPEED) * _OVERSPEED_KEPT
        if wanted <= _OVERSPEED_LEAST:
            wanted = 0.0
        wanted += _TOP_SPEED
        ux, uy = ux / speed * wanted, uy / speed * wanted
    mover["ux"], mover["uy"] = ux, uy


@kernel
def travel(levels, level, states, index, mover):
    """Move and leave the tiles; return (complete, sum of normals) (steps B and C).

    Not complete if the centre lies on a segment: then the rest of the frame's thinking is left out.
    """
    qx, qy, ux, uy = mover["x"], mover["y"], mover["ux"], mover["uy"]
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
    """Return whether a ball whose centre lies on a segment stays there: that is straight and no door is near."""
    stuck = False
    first_column, last_column, first_row, last_row = cells_within(x, y, _SEGMENT_RADIUS)
    for column in range(first_column, last_column + 1):
        start = levels.segment_start[level, column * ROWS + first_row]
        stop = levels.segment_start[level, column * ROWS + last_row + 1]
        for i in range(start, stop):
            if levels.segments[i]["kind"] >= DOOR_SHUT_AT_0:
                return False
            _, a, b = closest_on(levels.segments[i], x, y)
            stuck |= levels.segments[i]["kind"] == STRAIGHT and a == x and b == y
    return stuck


@kernel
def respond(mover, normal_x, normal_y):
    """Slide along what was met, or bounce off if fast (step D)."""
    length = math.sqrt(normal_x * normal_x + normal_y * normal_y)
    if length > 0.0:
        nx, ny = normal_x / length, normal_y / length
        ux, uy = mover["ux"], mover["uy"]
        into = ux * nx + uy * ny
        if into < 0.0:
            speed = math.sqrt(ux * ux + uy * uy)
            share = 1.0 if speed <= _REFLECTING_SPEED else 2.0
            mover["ux"] = ux - nx * into * share
            mover["uy"] = uy - ny * into * share


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
            mover["ux"] += dx
            mover["uy"] += dy
            other["ux"] -= dx
            other["uy"] -= dy


@kernel
def touch(ninja, mover):
    """Kill, and recoil."""
    x, y = mover["x"], mover["y"]
    if is_targetable(ninja) and discs_overlap(x, y, ninja["x"], ninja["y"], _BALL_RADIUS + RADIUS):
        dx, dy = x - ninja["x"], y - ninja["y"]
        length = math.sqrt(dx * dx + dy * dy)
        if length > 0.0:
            mover["ux"] += dx / length * _RECOIL
            mover["uy"] += dy / length * _RECOIL
        kill(ninja)
