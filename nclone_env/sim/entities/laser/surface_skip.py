"""Ten steps of a surface laser at once (physics 03, section 6.4).

Each of the ten steps of a frame searches for the nearest segment. As long as that is plainly the same straight
segment, the same quarter circle, or the same corner between straight segments, the ten are one motion: the laser
*glides*. What is ahead is looked at once for some frames, with every door taken as shut, so that nothing which can
happen in the meantime is missed. One that turned round in all ten steps at a shut door *rests* until that opens; one
between walls so close that it turns round several times a frame, always at the same places, *shuttles* for good.
Results differ from those of single steps by rounding alone.

``timer`` of the mover is above 0 while it does any of this: of a gliding laser it is the frames left. ``order`` holds
the number of the segment in its level and the way it goes (:func:`begin`); of a shuttling laser also the steps from
one turn to the next and those since the last.
"""

from __future__ import annotations

import math

from nclone_env.constants import ARC_RADIUS
from nclone_env.jit import called_kernel, kernel
from nclone_env.level.segments import DOOR_SHUT_AT_0
from nclone_env.level.tiles import STRAIGHT
from nclone_env.sim.geometry import greater, lesser
from nclone_env.sim.query import closest_on, is_absent
from nclone_env.sim.trigonometry import rough_sin_cos, wrap

CLOCKWISE, COUNTERCLOCKWISE = 1, 2  # states
HEIGHT = 5.9  # above the surface
STEPS, STEP = 10, 0.1  # per frame, pixels (rule L3)
CORNER_TURN = 0.005524805665672641  # per step, radians
SAME = 0.0000001  # of two points, pixels

# Ways: towards an end of the segment, round that end, along the arc, none, to and fro (clockwise towards that end).
_TO_SECOND, _TO_FIRST, _ROUND_SECOND, _ROUND_FIRST, _ALONG_ARC, _REST, _SHUTTLE_SECOND, _SHUTTLE_FIRST = range(8)
_WAY_BITS, _PHASE_BITS = 3, 4  # of ``order``
_WAY, _PHASE = (1 << _WAY_BITS) - 1, (1 << _PHASE_BITS) - 1
_GLIDE = STEPS * STEP  # in a frame
# A frame's turn, radians, with its sine and cosine: ten times atan(STEP / radius), the radii of a laser outside and
# inside an arc being 29.9 and 18.1. Round a corner it turns as inside an arc.
_OUTSIDE = (0.033444691354714166, 0.033438456791426534, 0.999440778439327)
_INSIDE = _ROUND = (STEPS * CORNER_TURN, 0.05521995489884942, 0.998474214279452)
_GLIDE_ROUND = HEIGHT * STEPS * CORNER_TURN
_MOST_FRAMES = 6  # what is not searched is at least 12 pixels away, and nothing below 5.9 matters
_ALIGNED, _CLEAR = 0.000000000001, 0.000001
_ROUGHLY = 0.00001  # a laser between two segments faces one of them: the other is off by much more
_CEILING = 2.0 * HEIGHT + _CLEAR
_MARGIN = STEP + _CLEAR  # each search looks a whole step ahead
_AWAY = 0.4  # more than the sine of the angle that a quarter circle turns the laser by meanwhile


@called_kernel
def look_ahead(levels, level, mover, found, count, nearby, a, b, sense):
    """Set for how many frames the laser can glide, and along what (``timer`` and ``order``); none: 0 frames.

    Args:
        levels: ``LevelArrays``.
        level: level that the world plays.
        mover: record of the laser.
        found: list of the segments around it, by ``survey``.
        count: how many.
        nearby: the nearest of them.
        a: closest point on that, pixels.
        b: closest point on that, pixels.
        sense: 1 clockwise, -1 counterclockwise.
    """
    segment = levels.segments[nearby]
    dx, dy = mover["x"] - a, mover["y"] - b
    height = math.sqrt(dx * dx + dy * dy)
    if segment["kind"] >= DOOR_SHUT_AT_0 or abs(height - HEIGHT) > _CLEAR:
        return
    mx, my = dx / height, dy / height
    tx, ty = -my * sense, mx * sense  # the way it goes
    way = _ALONG_ARC
    if segment["kind"] == STRAIGHT:
        way, ahead = straight_way(segment, a, b, tx, ty)
    if way == _ALONG_ARC:
        frames = frames_along_arc(levels, mover, found, count, nearby, tx, ty)
    elif way == _TO_SECOND or way == _TO_FIRST:
        ahead = longest(levels, found, count, a, b, tx, ty, ahead)
        frames = frames_along(levels, found, count, nearby, a, b, mx, my, sense, (ahead - _CLEAR) / _GLIDE)
    else:
        frames = frames_round(levels, mover, found, count, a, b, tx, ty)
    if frames < 1.0:
        return
    ny, nx = rough_sin_cos(mover["ux"])
    if nx * mx + ny * my > 1.0 - _ROUGHLY:
        begin(levels, level, mover, int(frames), nearby, 0, 0, way)


