"""Rays, sight and shots (physics 01, section 3.10; physics 03, sections 3.2 to 3.5, and section 14, rule S6).

Tiles and closed doors stop a ray, open doors do not; other entities never do. The sweep is that of a point, so a
segment does not stop a ray that starts on its inner part.

A ray walks from cell to cell and sweeps against the segments of each. The segment that hid the ninja from an entity
mostly hides it in the next frame too, so :func:`sees` tests this segment first. If it hides the ninja *plainly*
(:func:`hides`), the walk is left out: it would find this segment or a nearer one, because the hit keeps margins far
above rounding errors from the ends of the segment and from the borders of cells.
"""

import math

from nclone_env.game import ARC_RADIUS, CELL_SIZE, CELLS, COLUMNS, RADIUS, ROWS, WORLD_HEIGHT, WORLD_WIDTH
from nclone_env.jit import called_kernel, kernel
from nclone_env.level import DOOR_CLOSED_AT_0, STRAIGHT
from nclone_env.sim.geometry import disc_meets_segment, discs_overlap, greater, lesser, sweep_arc, sweep_straight
from nclone_env.sim.ninja import is_targetable
from nclone_env.sim.query import cells_between, is_absent, is_beyond, segments_of
from nclone_env.sim.store import states_of

RAY_LENGTH = 2000.0
NOTHING = -1.0
"""The length of a ray that leaves the cells and meets nothing."""

NO_BEAM, BEAM, SHOT_FIRED, AIM, ROCKET_TRAIL = -1, 0, 1, 2, 3
"""Emissions of an entity: none, a beam that kills in the next frame, a shot fired in one of the last ``SHOT_SHOWN``
frames, an aiming line, the trail of a rocket; the last three are harmless."""
SHOT_SHOWN = 4  # frames, including that of the shot: one agent step at the default frame_skip
TO_THE_WALL = -1.0
"""The length of a beam that ends at the first wall."""

_NEVER = 999999.0
_SLACK = 0.001  # far above the rounding error of a distance, pixels
_MOST_CELLS = COLUMNS + ROWS  # that a straight line can meet

# A plain no: by how much the ninja is behind the wall (its radius and more), the ends of the wall are beside the ray
# and the eye is off the wall (areas, each the product of the distance with the length of the other line), and how far
# inside an arc it is met: all far above the rounding error.
_BEHIND = RADIUS + 0.01
_BESIDE = 2.0
_INSIDE = 1.0
_LEAST_CHORD = 0.1  # half of the way through the circle, pixels


@kernel
def sweep_segment(segment, x, y, mx, my):
    """Return the fraction of the displacement (mx, my) that a point can move before it meets a segment, else 1."""
    x1, y1, x2, y2 = segment["x1"], segment["y1"], segment["x2"], segment["y2"]
    if segment["kind"] == STRAIGHT or segment["kind"] >= DOOR_CLOSED_AT_0:
        return sweep_straight(x, y, mx, my, x1, y1, x2, y2, 0.0)
    return sweep_arc(x, y, mx, my, x1, y1, x2, y2, 0.0)


@kernel
def misses(segment, x, y, dx, dy):
    """Return whether a ray along a unit vector passes so far from a segment that the sweep is 1.

    The corners of a hull of the segment are all on one side of the line: its ends, and the corner between those of an
    arc.
    """
    x1, y1, x2, y2 = segment["x1"] - x, segment["y1"] - y, segment["x2"] * 1.0, segment["y2"] * 1.0
    if segment["kind"] == STRAIGHT or segment["kind"] >= DOOR_CLOSED_AT_0:
        one, two = x1 * dy - y1 * dx, (x2 - x) * dy - (y2 - y) * dx
        return (one > _SLACK and two > _SLACK) or (one < -_SLACK and two < -_SLACK)
    ax, ay = x1 + ARC_RADIUS * x2, y1 + ARC_RADIUS * y2
    one, two, three = ax * dy - y1 * dx, x1 * dy - ay * dx, ax * dy - ay * dx
    return (one > _SLACK and two > _SLACK and three > _SLACK) or (one < -_SLACK and two < -_SLACK and three < -_SLACK)


