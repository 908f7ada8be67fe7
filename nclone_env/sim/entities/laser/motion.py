"""The record of a laser, and whole frames of a surface laser in closed form (physics 03, section 6.4).

Each of the ten substeps of a frame searches for the nearest segment. As long as that is plainly the same straight
segment, the same quarter circle, or the same corner between straight segments, the ten are one motion: a displacement
or a rotation. :func:`plan_frames` determines for how many frames this holds, with every door taken as closed, so that
no event in the meantime is missed; :func:`advance_frame` then moves the laser without any search. Two further motions
repeat: a laser that turned round in all ten substeps at a closed door *rests* until the door opens; one between walls
so close that it turns round several times a frame, always at the same places, *bounces* between them for good. Results
differ from those of single substeps by rounding alone.

Measured benefit: levels with 25 to 42 surface lasers run at 280,000 to 310,000 frames/s; single substeps gave 60,000.

``timer`` of the mover is above 0 as long as a motion is known: the remaining frames, or 1 throughout while the laser
rests or bounces. ``order`` holds the course and the index of its segment in the level (:func:`set_motion`); of a
bouncing laser also the steps from one turn to the next and those since the last.
"""

import math

from nclone_env.game import ARC_RADIUS, KINDS, LASER_TURRET
from nclone_env.jit import called_kernel, kernel
from nclone_env.level import DOOR_CLOSED_AT_0, STRAIGHT
from nclone_env.sim.geometry import greater, lesser
from nclone_env.sim.query import closest_on, is_absent
from nclone_env.sim.trigonometry import rough_sin_cos, wrap

SPINNER, CLOCKWISE, COUNTERCLOCKWISE = KINDS[LASER_TURRET].states.values()
"""A turret that turns in place; surface lasers by the sense in which they crawl, as seen on the screen."""

NORMAL_ANGLE, BEAM_ANGLE = "a", "b"
"""Angles of the outward normal of the surface and of the beam, radians from -pi up to below pi, clockwise."""
FRAMES_LEFT, MOTION = "timer", "order"
"""Of a surface laser: remaining frames whose motion is known in closed form, and that motion."""

HEIGHT = 5.9  # above the surface
STEPS, STEP = 10, 0.1  # per frame, pixels (rule L3)
CORNER_TURN = 0.005524805665672641  # per step, radians
SAME = 0.0000001  # of two points, pixels

# Courses: towards an end of the segment, round that end, along the arc, at rest, bouncing (clockwise towards that end).
_TO_SECOND, _TO_FIRST, _ROUND_SECOND, _ROUND_FIRST, _ALONG_ARC, _AT_REST, _BOUNCE_SECOND, _BOUNCE_FIRST = range(8)
_COURSE_BITS, _PHASE_BITS = 3, 4  # of ``order``
_COURSE, _PHASE = (1 << _COURSE_BITS) - 1, (1 << _PHASE_BITS) - 1
_SEGMENT_SHIFT = 2 * _PHASE_BITS + _COURSE_BITS
_FRAME = STEPS * STEP  # length of a frame, pixels
# A frame's turn, radians, with its sine and cosine: ten times atan(STEP / radius), the radii of a laser outside and
# inside an arc being 29.9 and 18.1. Round a corner it turns as inside an arc.
_OUTSIDE = (0.033444691354714166, 0.033438456791426534, 0.999440778439327)
_INSIDE = _ROUND = (STEPS * CORNER_TURN, 0.05521995489884942, 0.998474214279452)
_FRAME_ROUND = HEIGHT * STEPS * CORNER_TURN  # length of a frame round a corner, pixels
_MOST_FRAMES = 6  # segments beyond the searched cells are 12 pixels away or more; only those below 5.9 matter
_ALIGNED, _CLEAR = 0.000000000001, 0.000001
_ROUGHLY = 0.00001  # a laser between two segments faces one of them; the normal of the other differs by much more
_CEILING = 2.0 * HEIGHT + _CLEAR
_MARGIN = STEP + _CLEAR  # each search looks a whole step ahead
_AWAY = 0.4  # above the sine of the largest angle by which a quarter circle turns the laser meanwhile


