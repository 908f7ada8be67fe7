"""The way of surface lasers along tiles (physics 03, section 6.4): ten steps a frame, as the specification has it.

Each of the ten steps searches for the nearest segment. As long as that is plainly the same straight segment, or the
same corner between straight ones, the ten are one motion: the laser *glides*. What is ahead is surveyed once for some
frames, with every door taken as shut, so that nothing which can happen in the meantime is missed. One that turned round
in all ten steps *rests*: on a shut door as long as that is shut, between tiles for good. Results differ from those of
single steps by rounding alone.

``timer`` of the mover counts the frames left to glide or rest; ``order`` is eight times the number of the segment in
its level plus the way: towards its second or its first end, round one of them, or none.
"""

from __future__ import annotations

import math

from nclone_env._jit import called_kernel, kernel, local_f64
from nclone_env.constants import COLUMNS, ROWS
from nclone_env.level.segments import DOOR_SHUT_AT_0
from nclone_env.level.tiles import STRAIGHT
from nclone_env.sim.geometry import clamp_cell
from nclone_env.sim.query import closest_on, is_absent
from nclone_env.sim.trigonometry import atan2, sin_cos, wrap

CLOCKWISE, COUNTERCLOCKWISE = 1, 2  # states
HEIGHT = 5.9  # above the surface
_REACH = 12.0  # of the rectangle whose cells are searched for segments
_STEPS, _STEP = 10, 0.1  # per frame, pixels (rule L3)
_CORNER_TURN = 0.005524805665672641  # per step, radians; the beam turns 20 of them a frame at most (rule L4)
_BEAM_TURN = 20.0 * _CORNER_TURN
_SAME = 0.0000001
_FAR = 9999999.0

_TO_SECOND, _TO_FIRST, _ROUND_SECOND, _ROUND_FIRST, _REST = 0, 1, 2, 3, 4
_WAYS = 8  # room for the way in ``order``
_GLIDE, _GLIDE_TURN = _STEPS * _STEP, _STEPS * _CORNER_TURN  # in a frame
_GLIDE_ROUND = HEIGHT * _GLIDE_TURN
_MOST_RESTS = 32767
_MOST_FRAMES = 6  # what is not searched is at least 12 pixels away, and nothing below 5.9 matters
_MOST_LISTED = 40
_FOUND_SLOTS = 2 * _MOST_LISTED
_ALIGNED = 0.000000000001
_CLEAR = 0.000001
_CEILING = 2.0 * HEIGHT + _CLEAR
_STRAY = 2.0  # farther than ten steps lead, unless what is near changes at once; then everything is searched


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


@called_kernel
def survey(levels, level, cells, x, y, found):
    """List the segments of some cells in ``found``: number, squared distance; return how many, or more than fit.

    Those of open doors are listed too.
    """
    count = 0
    for column in range(cells[0], cells[1] + 1):
        start = levels.segment_start[level, column * ROWS + cells[2]]
        stop = levels.segment_start[level, column * ROWS + cells[3] + 1]
        for i in range(start, stop):
            if count == _MOST_LISTED:
                return count + 1
            _, a, b = closest_on(levels.segments[i], x, y)
            found[2 * count], found[2 * count + 1] = i, (x - a) * (x - a) + (y - b) * (y - b)
            count += 1
    return count


@kernel
def keep_near(found, count, reach):
    """Leave only the segments of a list within ``reach``; return how many."""
    kept = 0
    for k in range(count):
        if found[2 * k + 1] <= reach * reach:
            found[2 * kept], found[2 * kept + 1] = found[2 * k], found[2 * k + 1]
            kept += 1
    return kept


@kernel
def nearest_surveyed(levels, states, index, found, count):
    """Return the nearest segment of a list by the distances in it and the rule of :func:`nearest`."""
    best, best_distance, best_door = -1, _FAR, False
    for k in range(count):
        i, distance = int(found[2 * k]), found[2 * k + 1]
        if distance <= best_distance and not is_absent(levels.segments[i], states, index):
            door = levels.segments[i]["kind"] >= DOOR_SHUT_AT_0
            if distance < best_distance or (door and not best_door):
                best, best_distance, best_door = i, distance, door
    return best


