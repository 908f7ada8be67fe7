"""Laser turrets (physics 03, section 6): spinners turn in place, surface lasers crawl along walls and closed doors.

Lasers are in no cell and never touched; ``laser.motion`` describes their record. A frame of a surface laser is ten
substeps, each with a search for the nearest segment. While the motion of whole frames is known in closed form,
``laser.motion`` advances the laser instead. For ten substeps :func:`nearest` scans some cells once and lists their
segments; :func:`nearest_listed` then searches that list alone. Both follow the one rule of :func:`is_nearer`.

Evidence: speed and order of test and turn of spinners by recordings; motion of surface lasers by one source and one
recording; the width of the beam, the rate at outer corners and that of the beam are open.
"""

import math

from nclone_env.game import ARC_RADIUS, FACING_X, FACING_Y
from nclone_env.jit import called_kernel, kernel, local_f64
from nclone_env.level import CONVEX, DOOR_CLOSED_AT_0, STRAIGHT
from nclone_env.sim.entities.laser.known import REACH, recall
from nclone_env.sim.entities.laser.motion import (
    BEAM_ANGLE,
    CLOCKWISE,
    CORNER_TURN,
    COUNTERCLOCKWISE,
    FRAMES_LEFT,
    HEIGHT,
    MOTION,
    NORMAL_ANGLE,
    SAME,
    SPINNER,
    STEP,
    STEPS,
    advance_frame,
    bounce,
    plan_frames,
    rest,
    rest_ends,
)
from nclone_env.sim.ninja import kill
from nclone_env.sim.query import cells_within, closest_on, is_absent, segments_of
from nclone_env.sim.sight import BEAM, is_beside, shot
from nclone_env.sim.store import states_of
from nclone_env.sim.trigonometry import COARSE, HALF_PI, PI, atan2, coarse_sine, sin_cos, wrap

MOST_LISTED = 40
FOUND_SLOTS = 2 * MOST_LISTED  # of a list: the index of a segment and its squared distance, alternately
_FAR = 9999999.0
_BEAM_TURN = 20.0 * CORNER_TURN  # per frame at most (rule L4)
_LOG_SLOTS = 3 * STEPS  # per step: position, and the index of a straight segment or one of
_TURN, _CURVED = -1, -2
_STRAY = 2.0  # pixels; ten steps only lead farther if a door changes meanwhile: then all the cells are searched
_SPIN = 0.010471975  # of a spinner, radians per frame
_SURFACE_LIMIT = 7.0  # rule L1
_CRAWL = 1.0  # of a surface laser, pixels per frame
_EIGHTHS_PER_RADIAN = 4.0 / math.pi
_ON_SURFACE, _TIE = 0.0000001, 0.000000001
_SLACK = 0.001  # far above the rounding error of a distance, pixels


@kernel
def is_nearer(distance, door, best_distance, best_door):
    """Return whether a segment replaces the best so far: among equals doors come first, then the earlier one."""
    return distance <= best_distance and (distance < best_distance or door > best_door)


@called_kernel
def nearest(levels, states, own, level, cells, x, y, found, most):
    """Find the nearest segment to (x, y) in some cells, and list the segments of those cells, ``FOUND_SLOTS`` float64.

    The segments of open doors are listed, but never the nearest. ``cells`` are first and last column, first and last
    row; of more than ``most`` segments, 0 to ``MOST_LISTED``, further ones are only counted.

    Returns:
        (segment, squared distance, number of segments in the cells); segment -1 if there is none.
    """
    best, best_distance, best_door, count = -1, _FAR, False, 0
    for column in range(cells[0], cells[1] + 1):
        start, stop = segments_of(levels, level, column, cells[2], cells[3])
        for i in range(start, stop):
            _, a, b = closest_on(levels.segments[i], x, y)
            dx, dy = x - a, y - b
            distance = dx * dx + dy * dy
            if count < most:
                found[2 * count], found[2 * count + 1] = i, distance
            count += 1
            door = levels.segments[i]["kind"] >= DOOR_CLOSED_AT_0
            if is_nearer(distance, door, best_distance, best_door) and not is_absent(levels.segments[i], states, own):
                best, best_distance, best_door = i, distance, door
    return best, best_distance, count


@called_kernel
def nearest_listed(levels, states, own, found, count, x, y):
    """Return (segment, a, b, squared distance) of the nearest segment in a list, as seen from (x, y)."""
    best, best_a, best_b, best_distance, best_door = -1, 0.0, 0.0, _FAR, False
    for k in range(count):
        i = int(found[2 * k])
        if is_absent(levels.segments[i], states, own):
            continue
        _, a, b = closest_on(levels.segments[i], x, y)
        dx, dy = x - a, y - b
        distance = dx * dx + dy * dy
        door = levels.segments[i]["kind"] >= DOOR_CLOSED_AT_0
        if is_nearer(distance, door, best_distance, best_door):
            best, best_a, best_b, best_distance, best_door = i, a, b, distance, door
    return best, best_a, best_b, best_distance


@kernel
def drop_distant(found, count, reach):
    """Keep only the segments of a list within ``reach``; return their number."""
    kept = 0
    for k in range(count):
        if found[2 * k + 1] <= reach * reach:
            found[2 * kept], found[2 * kept + 1] = found[2 * k], found[2 * k + 1]
            kept += 1
    return kept


@called_kernel
def crawl(levels, level, mover, states, own, slot):
    """Crawl along the surface for a frame; the beam turns to the normal."""
    if rest_ends(levels, level, mover, states, own):
        mover[FRAMES_LEFT] = 0
    if mover[FRAMES_LEFT] > 0:
        advance_frame(levels, level, mover, states, own, slot)
    elif not recall(levels, level, mover, states, own, slot):
        if not search_and_move(levels, level, mover, states, own, slot):
            return
    turn_beam(mover)


