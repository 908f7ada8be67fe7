"""Queries about a place: cells and their entities, the lattice of obstacles, segments.

A cell's list holds its entities in the order in which they entered it, in which they act (physics 02, section 4.3).
Entities that never leave their cell are sorted in the level; a mover carries its cell and an order number that grows
with every entry, so it sorts behind earlier ones.

An edge of the half-cell lattice is an obstacle to entities that move if tiles contribute to it or a closed door lies on
it (physics 01, section 3.14; physics 02, section 4.8).

Searches over the segments around a place follow physics 01, sections 3.1, 3.5, 3.9 and 9.2. Cells are numbered column
by column, so the cells of one column of a rectangle are one run of segments, and visiting the runs from left to right
follows the order of the specification.
"""

import math

from nclone_env.game import COLUMNS, KINDS, ROWS, TRAP_DOOR, WALL_REACH, bits
from nclone_env.jit import called_kernel, kernel
from nclone_env.level import (
    ALL_EDGES,
    CONVEX,
    DOOR_CLOSED_AT_0,
    DOOR_EDGES,
    FIRST_HORIZONTAL,
    HORIZONTAL,
    MINE_ROWS,
    STRAIGHT,
    VERTICAL,
    WORD_EDGES,
)
from nclone_env.sim.geometry import (
    clamp_cell,
    closest_on_arc,
    closest_on_straight,
    greater,
    lesser,
    sweep_arc,
    sweep_straight,
    whole_24ths,
)
from nclone_env.sim.store import mover_of

_LAST_COLUMN, _LAST_ROW = 88, 50

_HAS_MOVER = bits(kind for kind in KINDS if kind.has_mover)
_FAR = 9999999.0
_FRONT_BONUS = 0.1  # subtracted from the squared distance of front faces (physics 01, section 3.5)


@kernel
def cell_of(x, y):
    """Return the clamped cell number of a position."""
    return clamp_cell(x, COLUMNS - 1) * ROWS + clamp_cell(y, ROWS - 1)


@kernel
def refresh(ninja, mover):
    """Register a mover in the cell of its position, behind the others there, if that cell has changed."""
    if not is_within(mover["cell"], mover["x"], mover["y"]):
        cell = cell_of(mover["x"], mover["y"])
        if cell != mover["cell"]:
            enter(ninja, mover, cell)


@kernel
def is_within(cell, x, y):
    """Return whether a position lies in a cell: the common case, decided without a division."""
    row = whole_24ths(int(y))
    return cell == whole_24ths(int(x)) * ROWS + row and 0 <= row < ROWS


@kernel
def enter(ninja, mover, cell):
    """Register a mover in a cell, behind the others there."""
    mover["cell"] = cell
    mover["order"] = ninja["next_order"]
    ninja["next_order"] += 1


@kernel
def half_cell(value):
    """Return the half-cell coordinate of a pixel coordinate, not clamped."""
    return int(math.floor(value / 12.0))


@kernel
def edge_bits(levels, level, kind, direction, line, first, last):
    """Return the bits of the edges ``first`` to ``last`` of a line of the lattice, the first in bit 0, at most 20.

    Args:
        kind: ``ALL_EDGES``, ``SOLID_EDGES`` or ``DOOR_EDGES`` of ``level.compile``.
        direction: of the line; all three coordinates are clamped to the lattice, on whose rim there are no edges.
    """
    if direction == VERTICAL:
        first, last = min(max(first, 0), _LAST_ROW), min(max(last, 0), _LAST_ROW)
        bits = levels.edges[level, kind, min(max(line, 0), _LAST_COLUMN)] >> first
    else:
        first, last = min(max(first, 0), _LAST_COLUMN), min(max(last, 0), _LAST_COLUMN)
        word = FIRST_HORIZONTAL + 2 * min(max(line, 0), _LAST_ROW)
        bits = levels.edges[level, kind, word + 1]
        if first < WORD_EDGES:
            bits = (levels.edges[level, kind, word] >> first) | (bits << (WORD_EDGES - first))
        else:
            bits = bits >> (first - WORD_EDGES)
    return bits & ((2 << (last - first)) - 1)


@called_kernel
def empty_line(levels, states, own, level, horizontal, along, first, last, direction):
    """Return whether nothing is in the way of a motion from a half cell to the next one.

    For horizontal motion ``along`` is a half-cell column, and the edges to its right (``direction`` 1) or left (-1) in
    rows ``first`` to ``last`` have to be free; for vertical motion the lower (1) or upper (-1) edges of row ``along``.
    """
    if direction != 1 and direction != -1:
        return False
    line = along + 1 if direction == 1 else along
    across = VERTICAL if horizontal else HORIZONTAL
    if edge_bits(levels, level, ALL_EDGES, across, line, first, last) != 0:
        return False
    if edge_bits(levels, level, DOOR_EDGES, across, line, first, last) == 0:
        return True
    return not has_closed_door(levels, states, own, level, across, line, first, last)


@called_kernel
def has_closed_door(levels, states, own, level, direction, line, first, last):
    """Return whether a door that is closed in a world lies on one of the edges ``first`` to ``last`` of a line."""
    first_door = levels.header[level]["first_door"]
    for number in range(first_door, first_door + levels.header[level]["door_count"]):
        door = levels.doors[number]
        column, row = 2 * door["column"], 2 * door["row"]
        if (door["vertical"] != 0) != (direction == VERTICAL):
            continue
        on_line, begin = (column + 2 == line, row) if direction == VERTICAL else (row + 2 == line, column)
        if on_line and first <= begin + 1 and begin <= last:
            if (states[own + door["owner"]] != 0) == (door["type"] == TRAP_DOOR):
                return True
    return False


