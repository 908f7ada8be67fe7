"""Laser turrets (physics 03, section 6): spinners turn on the spot, surface lasers crawl along walls and shut doors.

State: 0 spinner, 1 surface laser that crawls clockwise as seen on the screen, 2 the other way. The mover's position is
that of the laser, its pair (angle of the outward normal of the surface, angle of the beam), from -pi up to below pi,
clockwise. Lasers are in no cell and never touched.

Evidence: speed and order of test and turn of spinners by recordings; motion of surface lasers by one source and one
recording; the width of the beam, the rate at outer corners and that of the beam are open.
"""

from __future__ import annotations

import math

from nclone_env._jit import called_kernel, kernel
from nclone_env.constants import ARC_RADIUS, COLUMNS, FACING_X, FACING_Y, ROWS
from nclone_env.level.segments import DOOR_SHUT_AT_0
from nclone_env.level.tiles import CONVEX, STRAIGHT
from nclone_env.sim.geometry import clamp_cell
from nclone_env.sim.life import kill
from nclone_env.sim.query import closest_on, is_absent
from nclone_env.sim.rays import shot
from nclone_env.sim.trigonometry import atan2, sin_cos, wrap

SPINNER, CLOCKWISE, COUNTERCLOCKWISE = 0, 1, 2
_TURN = 0.010471975  # of a spinner, radians per frame
_REACH = 12.0  # of the rectangle whose cells are searched for segments
_SURFACE_LIMIT = 7.0  # rule L1
_HEIGHT = 5.9  # above the surface
_STEPS, _STEP = 10, 0.1  # per frame, pixels (rule L3)
_CORNER_TURN = 0.005524805665672641  # per step, radians; the beam turns 20 of them a frame at most (rule L4)
_BEAM_TURN = 20.0 * _CORNER_TURN
_ON_SURFACE, _SAME, _TIE = 0.0000001, 0.0000001, 0.000000001
_FAR = 9999999.0


@kernel
def search_cells(x, y):
    """Return (first column, last column, first row, last row) of the cells to search for segments."""
    first_column, last_column = clamp_cell(x - _REACH, COLUMNS - 1), clamp_cell(x + _REACH, COLUMNS - 1)
    return first_column, last_column, clamp_cell(y - _REACH, ROWS - 1), clamp_cell(y + _REACH, ROWS - 1)


@called_kernel
def nearest(levels, states, index, level, cells, x, y):
    """Return (segment, back-facing, a, b, squared distance) of the nearest segment in some cells; -1 if there is none.

    Among equals doors come first, then the earlier one.
    """
    best, best_back, best_a, best_b, best_distance = -1, False, 0.0, 0.0, _FAR
    best_door = False
    for column in range(cells[0], cells[1] + 1):
        start = levels.segment_start[level, column * ROWS + cells[2]]
        stop = levels.segment_start[level, column * ROWS + cells[3] + 1]
        for i in range(start, stop):
            if is_absent(levels.segments[i], states, index):
                continue
            back, a, b = closest_on(levels.segments[i], x, y)
            dx, dy = x - a, y - b
            distance = dx * dx + dy * dy
            door = levels.segments[i]["kind"] >= DOOR_SHUT_AT_0
            if distance < best_distance or (distance == best_distance and door and not best_door):
                best, best_back, best_a, best_b, best_distance, best_door = i, back, a, b, distance, door
    return best, best_back, best_a, best_b, best_distance


@kernel
def outward_normal(segment, back, x, y, a, b, facing_x, facing_y):
    """Return the unit normal of a segment at its point (a, b), to the side of (x, y) or, on the segment, to the front.

    A door has no front: there it is the way the turret faces. Behind a segment the normal points to its front.
    """
    dx, dy = (a - x, b - y) if back else (x - a, y - b)
    if math.sqrt(dx * dx + dy * dy) < _ON_SURFACE:
        kind = segment["kind"]
        if kind >= DOOR_SHUT_AT_0:
            dx, dy = facing_x, facing_y
        elif kind == STRAIGHT:
            dx, dy = -(segment["y2"] - segment["y1"]) * 1.0, (segment["x2"] - segment["x1"]) * 1.0
        else:
            side = 1.0 if kind == CONVEX else -1.0
            dx, dy = side * (a - segment["x1"]) / ARC_RADIUS, side * (b - segment["y1"]) / ARC_RADIUS
    length = math.sqrt(dx * dx + dy * dy)
    return dx / length, dy / length