@called_kernel
def nearest_listed(levels, states, index, found, count, x, y):
    """Return (segment, a, b, squared distance) of the nearest in a list, by the rule of :func:`nearest`."""
    best, best_a, best_b, best_distance, best_door = -1, 0.0, 0.0, _FAR, False
    for k in range(count):
        i = int(found[2 * k])
        if is_absent(levels.segments[i], states, index):
            continue
        _, a, b = closest_on(levels.segments[i], x, y)
        dx, dy = x - a, y - b
        distance = dx * dx + dy * dy
        door = levels.segments[i]["kind"] >= DOOR_SHUT_AT_0
        if distance < best_distance or (distance == best_distance and door and not best_door):
            best, best_a, best_b, best_distance, best_door = i, a, b, distance, door
    return best, best_a, best_b, best_distance


@called_kernel
def crawl(levels, level, mover, states, index, slot):
    """Go along the surface for a frame; the beam turns to the normal."""
    if mover["timer"] > 0 and mover["order"] % _WAYS == _REST:
        if is_absent(levels.segments[levels.segment_start[level, 0] + mover["order"] // _WAYS], states, index):
            mover["timer"] = 0
    if mover["timer"] == 0:
        cells, found = search_cells(mover["x"], mover["y"]), local_f64(_FOUND_SLOTS)
        count = survey(levels, level, cells, mover["x"], mover["y"], found)
        listed = count <= _MOST_LISTED
        nearby = nearest_surveyed(levels, states, index, found, count) if listed else -1
        if not listed:
            nearby = nearest(levels, states, index, level, cells, mover["x"], mover["y"])[0]
        if nearby < 0:
            return
        _, a, b = closest_on(levels.segments[nearby], mover["x"], mover["y"])
        distance = (mover["x"] - a) * (mover["x"] - a) + (mover["y"] - b) * (mover["y"] - b)
        sense = 1.0 if states[index, slot] == CLOCKWISE else -1.0
        if listed:
            look_ahead(levels, level, mover, found, count, nearby, a, b, sense)
            count = keep_near(found, count, math.sqrt(distance) + 2.0 * _STRAY + _STEP)
        if mover["timer"] == 0:
            walk(levels, level, mover, states, index, slot, cells, found, count, a, b, sense)
    if mover["timer"] > 0:
        glide(levels, level, mover, states[index, slot] == CLOCKWISE)
        mover["timer"] -= 1
    turn_beam(mover)


@kernel
def walk(levels, level, mover, states, index, slot, cells, found, count, a, b, sense):
    """Take ten steps: along the surface, round outer corners, back at inner corners and doors."""
    x, y, angle = mover["x"], mover["y"], mover["ux"]
    x0, y0 = x, y
    ny, nx = sin_cos(angle)
    turned, turns, door = False, 0, -1  # the angle follows the normal when it is needed again
    for _ in range(_STEPS):
        x, y = x - ny * sense * _STEP, y + nx * sense * _STEP
        strayed = (x - x0) * (x - x0) + (y - y0) * (y - y0) > _STRAY * _STRAY
        if strayed or count > _MOST_LISTED:
            nearby, _, qx, qy, distance = nearest(levels, states, index, level, cells, x, y)
        else:
            nearby, qx, qy, distance = nearest_listed(levels, states, index, found, count, x, y)
        mx, my = x - qx, y - qy
        height = math.sqrt(distance)
        if height > 0.0:
            mx, my = mx / height, my / height
        if nx * mx + ny * my < _SAME or levels.segments[nearby]["kind"] >= DOOR_SHUT_AT_0:
            sense = -sense
            x, y = x - ny * sense * _STEP, y + nx * sense * _STEP
            turns += 1
            if levels.segments[nearby]["kind"] >= DOOR_SHUT_AT_0:
                door = nearby
            continue
        if math.sqrt((qx - a) * (qx - a) + (qy - b) * (qy - b)) < _SAME:
            if turned:
                angle, turned = atan2(ny, nx), False
            angle += sense * _CORNER_TURN
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
    if turns == _STEPS and count <= _MOST_LISTED:
        rest(levels, level, mover, found, count, door)


@kernel
def rest(levels, level, mover, found, count, door):
    """Let a laser that cannot move rest as long as the door is shut that stops it, or for good if there is no door.

    Other doors that shut would stop it as well; those around a laser between tiles could let it go when they open.
    """
    if door < 0:
        for k in range(count):
            if levels.segments[int(found[2 * k])]["kind"] >= DOOR_SHUT_AT_0:
                return
        door = int(found[0])
    mover["timer"], mover["order"] = _MOST_RESTS, _WAYS * (door - levels.segment_start[level, 0]) + _REST


@called_kernel
def look_ahead(levels, level, mover, found, count, nearby, a, b, sense):
    """Set for how many frames the laser can glide, and along what (``timer`` and ``order``); none: 0 frames."""
    segment = levels.segments[nearby]
    dx, dy = mover["x"] - a, mover["y"] - b
    height = math.sqrt(dx * dx + dy * dy)
    if segment["kind"] != STRAIGHT or abs(height - HEIGHT) > _CLEAR:
        return
    mx, my = dx / height, dy / height
    tx, ty = -my * sense, mx * sense  # the way it goes
    to_second = (segment["x2"] - a) * tx + (segment["y2"] - b) * ty
    to_first = (segment["x1"] - a) * tx + (segment["y1"] - b) * ty
    ahead, behind = (to_second, to_first) if to_second > to_first else (to_first, to_second)
    if ahead > _CLEAR and behind < -_CLEAR:
        way = _TO_SECOND if to_second > to_first else _TO_FIRST
        ahead = longest(levels, found, count, a, b, tx, ty, ahead)
        frames = clear_frames(levels, mover, found, count, nearby, a, b, mx, my, (ahead - _CLEAR) / _GLIDE)
    else:
        way = _ROUND_SECOND if abs(to_second) < abs(to_first) else _ROUND_FIRST
        frames = clear_frames_round(levels, mover, found, count, a, b, tx, ty)
    if frames < 1.0:
        return
    ny, nx = sin_cos(mover["ux"])
    if nx * mx + ny * my < 1.0 - _ALIGNED:
        return
    mover["timer"] = int(frames)
    mover["order"] = _WAYS * (nearby - levels.segment_start[level, 0]) + way


@kernel
def longest(levels, found, count, a, b, tx, ty, ahead):
    """Return how far a straight surface reaches from (a, b), if another segment goes on where one ends."""
    for k in range(count):
        segment = levels.segments[int(found[2 * k])]
        ux, uy, wx, wy = segment["x1"] - a, segment["y1"] - b, segment["x2"] - a, segment["y2"] - b
        if segment["kind"] == STRAIGHT and abs(ux * ty - uy * tx) <= _ALIGNED and abs(wx * ty - wy * tx) <= _ALIGNED:
            near, far = ux * tx + uy * ty, wx * tx + wy * ty
            if min_of(near, far) <= ahead + _CLEAR:
                ahead = -min_of(-ahead, min_of(-near, -far))
    return ahead


@kernel
def clear_frames(levels, mover, found, count, nearby, a, b, mx, my, frames):
    """Return for how many frames no other segment can come nearer than the one along which the laser glides.

    A straight segment that lies nowhere above the surface, or high above it everywhere, never does; any other is as
    far as it is, less the way.
    """
    frames = min_of(frames, _MOST_FRAMES)
    for k in range(count):
        i = int(found[2 * k])
        segment = levels.segments[i]
        if i == nearby:
            continue
        if segment["kind"] == STRAIGHT or segment["kind"] >= DOOR_SHUT_AT_0:
            above_1 = (segment["x1"] - a) * mx + (segment["y1"] - b) * my
            above_2 = (segment["x2"] - a) * mx + (segment["y2"] - b) * my
            floor = _ALIGNED if segment["kind"] == STRAIGHT else -_CLEAR  # a door on the surface stops the laser
            if (above_1 <= floor and above_2 <= floor) or (above_1 >= _CEILING and above_2 >= _CEILING):
                continue
        reach = HEIGHT + _CLEAR + frames * _GLIDE
        if found[2 * k + 1] < reach * reach:
            frames = (math.sqrt(found[2 * k + 1]) - HEIGHT - _CLEAR) / _GLIDE
            if frames < 1.0:
                return 0.0
    return frames


@kernel
def clear_frames_round(levels, mover, found, count, a, b, tx, ty):
    """Return for how many frames the corner (a, b) stays the nearest point of all segments that meet in it.

    So it is until the laser is above the inner part of one: not before its way along that segment, none of which is
    longer than that on the circle, has brought it there. Each search looks a whole step ahead.
    """
    frames = 1.0 * _MOST_FRAMES
    margin = _STEP + _CLEAR
    dx, dy = mover["x"] - a, mover["y"] - b
    for k in range(count):
        segment = levels.segments[int(found[2 * k])]
        _, qx, qy = closest_on(segment, mover["x"], mover["y"])
        if math.sqrt((qx - a) * (qx - a) + (qy - b) * (qy - b)) >= _SAME:
            frames = min_of(frames, (math.sqrt(found[2 * k + 1]) - HEIGHT - margin) / _GLIDE_ROUND)
        elif segment["kind"] != STRAIGHT:
            return 0.0
        else:
            ex, ey = segment["x2"] - a + (segment["x1"] - a), segment["y2"] - b + (segment["y1"] - b)
            length = math.sqrt(ex * ex + ey * ey)
            if ex * tx + ey * ty > 0.0:  # it comes nearer to the inner part
                frames = min_of(frames, (-(ex * dx + ey * dy) / length - margin) / _GLIDE_ROUND)
    return frames if frames > 0.0 else 0.0


@kernel
def min_of(a, b):
    """Return the smaller of two numbers as a float."""
    return 1.0 * a if a < b else 1.0 * b


@kernel
def glide(levels, level, mover, clockwise):
    """Take the ten steps of a frame at once, along a straight segment or round one of its ends; or rest."""
    way = mover["order"] % _WAYS
    if way == _REST:
        return
    segment = levels.segments[levels.segment_start[level, 0] + mover["order"] // _WAYS]
    x1, y1, x2, y2 = segment["x1"], segment["y1"], segment["x2"], segment["y2"]
    if way == _TO_SECOND or way == _TO_FIRST:
        ex, ey = x2 - x1, y2 - y1
        step = _GLIDE / math.sqrt(ex * ex + ey * ey)
        if way == _TO_FIRST:
            step = -step
        mover["x"] += step * ex
        mover["y"] += step * ey
        return
    a, b = (x2, y2) if way == _ROUND_SECOND else (x1, y1)
    mover["ux"] = wrap(mover["ux"] + (_GLIDE_TURN if clockwise else -_GLIDE_TURN))
    ny, nx = sin_cos(mover["ux"])
    mover["x"], mover["y"] = a + HEIGHT * nx, b + HEIGHT * ny


@kernel
def turn_beam(mover):
    """Turn the beam towards the normal of the surface, as fast as it can."""
    turn = wrap(mover["ux"] - mover["uy"])
    if turn > _BEAM_TURN:
        turn = _BEAM_TURN
    elif turn < -_BEAM_TURN:
        turn = -_BEAM_TURN
    mover["uy"] = wrap(mover["uy"] + turn)
