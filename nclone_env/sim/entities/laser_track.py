"""The way of surface lasers along tiles and shut doors, a frame at a time (physics 03, section 6.4)."""

from __future__ import annotations

import math

from nclone_env._jit import called_kernel, kernel, local_f64
from nclone_env.level.segments import DOOR_SHUT_AT_0
from nclone_env.sim.entities.laser_glide import (
    CLOCKWISE,
    CORNER_TURN,
    COUNTERCLOCKWISE,
    HEIGHT,
    SAME,
    STEP,
    STEPS,
    begin_shuttle,
    glide,
    look_ahead,
    rest,
    rest_ends,
)
from nclone_env.sim.entities.laser_search import (
    FOUND_SLOTS,
    MOST_LISTED,
    REACH,
    keep_near,
    nearest,
    nearest_listed,
    nearest_surveyed,
    survey,
)
from nclone_env.sim.query import cells_within, closest_on
from nclone_env.sim.trigonometry import atan2, sin_cos, wrap

_BEAM_TURN = 20.0 * CORNER_TURN  # per frame at most (rule L4)
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
    x, y, angle = mover["x"], mover["y"], mover["ux"]
    x0, y0, sense = x, y, 1.0 if states[index, slot] == CLOCKWISE else -1.0
    ny, nx = sin_cos(angle)
    turned, turns, door = False, 0, -1  # the angle follows the normal when it is needed again
    x1, y1, x2, y2, last, gap, steady = 0.0, 0.0, 0.0, 0.0, 0, 0, False  # where and when it turned round
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
        if nx * mx + ny * my < SAME or levels.segments[nearby]["kind"] >= DOOR_SHUT_AT_0:
            sense = -sense
            x, y = x - ny * sense * STEP, y + nx * sense * STEP
            if levels.segments[nearby]["kind"] >= DOOR_SHUT_AT_0:
                door = nearby
            turns += 1
            steady = turns > 2 and step - last == gap and x == x2 and y == y2
            x1, y1, x2, y2, last, gap = x, y, x1, y1, step, step - last
            continue
        if math.sqrt((qx - a) * (qx - a) + (qy - b) * (qy - b)) < SAME:
            if turned:
                angle, turned = atan2(ny, nx), False
            angle += sense * CORNER_TURN
            ny, nx = sin_cos(angle)
            x, y = qx + HEIGHT * nx, qy + HEIGHT * ny
        else:
            x, y = qx + HEIGHT * mx, qy + HEIGHT * my
            nx, ny, turned = mx, my, True
        a, b = qx, qy
    if turned:
        angle = atan2(ny, nx)
    mover["x"], mover["y"], mover["ux"] = x, y, wrap(angle)
    states[index, slot] = CLOCKWISE if sense > 0.0 else COUNTERCLOCKWISE
    if turns == STEPS and door >= 0:
        rest(levels, level, mover, door)
    elif steady and count <= MOST_LISTED and not has_door(levels, found, count):
        begin_shuttle(mover, gap, STEPS - 1 - last)


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