@kernel
def begin(levels, level, mover, frames, segment, gap, since, way):
    """Note what a laser will do."""
    number = segment - levels.segment_start[level, 0]
    mover["timer"] = frames
    mover["order"] = (((number << _PHASE_BITS | gap) << _PHASE_BITS | since) << _WAY_BITS) | way


@kernel
def segment_of(levels, level, mover):
    """Return the segment at which a laser does what it does."""
    return levels.segments[levels.segment_start[level, 0] + (mover["order"] >> (2 * _PHASE_BITS + _WAY_BITS))]


@kernel
def straight_way(segment, a, b, tx, ty):
    """Return the way from a point (a, b) of a straight segment, and how far it is to the end in the direction."""
    to_second = (segment["x2"] - a) * tx + (segment["y2"] - b) * ty
    to_first = (segment["x1"] - a) * tx + (segment["y1"] - b) * ty
    ahead, behind = greater(to_second, to_first), lesser(to_second, to_first)
    if ahead > _CLEAR and behind < -_CLEAR:
        return (_TO_SECOND if to_second > to_first else _TO_FIRST), ahead
    return (_ROUND_SECOND if abs(to_second) < abs(to_first) else _ROUND_FIRST), 0.0


@kernel
def longest(levels, found, count, a, b, tx, ty, ahead):
    """Return how far a straight surface reaches from (a, b), if another segment goes on where one ends."""
    for k in range(count):
        segment = levels.segments[int(found[2 * k])]
        ux, uy, wx, wy = segment["x1"] - a, segment["y1"] - b, segment["x2"] - a, segment["y2"] - b
        if segment["kind"] == STRAIGHT and abs(ux * ty - uy * tx) <= _ALIGNED and abs(wx * ty - wy * tx) <= _ALIGNED:
            near, far = ux * tx + uy * ty, wx * tx + wy * ty
            if lesser(near, far) <= ahead + _CLEAR:
                ahead = greater(ahead, greater(near, far))
    return ahead


@kernel
def frames_along(levels, found, count, nearby, a, b, mx, my, sense, frames):
    """Return for how many frames no other segment can come nearer than the straight one along which the laser glides.

    One that lies nowhere above the surface, or high above it everywhere, or behind the laser, never does; any other is
    as far as it is, less the way.
    """
    frames = lesser(frames, 1.0 * _MOST_FRAMES)
    for k in range(count):
        i, far = int(found[2 * k]), HEIGHT + _CLEAR + frames * _GLIDE
        if i == nearby or found[2 * k + 1] >= far * far:
            continue
        lowest, highest = extent(levels.segments[i], a, b, mx, my)
        floor = -_CLEAR if levels.segments[i]["kind"] >= DOOR_SHUT_AT_0 else _ALIGNED  # a door on it stops the laser
        if highest <= floor or lowest >= _CEILING:
            continue
        _, foremost = extent(levels.segments[i], a, b, -my * sense, mx * sense)
        if foremost > 0.0:
            frames = (math.sqrt(found[2 * k + 1]) - HEIGHT - _CLEAR) / _GLIDE
            if frames < 1.0:
                return 0.0
    return frames


@kernel
def extent(segment, a, b, ux, uy):
    """Return from where to where a segment reaches along the unit vector (ux, uy), seen from (a, b).

    A quarter circle is taken as the triangle of its ends and the corner between them.
    """
    x1, y1, x2, y2 = 1.0 * segment["x1"], 1.0 * segment["y1"], 1.0 * segment["x2"], 1.0 * segment["y2"]
    curved = segment["kind"] != STRAIGHT and segment["kind"] < DOOR_SHUT_AT_0
    if curved:
        x2, y2 = x1 + ARC_RADIUS * x2, y1 + ARC_RADIUS * y2
    along_1, along_2, across_1, across_2 = (x1 - a) * ux, (x2 - a) * ux, (y1 - b) * uy, (y2 - b) * uy
    first, second = along_1 + across_1, along_2 + across_2
    if curved:
        end_1, end_2 = along_2 + across_1, along_1 + across_2
        return lesser(second, lesser(end_1, end_2)), greater(second, greater(end_1, end_2))
    return lesser(first, second), greater(first, second)