@kernel
def ray_in_cell(levels, states, own, level, cell, x, y, dx, dy):
    """Return (fraction of ``RAY_LENGTH``, segment) of the nearest segment of a cell on a ray; (1, -1) without one."""
    fraction, met = 1.0, -1
    begin = levels.header[level]["first_segment"]
    for i in range(begin + levels.segment_start[level, cell], begin + levels.segment_start[level, cell + 1]):
        segment = levels.segments[i]
        if misses(segment, x, y, dx, dy) or is_absent(segment, states, own):
            continue
        f = sweep_segment(segment, x, y, RAY_LENGTH * dx, RAY_LENGTH * dy)
        if f < fraction:
            fraction, met = f, i
    return fraction, met


@kernel
def grid_steps(position, direction, cell):
    """Return (step of the cell, length between two crossings of its borders, length to the first) on one axis."""
    if direction > 0.0:
        return 1, CELL_SIZE / direction, ((cell + 1) * CELL_SIZE - position) / direction
    if direction < 0.0:
        return -1, -CELL_SIZE / direction, (cell * CELL_SIZE - position) / direction
    return 0, 0.0, _NEVER


@called_kernel
def ray(levels, states, own, level, x, y, dx, dy):
    """Return (length, segment) of a ray from (x, y) along a unit vector up to the first wall, pixels.

    The length is ``NOTHING``, the segment -1 if it meets none.
    """
    column, row = int(math.floor(x / CELL_SIZE)), int(math.floor(y / CELL_SIZE))
    step_x, spacing_x, next_x = grid_steps(x, dx, column)
    step_y, spacing_y, next_y = grid_steps(y, dy, row)
    for _ in range(_MOST_CELLS):
        cell = min(max(column, 0), COLUMNS - 1) * ROWS + min(max(row, 0), ROWS - 1)
        fraction, met = ray_in_cell(levels, states, own, level, cell, x, y, dx, dy)
        if fraction < 1.0:
            return RAY_LENGTH * fraction, met
        if next_x < next_y:
            column += step_x
            next_x += spacing_x
        else:
            row += step_y
            next_y += spacing_y
        if column < 0 or column >= COLUMNS or row < 0 or row >= ROWS:
            return NOTHING, -1
    return NOTHING, -1


@kernel
def hides(levels, states, own, level, number, x, y, dx, dy):
    """Return whether segment ``number`` plainly stops the view from (x, y) over the displacement (dx, dy).

    If it does, :func:`ray` finds this segment or a nearer one, or leaves the cells: the ninja cannot be seen. It needs
    neither a division nor, for a straight segment, a root.
    """
    if not (0.0 <= x < WORLD_WIDTH and 0.0 <= y < WORLD_HEIGHT):
        return False
    segment = levels.segments[number]
    kind = segment["kind"]
    if kind != STRAIGHT:
        if kind < DOOR_CLOSED_AT_0:
            return arc_hides(segment, x, y, dx, dy)
        if is_absent(segment, states, own):
            return False
    ax, ay, bx, by = segment["x1"] - x, segment["y1"] - y, segment["x2"] - x, segment["y2"] - y
    one, two = ax * dy - ay * dx, bx * dy - by * dx
    if not ((one > _BESIDE and two < -_BESIDE) or (one < -_BESIDE and two > _BESIDE)):
        return False
    ex, ey = bx - ax, by - ay
    off, whole = ax * ey - ay * ex, dx * ey - dy * ex  # of the eye and of the view, times the length of the segment
    if whole < 0.0:
        off, whole = -off, -whole
    behind = whole - off
    return off > _BESIDE and behind > 0.0 and behind * behind * (dx * dx + dy * dy) > _BEHIND * _BEHIND * whole * whole


