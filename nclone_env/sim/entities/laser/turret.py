"""Laser turrets (physics 03, section 6): spinners turn in place, surface lasers crawl along walls and closed doors.

The record of a laser is described in ``record``. Lasers are in no cell and never touched.

Evidence: speed and order of test and turn of spinners by recordings; motion of surface lasers by one source and one
recording; the width of the beam, the rate at outer corners and that of the beam are open.
"""

import math

from nclone_env.constants import ARC_RADIUS, FACING_X, FACING_Y, ROWS
from nclone_env.jit import kernel, local_f64
from nclone_env.level import CONVEX, DOOR_CLOSED_AT_0, STRAIGHT
from nclone_env.sim.entities.laser.nearest import FOUND_SLOTS, REACH, nearest
from nclone_env.sim.entities.laser.record import BEAM_ANGLE, CLOCKWISE, COUNTERCLOCKWISE, MOTION, NORMAL_ANGLE, SPINNER
from nclone_env.sim.entities.laser.surface_skip import HEIGHT
from nclone_env.sim.entities.laser.surface_step import crawl
from nclone_env.sim.life import kill
from nclone_env.sim.query import cells_within, closest_on, is_absent
from nclone_env.sim.rays import BEAM, is_beside, shot
from nclone_env.sim.trigonometry import atan2, rough_sin_cos, sin_cos, wrap

_TURN = 0.010471975  # of a spinner, radians per frame
_SURFACE_LIMIT = 7.0  # rule L1
_CRAWL = 1.0  # of a surface laser, pixels per frame
_EIGHTHS_PER_RADIAN = 4.0 / math.pi
_ON_SURFACE, _TIE = 0.0000001, 0.000000001
_ROUGH_SLACK = 0.1  # above the error of a beam across the level at a rough angle, pixels


@kernel
def outward_normal(segment, back, x, y, a, b, facing_x, facing_y):
    """Return the unit normal of a segment at its point (a, b): towards (x, y); from on or behind it, to its front.

    A door has no front: for a turret on it the normal is the direction the turret faces.
    """
    dx, dy = (a - x, b - y) if back else (x - a, y - b)
    if math.sqrt(dx * dx + dy * dy) < _ON_SURFACE:
        kind = segment["kind"]
        if kind >= DOOR_CLOSED_AT_0:
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
    """Choose between spinner and surface laser by the surroundings; place a surface laser (sections 6.2 and 6.4)."""
    x, y = mover["x"], mover["y"]
    facing_x, facing_y = FACING_X[entity["orientation"]], FACING_Y[entity["orientation"]]
    cells = cells_within(x, y, REACH)
    segment, distance, _ = nearest(levels, states, index, level, cells, x, y, local_f64(FOUND_SLOTS), 0)
    nx, ny = facing_x, facing_y
    if segment >= 0 and (is_behind(levels.segments[segment], x, y) or math.sqrt(distance) < _SURFACE_LIMIT):
        states[index, slot] = COUNTERCLOCKWISE if entity["mode"] == 1 else CLOCKWISE
        qx, qy, nx, ny = facing_surface(levels, states, index, level, cells, x, y, facing_x, facing_y, distance)
        mover["x"], mover["y"] = qx + HEIGHT * nx, qy + HEIGHT * ny
    else:
        states[index, slot] = SPINNER
    angle = wrap(atan2(ny, nx))
    mover[BEAM_ANGLE] = angle
    mover[NORMAL_ANGLE] = angle if states[index, slot] != SPINNER else 0.0
    mover[MOTION] = 0


@kernel
def is_behind(segment, x, y):
    """Return whether a point lies behind a segment."""
    back, _, _ = closest_on(segment, x, y)
    return back


@kernel
def facing_surface(levels, states, index, level, cells, x, y, facing_x, facing_y, distance):
    """Return (point, normal) of the segment at a squared distance whose normal is closest to the turret's facing."""
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
def think(levels, worlds, index, slot, entity, mover):
    """Kill by the beam in its present place, then turn or crawl."""
    ninja, states = worlds.ninjas[index], worlds.entity_states
    x, y = mover["x"], mover["y"]
    sine, cosine = rough_sin_cos(mover[BEAM_ANGLE])
    if is_beside(ninja, x, y, cosine, sine, _ROUGH_SLACK):  # the exact angle matters only there
        sine, cosine = sin_cos(mover[BEAM_ANGLE])
        if shot(levels, states, index, ninja, x, y, cosine, sine):
            kill(ninja)
    if states[index, slot] == SPINNER:
        mover[BEAM_ANGLE] = wrap(mover[BEAM_ANGLE] + (-_TURN if entity["mode"] == 1 else _TURN))
    else:
        crawl(levels, ninja["level"], mover, states, index, slot)


@kernel
def describe(mover, state):
    """Describe a laser turret, see ``sim.dispatch.describe``."""
    vx, vy = 0.0, 0.0
    if state != SPINNER:
        sine, cosine = sin_cos(mover[NORMAL_ANGLE])
        sense = _CRAWL if state == CLOCKWISE else -_CRAWL
        vx, vy = -sine * sense, cosine * sense
    facing_y, facing_x = sin_cos(mover[BEAM_ANGLE])
    return vx, vy, facing_x, facing_y, 1.0, False, False


@kernel
def beam(mover):
    """Return (emission, dx, dy): the beam."""
    dy, dx = sin_cos(mover[BEAM_ANGLE])
    return BEAM, dx, dy


@kernel
def beam_orientation(mover):
    """Return the direction of the beam in eighths of a turn, 0..7 clockwise from right."""
    return int(math.floor(mover[BEAM_ANGLE] * _EIGHTHS_PER_RADIAN + 0.5)) & 7