@called_kernel
def plan_frames(levels, level, mover, found, count, nearest, a, b, sense):
    """Set the course of the laser and the number of frames for which it holds; leave both unchanged if there is none.

    ``found`` lists ``count`` segments around it (:func:`nearest`), the nearest of which is closest at (a, b), pixels;
    ``sense`` is 1 clockwise, -1 counterclockwise.
    """
    segment = levels.segments[nearest]
    dx, dy = mover["x"] - a, mover["y"] - b
    height = math.sqrt(dx * dx + dy * dy)
    if segment["kind"] >= DOOR_CLOSED_AT_0 or abs(height - HEIGHT) > _CLEAR:
        return
    mx, my = dx / height, dy / height
    tx, ty = -my * sense, mx * sense  # its direction
    course = _ALONG_ARC
    if segment["kind"] == STRAIGHT:
        course, ahead = straight_course(segment, a, b, tx, ty)
    if course == _ALONG_ARC:
        frames = frames_along_arc(levels, mover, found, count, nearest, tx, ty)
    elif course == _TO_SECOND or course == _TO_FIRST:
        ahead = distance_to_end(levels, found, count, a, b, tx, ty, ahead)
        frames = frames_along_straight(levels, found, count, nearest, a, b, mx, my, sense, (ahead - _CLEAR) / _FRAME)
    else:
        frames = frames_round_corner(levels, mover, found, count, a, b, tx, ty)
    if frames < 1.0:
        return
    ny, nx = rough_sin_cos(mover[NORMAL_ANGLE])
    if nx * mx + ny * my > 1.0 - _ROUGHLY:
        set_motion(levels, level, mover, int(frames), nearest, 0, 0, course)


@kernel
def set_motion(levels, level, mover, frames, segment, gap, since, course):
    """Store the motion of a laser for the next frames."""
    number = segment - levels.header[level]["first_segment"]
    mover[FRAMES_LEFT] = frames
    mover[MOTION] = (((number << _PHASE_BITS | gap) << _PHASE_BITS | since) << _COURSE_BITS) | course


@kernel
def segment_of(levels, level, mover):
    """Return the segment of a laser's motion."""
    return levels.segments[motion_segment(levels, level, mover)]


@kernel
def motion_segment(levels, level, mover):
    """Return the number in ``levels.segments`` of the segment of a laser's motion."""
    return levels.header[level]["first_segment"] + (mover[MOTION] >> _SEGMENT_SHIFT)


@kernel
def turns_for_ever(mover):
    """Return whether a laser's motion turns for ever, with no step between two turns; no planned motion does."""
    order = mover[MOTION]
    gap = (order >> (_COURSE_BITS + _PHASE_BITS)) & _PHASE
    return mover[FRAMES_LEFT] > 0 and order & _COURSE >= _BOUNCE_SECOND and gap == 0


@kernel
def straight_course(segment, a, b, tx, ty):
    """Return the course from a point (a, b) of a straight segment, and the distance to the end in the direction."""
    to_second = (segment["x2"] - a) * tx + (segment["y2"] - b) * ty
    to_first = (segment["x1"] - a) * tx + (segment["y1"] - b) * ty
    ahead, behind = greater(to_second, to_first), lesser(to_second, to_first)
    if ahead > _CLEAR and behind < -_CLEAR:
        return (_TO_SECOND if to_second > to_first else _TO_FIRST), ahead
    return (_ROUND_SECOND if abs(to_second) < abs(to_first) else _ROUND_FIRST), 0.0