@kernel
def start(levels, level, entity, mover, states, index, slot):
    """Decide by the surroundings which kind this is, and put a surface laser on its surface (sections 6.2 and 6.4)."""
    x, y = mover["x"], mover["y"]
    facing_x, facing_y = FACING_X[entity["orientation"]], FACING_Y[entity["orientation"]]
    cells = search_cells(x, y)
    found, back, _, _, distance = nearest(levels, states, index, level, cells, x, y)
    nx, ny = facing_x, facing_y
    if found < 0 or (not back and math.sqrt(distance) >= _SURFACE_LIMIT):
        states[index, slot] = SPINNER
    else:
        states[index, slot] = COUNTERCLOCKWISE if entity["mode"] == 1 else CLOCKWISE
        qx, qy, nx, ny = surface(levels, states, index, level, cells, x, y, facing_x, facing_y, distance)
        mover["x"], mover["y"] = qx + _HEIGHT * nx, qy + _HEIGHT * ny
    angle = wrap(atan2(ny, nx))
    mover["uy"] = angle
    mover["ux"] = angle if states[index, slot] != SPINNER else 0.0


@kernel
def surface(levels, states, index, level, cells, x, y, facing_x, facing_y, distance):
    """Return (point, normal) of the segment at a squared distance whose normal is nearest to the turret's facing."""
    best, qx, qy, nx, ny = -2.0, x, y, facing_x, facing_y
    for column in range(cells[0], cells[1] + 1):
        first = levels.segment_start[level, column * ROWS + cells[2]]
        stop = levels.segment_start[level, column * ROWS + cells[3] + 1]
        for i in range(first, stop):
            segment = levels.segments[i]
            if is_absent(segment, states, index):
                continue
            back, a, b = closest_on(segment, x, y)
            dx, dy = x - a, y - b
            if dx * dx + dy * dy > distance + _TIE:
                continue
            mx, my = outward_normal(segment, back, x, y, a, b, facing_x, facing_y)
            likeness = mx * facing_x + my * facing_y
            if likeness > best:
                best, qx, qy, nx, ny = likeness, a, b, mx, my
    return qx, qy, nx, ny


@kernel
def think(levels, ninja, entity, mover, states, index, slot):
    """Kill by the beam where it is, then turn or crawl."""
    sine, cosine = sin_cos(mover["uy"])
    if shot(levels, states, index, ninja, mover["x"], mover["y"], cosine, sine):
        kill(ninja)
    if states[index, slot] == SPINNER:
        mover["uy"] = wrap(mover["uy"] + (-_TURN if entity["mode"] == 1 else _TURN))
    else:
        crawl(levels, ninja["level"], mover, states, index, slot)


@kernel
def crawl(levels, level, mover, states, index, slot):
    """Go along the surface, round outer corners, back at inner corners and doors; the beam turns to the normal."""
    x, y, angle = mover["x"], mover["y"], mover["ux"]
    sense = 1.0 if states[index, slot] == CLOCKWISE else -1.0
    cells = search_cells(x, y)
    found, _, a, b, _ = nearest(levels, states, index, level, cells, x, y)
    if found < 0:
        return
    ny, nx = sin_cos(angle)
    for _ in range(_STEPS):
        x, y = x - ny * sense * _STEP, y + nx * sense * _STEP
        found, _, qx, qy, distance = nearest(levels, states, index, level, cells, x, y)
        mx, my = x - qx, y - qy
        height = math.sqrt(distance)
        if height > 0.0:
            mx, my = mx / height, my / height
        if nx * mx + ny * my < _SAME or levels.segments[found]["kind"] >= DOOR_SHUT_AT_0:
            sense = -sense
            x, y = x - ny * sense * _STEP, y + nx * sense * _STEP
            continue
        if math.sqrt((qx - a) * (qx - a) + (qy - b) * (qy - b)) < _SAME:
            angle += sense * _CORNER_TURN
            ny, nx = sin_cos(angle)
            x, y = qx + _HEIGHT * nx, qy + _HEIGHT * ny
        else:
            x, y = qx + _HEIGHT * mx, qy + _HEIGHT * my
            angle = atan2(my, mx)
            ny, nx = sin_cos(angle)
        a, b = qx, qy
    mover["x"], mover["y"], mover["ux"] = x, y, wrap(angle)
    states[index, slot] = CLOCKWISE if sense > 0.0 else COUNTERCLOCKWISE
    turn_beam(mover)


@kernel
def turn_beam(mover):
    """Turn the beam towards the normal of the surface, as fast as it can."""
    turn = wrap(mover["ux"] - mover["uy"])
    if turn > _BEAM_TURN:
        turn = _BEAM_TURN
    elif turn < -_BEAM_TURN:
        turn = -_BEAM_TURN
    mover["uy"] = wrap(mover["uy"] + turn)