@kernel
def search_and_move(levels, level, mover, states, own, slot):
    """Search for surfaces and move for a frame, in closed form or by ten steps; return False if there are none."""
    x, y = mover["x"], mover["y"]
    cells, found = cells_within(x, y, REACH), local_f64(FOUND_SLOTS, 0)
    segment, distance, count = nearest(levels, states, own, level, cells, x, y, found, MOST_LISTED)
    if segment < 0:
        return False
    _, a, b = closest_on(levels.segments[segment], x, y)
    if count <= MOST_LISTED:
        sense = 1.0 if states[own + slot] == CLOCKWISE else -1.0
        plan_frames(levels, level, mover, found, count, segment, a, b, sense)
    if mover[FRAMES_LEFT] > 0:
        advance_frame(levels, level, mover, states, own, slot)
        return True
    if count <= MOST_LISTED:
        count = drop_distant(found, count, math.sqrt(distance) + 2.0 * _STRAY + STEP)
    take_steps(levels, level, mover, states, own, slot, cells, found, count, a, b)
    return True


@kernel
def take_steps(levels, level, mover, states, own, slot, cells, found, count, a, b):
    """Take ten steps: along the surface, round outer corners, back at inner corners and doors.

    (a, b) is the closest point of the surface before them. A ``count`` above ``MOST_LISTED`` means that the list is
    incomplete.
    """
    x, y, angle, sense = mover["x"], mover["y"], mover[NORMAL_ANGLE], 1.0 if states[own + slot] == CLOCKWISE else -1.0
    x0, y0 = x, y
    ny, nx = sin_cos(angle)
    turned, turns, door = False, 0, -1  # turned: the angle no longer matches (nx, ny); recomputed when next needed
    log = local_f64(_LOG_SLOTS)
    for step in range(STEPS):
        x, y = x - ny * sense * STEP, y + nx * sense * STEP
        strayed = (x - x0) * (x - x0) + (y - y0) * (y - y0) > _STRAY * _STRAY
        if strayed or count > MOST_LISTED:
            segment, distance, _ = nearest(levels, states, own, level, cells, x, y, found, 0)
            _, qx, qy = closest_on(levels.segments[segment], x, y)
        else:
            segment, qx, qy, distance = nearest_listed(levels, states, own, found, count, x, y)
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
    states[own + slot] = CLOCKWISE if sense > 0.0 else COUNTERCLOCKWISE
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
def start(levels, level, entity, mover, states, own, slot):
    """Choose between spinner and surface laser by the surroundings; place a surface laser (sections 6.2 and 6.4)."""
    x, y = mover["x"], mover["y"]
    facing_x, facing_y = FACING_X[entity["orientation"]], FACING_Y[entity["orientation"]]
    cells = cells_within(x, y, REACH)
    segment, distance, _ = nearest(levels, states, own, level, cells, x, y, local_f64(FOUND_SLOTS, 0), 0)
    nx, ny = facing_x, facing_y
    if segment >= 0 and (closest_on(levels.segments[segment], x, y)[0] or math.sqrt(distance) < _SURFACE_LIMIT):
        states[own + slot] = COUNTERCLOCKWISE if entity["mode"] == 1 else CLOCKWISE
        qx, qy, nx, ny = facing_surface(levels, states, own, level, cells, x, y, facing_x, facing_y, distance)
        mover["x"], mover["y"] = qx + HEIGHT * nx, qy + HEIGHT * ny
    else:
        states[own + slot] = SPINNER
    angle = wrap(atan2(ny, nx))
    mover[BEAM_ANGLE] = angle
    mover[NORMAL_ANGLE] = angle if states[own + slot] != SPINNER else 0.0
    mover[MOTION] = 0


@kernel
def facing_surface(levels, states, own, level, cells, x, y, facing_x, facing_y, distance):
    """Return (point, normal) of the segment at a squared distance whose normal is closest to the turret's facing."""
    best, qx, qy, nx, ny = -2.0, x, y, facing_x, facing_y
    for column in range(cells[0], cells[1] + 1):
        first, stop = segments_of(levels, level, column, cells[2], cells[3])
        for i in range(first, stop):
            segment = levels.segments[i]
            if is_absent(segment, states, own):
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
def may_hit(ninja, x, y, angle):
    """Return whether a beam from (x, y) at an angle may hit the ninja; of an angle that is not wrapped, always."""
    sine, cosine = coarse_sine(angle), coarse_sine(HALF_PI - abs(angle))
    slack = COARSE * (abs(ninja["x"] - x) + abs(ninja["y"] - y)) + _SLACK
    return is_beside(ninja, x, y, cosine, sine, slack) or not abs(angle) <= PI


@kernel
def think(levels, worlds, index, slot, entity, mover):
    """Kill by the beam in its present place, then turn or crawl."""
    ninja = worlds.ninjas[index]
    states, own = states_of(worlds, index)
    x, y, angle = mover["x"], mover["y"], mover[BEAM_ANGLE]
    if may_hit(ninja, x, y, angle):  # the exact angle matters only there
        sine, cosine = sin_cos(angle)
        if shot(levels, states, own, ninja, x, y, cosine, sine):
            kill(ninja)
    if states[own + slot] == SPINNER:
        mover[BEAM_ANGLE] = wrap(angle + (-_SPIN if entity["mode"] == 1 else _SPIN))
    else:
        crawl(levels, ninja["level"], mover, states, own, slot)


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