@kernel
def distance_to_end(levels, found, count, a, b, tx, ty, ahead):
    """Return the distance from (a, b) to the end of a straight surface, including segments that continue it."""
    for k in range(count):
        segment = levels.segments[int(found[2 * k])]
        ux, uy, wx, wy = segment["x1"] - a, segment["y1"] - b, segment["x2"] - a, segment["y2"] - b
        if segment["kind"] == STRAIGHT and abs(ux * ty - uy * tx) <= _ALIGNED and abs(wx * ty - wy * tx) <= _ALIGNED:
            near, far = ux * tx + uy * ty, wx * tx + wy * ty
            if lesser(near, far) <= ahead + _CLEAR:
                ahead = greater(ahead, greater(near, far))
    return ahead


@kernel
def frames_along_straight(levels, found, count, nearest, a, b, mx, my, sense, frames):
    """Return for how many frames no other segment can come nearer than the straight one along which the laser moves.

    A segment that lies nowhere above the surface, or everywhere high above it, or behind the laser, never does; any
    other comes nearer by at most the path length.
    """
    frames = lesser(frames, 1.0 * _MOST_FRAMES)
    for k in range(count):
        i, far = int(found[2 * k]), HEIGHT + _CLEAR + frames * _FRAME
        if i == nearest or found[2 * k + 1] >= far * far:
            continue
        lowest, highest = extent(levels.segments[i], a, b, mx, my)
        floor = -_CLEAR if levels.segments[i]["kind"] >= DOOR_CLOSED_AT_0 else _ALIGNED  # a door on it stops the laser
        if highest <= floor or lowest >= _CEILING:
            continue
        _, foremost = extent(levels.segments[i], a, b, -my * sense, mx * sense)
        if foremost > 0.0:
            frames = (math.sqrt(found[2 * k + 1]) - HEIGHT - _CLEAR) / _FRAME
            if frames < 1.0:
                return 0.0
    return frames


@kernel
def extent(segment, a, b, ux, uy):
    """Return the least and the largest coordinate of a segment along the unit vector (ux, uy), relative to (a, b).

    A quarter circle is taken as the triangle of its ends and the corner between them.
    """
    x1, y1, x2, y2 = 1.0 * segment["x1"], 1.0 * segment["y1"], 1.0 * segment["x2"], 1.0 * segment["y2"]
    curved = segment["kind"] != STRAIGHT and segment["kind"] < DOOR_CLOSED_AT_0
    if curved:
        x2, y2 = x1 + ARC_RADIUS * x2, y1 + ARC_RADIUS * y2
    along_1, along_2, across_1, across_2 = (x1 - a) * ux, (x2 - a) * ux, (y1 - b) * uy, (y2 - b) * uy
    first, second = along_1 + across_1, along_2 + across_2
    if curved:
        end_1, end_2 = along_2 + across_1, along_1 + across_2
        return lesser(second, lesser(end_1, end_2)), greater(second, greater(end_1, end_2))
    return lesser(first, second), greater(first, second)


@kernel
def frames_along_arc(levels, mover, found, count, nearest, tx, ty):
    """Return for how many frames the inner part of a quarter circle stays the nearest.

    A straight segment that begins where the quarter circle ends is no nearer than that end until the laser is above
    its inner part; another quarter of the same circle never is.
    """
    segment = levels.segments[nearest]
    cx, cy, h, q = segment["x1"], segment["y1"], segment["x2"], segment["y2"]
    frames = lesser(
        frames_in_quadrant((mover["x"] - cx) * h, tx * h), frames_in_quadrant((mover["y"] - cy) * q, ty * q)
    )
    for k in range(count):
        i, far = int(found[2 * k]), HEIGHT + _CLEAR + frames * _FRAME
        if i == nearest or found[2 * k + 1] >= far * far:
            continue
        other = levels.segments[i]
        if other["kind"] == STRAIGHT:
            frames = lesser(frames, frames_beside(other, found[2 * k + 1], mover, cx, cy, h, q, tx, ty))
        elif other["kind"] >= DOOR_CLOSED_AT_0 or other["x1"] != cx or other["y1"] != cy:
            frames = (math.sqrt(found[2 * k + 1]) - HEIGHT - _CLEAR) / _FRAME
        if frames < 1.0:
            return 0.0
    return frames


