"""Searches over the segments around a place (physics 01, sections 3.1, 3.5, 3.9 and 9.2).

Cells are numbered column by column, so the cells of one column of a rectangle are one run of segments, and visiting
the runs from left to right follows the order of the specification.
"""

import math

from nclone_env.constants import COLUMNS, ROWS, WALL_REACH
from nclone_env.jit import kernel
from nclone_env.kinds import KINDS, bits
from nclone_env.level import CONVEX, DOOR_CLOSED_AT_0, STRAIGHT
from nclone_env.sim.geometry import (
    clamp_cell,
    closest_on_arc,
    closest_on_straight,
    greater,
    lesser,
    sweep_arc,
    sweep_straight,
)

_HAS_MOVER = bits(kind for kind in KINDS if kind.has_mover)
_FAR = 9999999.0
_FRONT_BONUS = 0.1  # subtracted from the squared distance of front faces (section 3.5)


@kernel
def is_absent(segment, states, index):
    """Return whether a segment belongs to a door that is open in a world."""
    kind = segment["kind"]
    if kind < DOOR_CLOSED_AT_0:
        return False
    return (states[index, segment["owner"]] == 0) != (kind == DOOR_CLOSED_AT_0)


@kernel
def closest_on(segment, px, py):
    """Return (back-facing, a, b) of one segment record; doors have no back."""
    kind = segment["kind"]
    x1, y1, x2, y2 = segment["x1"], segment["y1"], segment["x2"], segment["y2"]
    if kind == STRAIGHT:
        return closest_on_straight(x1, y1, x2, y2, px, py)
    if kind >= DOOR_CLOSED_AT_0:
        _, a, b = closest_on_straight(x1, y1, x2, y2, px, py)
        return False, a, b
    return closest_on_arc(x1, y1, x2, y2, kind == CONVEX, px, py)


@kernel
def place_of(worlds, index, entity):
    """Return the present position of an entity, pixels. A switch shares its exit's mover, but does not move."""
    if _HAS_MOVER >> int(entity["type"]) & 1:
        mover = worlds.movers[index, entity["mover"]]
        return mover["x"], mover["y"]
    return float(entity["x"]), float(entity["y"])


@kernel
def cells_within(x, y, reach):
    """Return (first column, last column, first row, last row) of the cells of a square around (x, y)."""
    first_column, last_column = clamp_cell(x - reach, COLUMNS - 1), clamp_cell(x + reach, COLUMNS - 1)
    return first_column, last_column, clamp_cell(y - reach, ROWS - 1), clamp_cell(y + reach, ROWS - 1)


@kernel
def closest_point(segment_start, segments, level, states, index, px, py, reach):
    """Return (facing, a, b): the closest point of the segments in the cells within ``reach``.

    Facing is 0 if there is no segment, 1 in front, -1 behind. There is no limit on the distance (section 3.5).
    """
    first_column, last_column, first_row, last_row = cells_within(px, py, reach)
    best, facing, best_a, best_b = _FAR, 0, 0.0, 0.0
    for column in range(first_column, last_column + 1):
        start = segment_start[level, column * ROWS + first_row]
        stop = segment_start[level, column * ROWS + last_row + 1]
        for i in range(start, stop):
            if is_absent(segments[i], states, index):
                continue
            back, a, b = closest_on(segments[i], px, py)
            dx, dy = px - a, py - b
            distance = dx * dx + dy * dy
            if not back:
                distance -= _FRONT_BONUS
            if distance < best:
                best, best_a, best_b = distance, a, b
                facing = -1 if back else 1
    return facing, best_a, best_b


@kernel
def sweep_tiles(segment_start, segments, level, states, index, xs, ys, mx, my, radius):
    """Return the fraction of the displacement (mx, my) that a disc can move up to the first contact (section 3.9)."""
    margin = radius + 1.0
    xe, ye = xs + mx, ys + my
    left, right = lesser(xs, xe) - margin, greater(xs, xe) + margin
    top, bottom = lesser(ys, ye) - margin, greater(ys, ye) + margin
    first_column, last_column = clamp_cell(left, COLUMNS - 1), clamp_cell(right, COLUMNS - 1)
    first_row, last_row = clamp_cell(top, ROWS - 1), clamp_cell(bottom, ROWS - 1)
    fraction = 1.0
    for column in range(first_column, last_column + 1):
        start = segment_start[level, column * ROWS + first_row]
        stop = segment_start[level, column * ROWS + last_row + 1]
        for i in range(start, stop):
            segment = segments[i]
            x1, y1, x2, y2 = segment["x1"], segment["y1"], segment["x2"], segment["y2"]
            if segment["kind"] == STRAIGHT or segment["kind"] >= DOOR_CLOSED_AT_0:
                # A segment outside the swept box is out of reach: its exact result is 1.
                if max(x1, x2) < left or min(x1, x2) > right or max(y1, y2) < top or min(y1, y2) > bottom:
                    continue
                if is_absent(segment, states, index):
                    continue
                f = sweep_straight(xs, ys, mx, my, x1, y1, x2, y2, radius)
            else:
                f = sweep_arc(xs, ys, mx, my, x1, y1, x2, y2, radius)
            fraction = lesser(fraction, f)
    return fraction


@kernel
def wall_normal(segment_start, segments, level, states, index, px, py):
    """Return the horizontal normal (about -1 or 1) of the first wall within reach, 0 if there is none (section 9.2)."""
    first_column, last_column, first_row, last_row = cells_within(px, py, WALL_REACH)
    for column in range(first_column, last_column + 1):
        start = segment_start[level, column * ROWS + first_row]
        stop = segment_start[level, column * ROWS + last_row + 1]
        for i in range(start, stop):
            if is_absent(segments[i], states, index):
                continue
            _, a, b = closest_on(segments[i], px, py)
            dx, dy = px - a, py - b
            if abs(dy) < 0.00001:
                distance = math.sqrt(dx * dx + dy * dy)
                if dx != 0.0 and 0.0 < distance <= WALL_REACH:
                    return dx / distance
    return 0.0