@kernel
def frames_along_arc(levels, mover, found, count, nearby, tx, ty):
    """Return for how many frames the inner part of a quarter circle stays the nearest.

    A straight segment that begins where the quarter circle ends is no nearer than that end until the laser is above
    its inner part; another quarter of the same circle never is.
    """
    segment = levels.segments[nearby]
    cx, cy, h, q = segment["x1"], segment["y1"], segment["x2"], segment["y2"]
    frames = lesser(frames_inside((mover["x"] - cx) * h, tx * h), frames_inside((mover["y"] - cy) * q, ty * q))
    for k in range(count):
        i, far = int(found[2 * k]), HEIGHT + _CLEAR + frames * _GLIDE
        if i == nearby or found[2 * k + 1] >= far * far:
            continue
        other = levels.segments[i]
        if other["kind"] == STRAIGHT:
            frames = lesser(frames, frames_beside(other, found[2 * k + 1], mover, cx, cy, h, q, tx, ty))
        elif other["kind"] >= DOOR_SHUT_AT_0 or other["x1"] != cx or other["y1"] != cy:
            frames = (math.sqrt(found[2 * k + 1]) - HEIGHT - _CLEAR) / _GLIDE
        if frames < 1.0:
            return 0.0
    return frames


@kernel
def frames_inside(along, change):
    """Return for how many frames a coordinate in a quadrant stays positive, 0 if it is not."""
    if along <= _CLEAR:
        return 0.0
    if change >= 0.0:
        return 1.0 * _MOST_FRAMES
    return lesser(1.0 * _MOST_FRAMES, (along - _CLEAR) / _GLIDE)


@kernel
def frames_beside(other, distance, mover, cx, cy, h, q, tx, ty):
    """Return for how many frames a straight segment cannot come nearer than the quarter circle (cx, cy, h, q)."""
    frames = (math.sqrt(distance) - HEIGHT - _CLEAR) / _GLIDE
    _, a, b = closest_on(other, mover["x"], mover["y"])
    if abs(a - (cx + ARC_RADIUS * h)) + abs(b - cy) >= SAME and abs(a - cx) + abs(b - (cy + ARC_RADIUS * q)) >= SAME:
        return frames
    ex, ey = other["x2"] - a + (other["x1"] - a), other["y2"] - b + (other["y1"] - b)
    length = math.sqrt(ex * ex + ey * ey)
    if ex * tx + ey * ty < -_AWAY * length:
        return 1.0 * _MOST_FRAMES
    before = -(ex * (mover["x"] - a) + ey * (mover["y"] - b)) / length
    return greater(frames, (before - _MARGIN) / _GLIDE)


@kernel
def is_around(segment, x, y, radius):
    """Return whether a segment is anywhere near the laser on its way round (x, y) at a distance."""
    _, a, b = closest_on(segment, x, y)
    reach = radius + HEIGHT + _CLEAR
    return (a - x) * (a - x) + (b - y) * (b - y) < reach * reach


@kernel
def frames_round(levels, mover, found, count, a, b, tx, ty):
    """Return for how many frames the corner (a, b) stays the nearest point of all segments that meet in it.

    So it is until the laser is above the inner part of one: not before its way along that segment, none of which is
    longer than that on the circle, has brought it there. What is far from the corner is so from the whole circle.
    """
    frames = 1.0 * _MOST_FRAMES
    dx, dy = mover["x"] - a, mover["y"] - b
    for k in range(count):
        segment = levels.segments[int(found[2 * k])]
        _, qx, qy = closest_on(segment, mover["x"], mover["y"])
        if math.sqrt((qx - a) * (qx - a) + (qy - b) * (qy - b)) >= SAME:
            far = (math.sqrt(found[2 * k + 1]) - HEIGHT - _MARGIN) / _GLIDE_ROUND
            if far < frames and is_around(segment, a, b, HEIGHT):
                frames = far
        elif segment["kind"] != STRAIGHT:
            return 0.0
        else:
            ex, ey = segment["x2"] - a + (segment["x1"] - a), segment["y2"] - b + (segment["y1"] - b)
            length = math.sqrt(ex * ex + ey * ey)
            if ex * tx + ey * ty > 0.0:  # it comes nearer to the inner part
                frames = lesser(frames, (-(ex * dx + ey * dy) / length - _MARGIN) / _GLIDE_ROUND)
    return frames