@kernel
def frames_in_quadrant(along, change):
    """Return for how many frames a coordinate along an axis of a quadrant stays positive, 0 if it is not."""
    if along <= _CLEAR:
        return 0.0
    if change >= 0.0:
        return 1.0 * _MOST_FRAMES
    return lesser(1.0 * _MOST_FRAMES, (along - _CLEAR) / _FRAME)


@kernel
def frames_beside(other, distance, mover, cx, cy, h, q, tx, ty):
    """Return for how many frames a straight segment cannot come nearer than the quarter circle (cx, cy, h, q)."""
    frames = (math.sqrt(distance) - HEIGHT - _CLEAR) / _FRAME
    _, a, b = closest_on(other, mover["x"], mover["y"])
    if abs(a - (cx + ARC_RADIUS * h)) + abs(b - cy) >= SAME and abs(a - cx) + abs(b - (cy + ARC_RADIUS * q)) >= SAME:
        return frames
    ex, ey = other["x2"] - a + (other["x1"] - a), other["y2"] - b + (other["y1"] - b)
    length = math.sqrt(ex * ex + ey * ey)
    if ex * tx + ey * ty < -_AWAY * length:
        return 1.0 * _MOST_FRAMES
    before = -(ex * (mover["x"] - a) + ey * (mover["y"] - b)) / length
    return greater(frames, (before - _MARGIN) / _FRAME)


@kernel
def is_near_circle(segment, x, y, radius):
    """Return whether a segment comes near the circle round (x, y) on which the laser moves."""
    _, a, b = closest_on(segment, x, y)
    reach = radius + HEIGHT + _CLEAR
    return (a - x) * (a - x) + (b - y) * (b - y) < reach * reach


@kernel
def frames_round_corner(levels, mover, found, count, a, b, tx, ty):
    """Return for how many frames the corner (a, b) stays the nearest point of all segments that meet in it.

    This holds until the laser is above the inner part of one of them, and its displacement along a segment is never
    longer than its path on the circle. Segments far from the corner are far from the whole circle.
    """
    frames = 1.0 * _MOST_FRAMES
    dx, dy = mover["x"] - a, mover["y"] - b
    for k in range(count):
        segment = levels.segments[int(found[2 * k])]
        _, qx, qy = closest_on(segment, mover["x"], mover["y"])
        if math.sqrt((qx - a) * (qx - a) + (qy - b) * (qy - b)) >= SAME:
            far = (math.sqrt(found[2 * k + 1]) - HEIGHT - _MARGIN) / _FRAME_ROUND
            if far < frames and is_near_circle(segment, a, b, HEIGHT):
                frames = far
        elif segment["kind"] != STRAIGHT:
            return 0.0
        else:
            ex, ey = segment["x2"] - a + (segment["x1"] - a), segment["y2"] - b + (segment["y1"] - b)
            length = math.sqrt(ex * ex + ey * ey)
            if ex * tx + ey * ty > 0.0:  # it comes nearer to the inner part
                frames = lesser(frames, (-(ex * dx + ey * dy) / length - _MARGIN) / _FRAME_ROUND)
    return frames


@kernel
def is_closed_form(mover):
    """Return whether the motion of a laser goes along or round a segment, for a number of frames."""
    return mover[MOTION] & _COURSE < _AT_REST


@kernel
def rest(levels, level, mover, door):
    """Let a laser rest as long as a door is closed."""
    set_motion(levels, level, mover, 1, door, 0, 0, _AT_REST)


@kernel
def rest_ends(levels, level, mover, states, own):
    """Return whether a laser rests at a door that is open now."""
    if mover[FRAMES_LEFT] == 0 or mover[MOTION] & _COURSE != _AT_REST:
        return False
    return is_absent(segment_of(levels, level, mover), states, own)