@kernel
def is_absent(segment, states, own):
    """Return whether a segment belongs to a door that is open in a world."""
    kind = segment["kind"]
    if kind < DOOR_CLOSED_AT_0:
        return False
    return (states[own + segment["owner"]] == 0) != (kind == DOOR_CLOSED_AT_0)


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
        mover = mover_of(worlds, index, entity["mover"])
        return mover["x"], mover["y"]
    return float(entity["x"]), float(entity["y"])


@kernel
def cells_between(left, top, right, bottom):
    """Return (first column, last column, first row, last row) of the cells of a rectangle."""
    first_column, last_column = clamp_cell(left, COLUMNS - 1), clamp_cell(right, COLUMNS - 1)
    return first_column, last_column, clamp_cell(top, ROWS - 1), clamp_cell(bottom, ROWS - 1)


@kernel
def cells_within(x, y, reach):
    """Return the same of the cells of a square around (x, y)."""
    return cells_between(x - reach, y - reach, x + reach, y + reach)


@kernel
def first_near(levels, level, cell):
    """Return where the list of a cell begins in ``levels.near``; it ends with ``NO_ENTITY``."""
    header = levels.header[level]
    return header["first_near"] + header["near_unit"] * levels.near_start[level, cell]


@kernel
def mines_of(levels, level, column, first_row, last_row):
    """Return (first, end) of the mines of some cells of a column, and of others near these, as places in ``mines``."""
    first, block = levels.header[level]["first_mine"], column * (ROWS // MINE_ROWS)
    start = levels.mine_start
    return first + start[level, block + first_row // MINE_ROWS], first + start[level, block + last_row // MINE_ROWS + 1]


@kernel
def segments_of(levels, level, column, first_row, last_row):
    """Return (first, end) of the segments of some cells of a column, as places in ``levels.segments``."""
    first, cell = levels.header[level]["first_segment"], column * ROWS
    start = levels.segment_start
    return first + start[level, cell + first_row], first + start[level, cell + last_row + 1]


@kernel
def closest_point(levels, level, states, own, px, py, reach):
    """Return (facing, a, b): the closest point of the segments in the cells within ``reach``.

    Facing is 0 without a segment, 1 in front, -1 behind. There is no limit on the distance (physics 01, section 3.5).
    """
    first_column, last_column, first_row, last_row = cells_within(px, py, reach)
    best, facing, best_a, best_b = _FAR, 0, 0.0, 0.0
    for column in range(first_column, last_column + 1):
        start, stop = segments_of(levels, level, column, first_row, last_row)
        for i in range(start, stop):
            if is_absent(levels.segments[i], states, own):
                continue
            back, a, b = closest_on(levels.segments[i], px, py)
            dx, dy = px - a, py - b
            distance = dx * dx + dy * dy
            if not back:
                distance -= _FRONT_BONUS
            if distance < best:
                best, best_a, best_b = distance, a, b
                facing = -1 if back else 1
    return facing, best_a, best_b


@kernel
def is_beyond(segment, left, top, right, bottom):
    """Return whether a straight segment lies outside a rectangle: of a sweep within it, the exact result is then 1."""
    if segment["kind"] != STRAIGHT and segment["kind"] < DOOR_CLOSED_AT_0:
        return False
    x1, y1, x2, y2 = segment["x1"], segment["y1"], segment["x2"], segment["y2"]
    return max(x1, x2) < left or min(x1, x2) > right or max(y1, y2) < top or min(y1, y2) > bottom


@kernel
def sweep_tiles(levels, level, states, own, xs, ys, mx, my, radius):
    """Return the fraction of the displacement (mx, my) up to the first contact of a disc (physics 01, section 3.9)."""
    margin = radius + 1.0
    xe, ye = xs + mx, ys + my
    left, right = lesser(xs, xe) - margin, greater(xs, xe) + margin
    top, bottom = lesser(ys, ye) - margin, greater(ys, ye) + margin
    first_column, last_column, first_row, last_row = cells_between(left, top, right, bottom)
    fraction = 1.0
    for column in range(first_column, last_column + 1):
        start, stop = segments_of(levels, level, column, first_row, last_row)
        for i in range(start, stop):
            segment = levels.segments[i]
            if is_beyond(segment, left, top, right, bottom) or is_absent(segment, states, own):
                continue
            x1, y1, x2, y2 = segment["x1"], segment["y1"], segment["x2"], segment["y2"]
            if segment["kind"] == STRAIGHT or segment["kind"] >= DOOR_CLOSED_AT_0:
                f = sweep_straight(xs, ys, mx, my, x1, y1, x2, y2, radius)
            else:
                f = sweep_arc(xs, ys, mx, my, x1, y1, x2, y2, radius)
            fraction = lesser(fraction, f)
    return fraction


@kernel
def wall_normal(levels, level, states, own, px, py):
    """Return the horizontal normal, about -1 or 1, of the first wall within reach, else 0 (physics 01, section 9.2)."""
    first_column, last_column, first_row, last_row = cells_within(px, py, WALL_REACH)
    for column in range(first_column, last_column + 1):
        start, stop = segments_of(levels, level, column, first_row, last_row)
        for i in range(start, stop):
            if is_absent(levels.segments[i], states, own):
                continue
            _, a, b = closest_on(levels.segments[i], px, py)
            dx, dy = px - a, py - b
            if abs(dy) < 0.00001:
                distance = math.sqrt(dx * dx + dy * dy)
                if dx != 0.0 and 0.0 < distance <= WALL_REACH:
                    return dx / distance
    return 0.0