@kernel
def rest(levels, level, mover, door):
    """Let a laser rest as long as a door is shut."""
    begin(levels, level, mover, 1, door, 0, 0, _REST)


@kernel
def rest_ends(levels, level, mover, states, index):
    """Return whether the door is open at which a laser rests."""
    if mover["timer"] == 0 or mover["order"] & _WAY != _REST:
        return False
    return is_absent(segment_of(levels, level, mover), states, index)


@kernel
def shuttle(levels, level, mover, floor, gap, since, tx, ty):
    """Let a laser on a straight segment shuttle that turns round every ``gap`` steps and did so ``since`` steps ago.

    Clockwise it goes along the unit vector (tx, ty).
    """
    segment = levels.segments[floor]
    to_second = (segment["x2"] - segment["x1"]) * tx + (segment["y2"] - segment["y1"]) * ty > 0.0
    begin(levels, level, mover, 1, floor, gap, since, _SHUTTLE_SECOND if to_second else _SHUTTLE_FIRST)


@kernel
def glide(levels, level, mover, states, index, slot):
    """Take the ten steps of a frame at once, or rest."""
    way = mover["order"] & _WAY
    if way == _REST:
        return
    clockwise, segment = states[index, slot] == CLOCKWISE, segment_of(levels, level, mover)
    if way == _SHUTTLE_SECOND or way == _SHUTTLE_FIRST:
        if go_to_and_fro(segment, mover, clockwise == (way == _SHUTTLE_SECOND)) % 2 == 1:
            states[index, slot] = COUNTERCLOCKWISE if clockwise else CLOCKWISE
        return
    mover["timer"] -= 1
    if way == _TO_SECOND or way == _TO_FIRST:
        go_along(segment, mover, _GLIDE if way == _TO_SECOND else -_GLIDE)
    elif way == _ALONG_ARC:
        go_along_arc(segment, mover, clockwise)
    elif way == _ROUND_SECOND:
        go_round(mover, segment["x2"], segment["y2"], _ROUND, clockwise)
    else:
        go_round(mover, segment["x1"], segment["y1"], _ROUND, clockwise)


@kernel
def go_along(segment, mover, length):
    """Go along a straight segment, a negative length towards its first end."""
    ex, ey = segment["x2"] - segment["x1"], segment["y2"] - segment["y1"]
    step = length / math.sqrt(ex * ex + ey * ey)
    mover["x"] += step * ex
    mover["y"] += step * ey


@kernel
def go_round(mover, cx, cy, turn, clockwise):
    """Go round a point by (angle, its sine, its cosine); so does the normal."""
    angle, sine, cosine = turn
    if not clockwise:
        angle, sine = -angle, -sine
    dx, dy = mover["x"] - cx, mover["y"] - cy
    mover["x"], mover["y"] = cx + (dx * cosine - dy * sine), cy + (dx * sine + dy * cosine)
    mover["ux"] = wrap(mover["ux"] + angle)


@kernel
def go_along_arc(segment, mover, clockwise):
    """Go along a quarter circle: inside it the other way round its centre."""
    cx, cy = segment["x1"], segment["y1"]
    dx, dy = mover["x"] - cx, mover["y"] - cy
    if dx * dx + dy * dy > ARC_RADIUS * ARC_RADIUS:
        go_round(mover, cx, cy, _OUTSIDE, clockwise)
    else:
        go_round(mover, cx, cy, _INSIDE, not clockwise)


@kernel
def go_to_and_fro(segment, mover, to_second):
    """Shuttle for a frame, at first towards an end; return how often the laser turned round.

    Of the ``gap`` steps from one turn to the next all but the one that turns lead from end to end.
    """
    order = mover["order"]
    since, gap = (order >> _WAY_BITS) & _PHASE, (order >> (_WAY_BITS + _PHASE_BITS)) & _PHASE
    turns, place = 0, since + STEPS
    while place >= gap:
        turns, place = turns + 1, place - gap
    mover["order"] = order + ((place - since) << _WAY_BITS)
    steps = (place if turns % 2 == 0 else gap - 1 - place) - since
    if steps != 0:
        go_along(segment, mover, STEP * steps if to_second else -STEP * steps)
    return turns