@kernel
def bounce(levels, level, mover, floor, gap, since, tx, ty):
    """Let a laser on a straight segment bounce: it turns round every ``gap`` steps and did so ``since`` steps ago.

    Clockwise it moves along the unit vector (tx, ty).
    """
    segment = levels.segments[floor]
    to_second = (segment["x2"] - segment["x1"]) * tx + (segment["y2"] - segment["y1"]) * ty > 0.0
    set_motion(levels, level, mover, 1, floor, gap, since, _BOUNCE_SECOND if to_second else _BOUNCE_FIRST)


@kernel
def advance_frame(levels, level, mover, states, own, slot):
    """Take the ten steps of a frame at once, or rest."""
    course = mover[MOTION] & _COURSE
    if course == _AT_REST:
        return
    clockwise, segment = states[own + slot] == CLOCKWISE, segment_of(levels, level, mover)
    if course == _BOUNCE_SECOND or course == _BOUNCE_FIRST:
        if bounce_frame(segment, mover, clockwise == (course == _BOUNCE_SECOND)) % 2 == 1:
            states[own + slot] = COUNTERCLOCKWISE if clockwise else CLOCKWISE
        return
    mover[FRAMES_LEFT] -= 1
    if course == _TO_SECOND or course == _TO_FIRST:
        move_along(segment, mover, _FRAME if course == _TO_SECOND else -_FRAME)
    elif course == _ALONG_ARC:
        move_along_arc(segment, mover, clockwise)
    elif course == _ROUND_SECOND:
        move_round(mover, segment["x2"], segment["y2"], _ROUND, clockwise)
    else:
        move_round(mover, segment["x1"], segment["y1"], _ROUND, clockwise)


@kernel
def move_along(segment, mover, length):
    """Move along a straight segment; a negative length leads towards its first end."""
    ex, ey = segment["x2"] - segment["x1"], segment["y2"] - segment["y1"]
    step = length / math.sqrt(ex * ex + ey * ey)
    mover["x"] += step * ex
    mover["y"] += step * ey


@kernel
def move_round(mover, cx, cy, turn, clockwise):
    """Move round a point by (angle, its sine, its cosine); the normal turns by the same angle."""
    angle, sine, cosine = turn
    if not clockwise:
        angle, sine = -angle, -sine
    dx, dy = mover["x"] - cx, mover["y"] - cy
    mover["x"], mover["y"] = cx + (dx * cosine - dy * sine), cy + (dx * sine + dy * cosine)
    mover[NORMAL_ANGLE] = wrap(mover[NORMAL_ANGLE] + angle)


@kernel
def move_along_arc(segment, mover, clockwise):
    """Move along a quarter circle; on the inside the sense round its centre is reversed."""
    cx, cy = segment["x1"], segment["y1"]
    dx, dy = mover["x"] - cx, mover["y"] - cy
    if dx * dx + dy * dy > ARC_RADIUS * ARC_RADIUS:
        move_round(mover, cx, cy, _OUTSIDE, clockwise)
    else:
        move_round(mover, cx, cy, _INSIDE, not clockwise)


@kernel
def bounce_frame(segment, mover, to_second):
    """Bounce for a frame, initially towards an end; return the number of turns.

    From one turn to the next are ``gap`` steps: one turns, the others lead from end to end.
    """
    order = mover[MOTION]
    since, gap = (order >> _COURSE_BITS) & _PHASE, (order >> (_COURSE_BITS + _PHASE_BITS)) & _PHASE
    turns, place = 0, since + STEPS
    while place >= gap:
        turns, place = turns + 1, place - gap
    mover[MOTION] = order + ((place - since) << _COURSE_BITS)
    steps = (place if turns % 2 == 0 else gap - 1 - place) - since
    if steps != 0:
        move_along(segment, mover, STEP * steps if to_second else -STEP * steps)
    return turns
