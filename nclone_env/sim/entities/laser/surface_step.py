"""The way of surface lasers along tiles and shut doors, a frame at a time (physics 03, section 6.4)."""

from __future__ import annotations

import math

from nclone_env.jit import called_kernel, kernel, local_f64
from nclone_env.level.segments import DOOR_SHUT_AT_0
from nclone_env.level.tiles import STRAIGHT
from nclone_env.sim.entities.laser.nearest import (
    FOUND_SLOTS,
    MOST_LISTED,
    REACH,
    keep_near,
    nearest,
    nearest_listed,
    nearest_surveyed,
    survey,
)
from nclone_env.sim.entities.laser.surface_skip import (
    CLOCKWISE,
    CORNER_TURN,
    COUNTERCLOCKWISE,
    HEIGHT,
    SAME,
    STEP,
    STEPS,
    glide,
    look_ahead,
    rest,
    rest_ends,
    shuttle,
)
from nclone_env.sim.query import cells_within, closest_on
from nclone_env.sim.trigonometry import atan2, sin_cos, wrap

_BEAM_TURN = 20.0 * CORNER_TURN  # per frame at most (rule L4)
_LOG_SLOTS = 3 * STEPS  # per step of a walk: position, and the number of a straight segment or one of
_TURN, _CURVED = -1, -2
_STRAY = 2.0  # farther than ten steps lead, unless what is near changes at once; then everything is searched


@called_kernel
def crawl(levels, level, mover, states, index, slot):
    """Go along the surface for a frame; the beam turns to the normal."""
    if rest_ends(levels, level, mover, states, index):
        mover["timer"] = 0
    if mover["timer"] > 0:
        glide(levels, level, mover, states, index, slot)
    elif not look_round(levels, level, mover, states, index, slot):
        return
    turn_beam(mover)


@kernel
def look_round(levels, level, mover, states, index, slot):
    """Search for what is around, and glide or walk on for a frame; return whether there was anything."""
    cells, found = cells_within(mover["x"], mover["y"], REACH), local_f64(FOUND_SLOTS)
    count = survey(levels, level, cells, mover["x"], mover["y"], found)
    listed = count <= MOST_LISTED
    nearby = nearest_surveyed(levels, states, index, found, count) if listed else -1
    if not listed:
        nearby = nearest(levels, states, index, level, cells, mover["x"], mover["y"])[0]
    if nearby < 0:
        return False
    _, a, b = closest_on(levels.segments[nearby], mover["x"], mover["y"])
    if listed:
        sense = 1.0 if states[index, slot] == CLOCKWISE else -1.0
        look_ahead(levels, level, mover, found, count, nearby, a, b, sense)
    if mover["timer"] > 0:
        glide(levels, level, mover, states, index, slot)
        return True
    if listed:
        distance = (mover["x"] - a) * (mover["x"] - a) + (mover["y"] - b) * (mover["y"] - b)
        count = keep_near(found, count, math.sqrt(distance) + 2.0 * _STRAY + STEP)
    walk(levels, level, mover, states, index, slot, cells, found, count, a, b)
    return True


@kernel
def walk(levels, level, mover, states, index, slot, cells, found, count, a, b):
    """Take ten steps: along the surface, round outer corners, back at inner corners and doors."""
    x, y, angle, sense = mover["x"], mover["y"], mover["ux"], 1.0 if states[index, slot] == CLOCKWISE else -1.0
    x0, y0 = x, y
    ny, nx = sin_cos(angle)
    turned, turns, door = False, 0, -1  # the angle follows the normal when it is needed again
    log = local_f64(_LOG_SLOTS)
    for step in range(STEPS):
        x, y = x - ny * sense * STEP, y + nx * sense * STEP
        strayed = (x - x0) * (x - x0) + (y - y0) * (y - y0) > _STRAY * _STRAY
        if strayed or count > MOST_LISTED:
            nearby, _, qx, qy, distance = nearest(levels, states, index, level, cells, x, y)
        else:
            nearby, qx, qy, distance = nearest_listed(levels, states, index, found, count, x, y)
        mx, my = x - qx, y - qy
        height = math.sqrt(distance)
        if height > 0.0:
            mx, my = mx / height, my / height
        kind = levels.segments[nearby]["kind"]
        if nx * mx + ny * my < SAME or kind >= DOOR_SHUT_AT_0:
            sense = -sense
            x, y = x - ny * sense * STEP, y + nx * sense * STEP
            turns, door = turns + 1, nearby if kind >= DOOR_SHUT_AT_0 else door
            log[3 * step], log[3 * step + 1], log[3 * step + 2] = x, y, _TURN
            continue
        if math.sqrt((qx - a) * (qx - a) + (qy - b) * (qy - b)) < SAME:
            if turned:
                angle, turned = atan2(ny, nx), False
            angle += sense * CORNER_TURN
            ny, nx = sin_cos(angle)
            x, y, kind = qx + HEIGHT * nx, qy + HEIGHT * ny, _CURVED
        else:
            x, y = qx + HEIGHT * mx, qy + HEIGHT * my
            nx, ny, turned = mx, my, True
        log[3 * step + 2] = nearby if kind == STRAIGHT else _CURVED
        a, b = qx, qy
    if turned:
        angle = atan2(ny, nx)
    mover["x"], mover["y"], mover["ux"] = x, y, wrap(angle)
    states[index, slot] = CLOCKWISE if sense > 0.0 else COUNTERCLOCKWISE
    if turns == STEPS and door >= 0:
        rest(levels, level, mover, door)
    elif turns > 2 and count <= MOST_LISTED and not has_door(levels, found, count):
        floor, gap, since = regular_turns(log)
        if floor >= 0:
            shuttle(levels, level, mover, floor, gap, since, -ny, nx)


@kernel
def regular_turns(log):
    """Return (straight segment on which a laser goes to and fro, steps from turn to turn, steps since the last).

    The segment is -1 unless the last turn was where the last but two was, and the ways to and fro equally long.
    """
    floor, last, gap, x1, y1, x2, y2, regular = 0, 0, 0, 0.0, 0.0, 0.0, 0.0, False
    for step in range(STEPS):
        x, y, what = log[3 * step], log[3 * step + 1], int(log[3 * step + 2])
        if what == _CURVED:
            return -1, 0, 0
        if what == _TURN:
            regular = step - last == gap and x == x2 and y == y2
            x2, y2, x1, y1, gap, last = x1, y1, x, y, step - last, step
        else:
            floor = what
    return (floor if regular else -1), gap, STEPS - 1 - last


@kernel
def has_door(levels, found, count):
    """Return whether there is a door in a list of segments, open or shut."""
    doors = 0
    for k in range(count):
        doors += levels.segments[int(found[2 * k])]["kind"] >= DOOR_SHUT_AT_0
    return doors > 0


@kernel
def turn_beam(mover):
    """Turn the beam towards the normal of the surface, as fast as it can."""
    turn = wrap(mover["ux"] - mover["uy"])
    if turn > _BEAM_TURN:
        turn = _BEAM_TURN
    elif turn < -_BEAM_TURN:
        turn = -_BEAM_TURN
    mover["uy"] = wrap(mover["uy"] + turn)