@kernel
def arc_hides(segment, x, y, dx, dy):
    """Do as :func:`hides` for a quarter circle, which must be met inside and not be grazed."""
    px, py = x - segment["x1"], y - segment["y1"]
    square, s, outside = dx * dx + dy * dy, px * dx + py * dy, px * px + py * py - ARC_RADIUS * ARC_RADIUS
    root = s * s - square * outside
    if abs(outside) < _INSIDE or root < _LEAST_CHORD * _LEAST_CHORD * square or (outside > 0.0 and s >= 0.0):
        return False
    root = math.sqrt(root)
    t = (-s - root if outside > 0.0 else -s + root) / square
    if t <= 0.0 or t >= 1.0:
        return False
    inside_x, inside_y = (px + t * dx) * segment["x2"], (py + t * dy) * segment["y2"]
    behind = 1.0 - t
    return inside_x > _INSIDE and inside_y > _INSIDE and behind * behind * square > _BEHIND * _BEHIND


@kernel
def sees(levels, worlds, index, number, x, y):
    """Return whether mover ``number`` of a world sees a targetable ninja from (x, y) (physics 03, section 3.3)."""
    ninja = worlds.ninjas[index]
    states, own = states_of(worlds, index)
    if not is_targetable(ninja):
        return False
    level = ninja["level"]
    dx, dy = ninja["x"] - x, ninja["y"] - y
    header = levels.header[level]
    first = header["first_segment"]
    place = worlds.rooms[index]["movers"]["first"] + number
    hint = first + worlds.hints[place]
    if hint < first + levels.segment_start[level, CELLS] and header["has_plain_walls"] != 0:
        if hides(levels, states, own, level, hint, x, y, dx, dy):
            return False
    distance = math.sqrt(dx * dx + dy * dy)
    if distance < RADIUS:
        return True
    length, met = ray(levels, states, own, level, x, y, dx / distance, dy / distance)
    if length != NOTHING and length > distance - RADIUS:
        return True
    if met >= 0:
        worlds.hints[place] = met - first
    return False


@kernel
def is_beside(ninja, x, y, dx, dy, slack):
    """Return whether a beam of unlimited length may hit the ninja, given an error of ``slack`` pixels."""
    reach = RADIUS + slack
    px, py = ninja["x"] - x, ninja["y"] - y
    return abs(px * dy - py * dx) < reach and px * dx + py * dy > -reach


@kernel
def shot(levels, states, own, ninja, x, y, dx, dy):
    """Return whether a beam from (x, y) along the unit vector (dx, dy) hits the ninja (physics 03, section 3.4)."""
    if not is_targetable(ninja) or not is_beside(ninja, x, y, dx, dy, _SLACK):
        return False
    length, _ = ray(levels, states, own, ninja["level"], x, y, dx, dy)
    if length == NOTHING:
        length = RAY_LENGTH
    if length == 0.0:
        return discs_overlap(ninja["x"], ninja["y"], x, y, RADIUS)
    return disc_meets_segment(ninja["x"], ninja["y"], RADIUS, x, y, x + length * dx, y + length * dy)


@kernel
def step_meets_wall(levels, states, own, level, x, y, mx, my):
    """Return whether a point meets a segment within one step (mx, my), by the cells of the step's rectangle.

    This is the sweep of rockets (physics 03, section 8.2, rules R2 and R3).
    """
    left, right, top, bottom = lesser(x, x + mx), greater(x, x + mx), lesser(y, y + my), greater(y, y + my)
    first_column, last_column, first_row, last_row = cells_between(left, top, right, bottom)
    for column in range(first_column, last_column + 1):
        start, stop = segments_of(levels, level, column, first_row, last_row)
        for i in range(start, stop):
            segment = levels.segments[i]
            if is_beyond(segment, left - 1.0, top - 1.0, right + 1.0, bottom + 1.0) or is_absent(segment, states, own):
                continue
            if sweep_segment(segment, x, y, mx, my) < 1.0:
                return True
    return False
