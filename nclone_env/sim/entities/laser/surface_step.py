"""Crawling along tiles and closed doors: one frame of a surface laser (physics 03, section 6.4).

A frame is ten substeps, each with a search for the nearest segment. While the motion of whole frames is known in closed
form, ``surface_skip`` advances the laser instead; otherwise the substeps are taken here.
"""

import math

from nclone_env.jit import called_kernel, kernel, local_f64
from nclone_env.level import DOOR_CLOSED_AT_0, STRAIGHT
from nclone_env.sim.entities.laser.nearest import FOUND_SLOTS, MOST_LISTED, REACH, drop_distant, nearest, nearest_listed
from nclone_env.sim.entities.laser.record import BEAM_ANGLE, CLOCKWISE, COUNTERCLOCKWISE, FRAMES_LEFT, NORMAL_ANGLE
from nclone_env.sim.entities.laser.surface_skip import (
    CORNER_TURN,
    HEIGHT,
    SAME,
    STEP,
    STEPS,
    advance_frame,
    bounce,
    plan_frames,
    rest,
    rest_ends,
)
from nclone_env.sim.query import cells_within, closest_on
from nclone_env.sim.trigonometry import atan2, sin_cos, wrap

_BEAM_TURN = 20.0 * CORNER_TURN  # per frame at most (rule L4)
_LOG_SLOTS = 3 * STEPS  # per step: position, and the index of a straight segment or one of
_TURN, _CURVED = -1, -2
_STRAY = 2.0  # pixels; ten steps only lead farther if a door changes meanwhile: then all the cells are searched


@called_kernel
def crawl(levels, level, mover, states, index, slot):
    """Crawl along the surface for a frame; the beam turns to the normal."""
    if rest_ends(levels, level, mover, states, index):
        mover[FRAMES_LEFT] = 0
    if mover[FRAMES_LEFT] > 0:
        advance_frame(levels, level, mover, states, index, slot)
    elif not search_and_move(levels, level, mover, states, index, slot):
        return
    turn_beam(mover)


@kernel
def search_and_move(levels, level, mover, states, index, slot):
    """Search for surfaces and move for a frame, in closed form or by ten steps; return False if there are none."""
    x, y = mover["x"], mover["y"]
    cells, found = cells_within(x, y, REACH), local_f64(FOUND_SLOTS)
    segment, distance, count = nearest(levels, states, index, level, cells, x, y, found, MOST_LISTED)
    if segment < 0:
        return False
    _, a, b = closest_on(levels.segments[segment], x, y)
    if count <= MOST_LISTED:
        sense = 1.0 if states[index, slot] == CLOCKWISE else -1.0
        plan_frames(levels, level, mover, found, count, segment, a, b, sense)
    if mover[FRAMES_LEFT] > 0:
        advance_frame(levels, level, mover, states, index, slot)
        return True
    if count <= MOST_LISTED:
        count = drop_distant(found, count, math.sqrt(distance) + 2.0 * _STRAY + STEP)
    take_steps(levels, level, mover, states, index, slot, cells, found, count, a, b)
    return True


@kernel
def take_steps(levels, level, mover, states, index, slot, cells, found, count, a, b):
    """Take ten steps: along the surface, round outer corners, back at inner corners and doors.

    (a, b) is the closest point of the surface before them. A ``count`` above ``MOST_LISTED`` means that the list is
    incomplete.
    """
    x, y, angle, sense = mover["x"], mover["y"], mover[NORMAL_ANGLE], 1.0 if states[index, slot] == CLOCKWISE else -1.0
    x0, y0 = x, y
    ny, nx = sin_cos(angle)
    turned, turns, door = False, 0, -1  # turned: the angle no longer matches (nx, ny); recomputed when next needed
    log = local_f64(_LOG_SLOTS)
    for step in range(STEPS):
        x, y = x - ny * sense * STEP, y + nx * sense * STEP
        strayed = (x - x0) * (x - x0) + (y - y0) * (y - y0) > _STRAY * _STRAY
        if strayed or count > MOST_LISTED:
            segment, distance, _ = nearest(levels, states, index, level, cells, x, y, found, 0)
            _, qx, qy = closest_on(levels.segments[segment], x, y)
        else:
            segment, qx, qy, distance = nearest_listed(levels, states, index, found, count, x, y)
        mx, my = x - qx, y - qy
        height = math.sqrt(distance)
        if height > 0.0:
            mx, my = mx / height, my / height
        kind = levels.segments[segment]["kind"]
        if nx * mx + ny * my < SAME or kind >= DOOR_CLOSED_AT_0:
            sense = -sense
            x, y = x - ny * sense * STEP, y + nx * sense * STEP
            turns, door = turns + 1, segment if kind >= DOOR_CLOSED_AT_0 else door
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
        log[3 * step + 2] = segment if kind == STRAIGHT else _CURVED
        a, b = qx, qy
    if turned:
        angle = atan2(ny, nx)
    mover["x"], mover["y"], mover[NORMAL_ANGLE] = x, y, wrap(angle)
    states[index, slot] = CLOCKWISE if sense > 0.0 else COUNTERCLOCKWISE
    if turns == STEPS and door >= 0:
        rest(levels, level, mover, door)
    elif turns > 2 and count <= MOST_LISTED and not has_door(levels, found, count):
        floor, gap, since = regular_turns(log)
        if floor >= 0:
            bounce(levels, level, mover, floor, gap, since, -ny, nx)


@kernel
def regular_turns(log):
    """Return (straight segment on which a laser bounces, steps from turn to turn, steps since the last turn).

    The segment is -1 unless the last turn was at the place of the last but two, and both directions took equally long;
    also if all steps were turns, which leave no segment to tell the direction by.
    """
    floor, last, gap, x1, y1, x2, y2, regular = -1, 0, 0, 0.0, 0.0, 0.0, 0.0, False
    for step in range(STEPS):
        x, y, entry = log[3 * step], log[3 * step + 1], int(log[3 * step + 2])
        if entry == _CURVED:
            return -1, 0, 0
        if entry == _TURN:
            regular = step - last == gap and x == x2 and y == y2
            x2, y2, x1, y1, gap, last = x1, y1, x, y, step - last, step
        else:
            floor = entry
    return (floor if regular else -1), gap, STEPS - 1 - last


@kernel
def has_door(levels, found, count):
    """Return whether a list of segments contains a door, open or closed."""
    doors = 0
    for k in range(count):
        doors += levels.segments[int(found[2 * k])]["kind"] >= DOOR_CLOSED_AT_0
    return doors > 0


@kernel
def turn_beam(mover):
    """Turn the beam towards the normal of the surface, at its limited rate."""
    turn = wrap(mover[NORMAL_ANGLE] - mover[BEAM_ANGLE])
    if turn > _BEAM_TURN:
        turn = _BEAM_TURN
    elif turn < -_BEAM_TURN:
        turn = -_BEAM_TURN
    mover[BEAM_ANGLE] = wrap(mover[BEAM_ANGLE] + turn)
