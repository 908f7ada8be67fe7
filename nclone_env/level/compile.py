"""Level to ``LevelArrays``: everything about a level that never changes during play, as arrays.

Tiles and doors become segments and the lattice of moving entities (physics 01, sections 2.5 to 2.8; 02, 6.5), object
records the table of entities and its order by cell (physics 02, sections 2 to 4).
"""

import math
from typing import Any, NamedTuple

import numpy as np

from nclone_env.game import (
    CELL_SIZE,
    CELLS,
    COLUMNS,
    DOOR_SWITCHES,
    EVIL_DELAY,
    EVIL_NINJA,
    EXIT,
    EXIT_SWITCH,
    FACING_X,
    FACING_Y,
    GOLD,
    KINDS,
    LAUNCH_PAD,
    MAP_UNIT,
    MAX_TILE,
    ONE_WAY,
    RADIUS,
    ROWS,
    SWITCH_OF,
    TRAP_DOOR,
    bits,
)
from nclone_env.jit import kernel, specialised_at_first
from nclone_env.level.level import MODES, ORIENTATIONS, Level
from nclone_env.level.routes.distance import objective_fields
from nclone_env.level.routes.fields import FIELDS_LAYOUT, Fields
from nclone_env.level.tiles import CURVE_KIND, CURVE_SHAPE, EDGE_SIGNS, GRID_EDGES, STRAIGHT

SEGMENT = np.dtype(
    [("x1", "i2"), ("y1", "i2"), ("x2", "i2"), ("y2", "i2"), ("kind", "i2"), ("owner", "i2")], align=True
)
"""A straight segment from (x1, y1) to (x2, y2), or an arc: centre (x1, y1), quadrant signs (x2, y2). Pixels.

``owner`` is the entity of a door, else ``NO_OWNER``."""

NO_OWNER = NO_MOVER = NO_ENTITY = -1
DOOR_CLOSED_AT_0, DOOR_CLOSED_AT_1 = 3, 4
"""Kinds of door segments: present while the state byte of the owner is 0, or while it is not."""

DOOR = np.dtype(
    [("x", "i2"), ("y", "i2"), ("owner", "i2"), ("column", "i2"), ("row", "i2"), ("vertical", "u1"), ("type", "u1")],
    align=True,
)
"""Middle of a door's segment (pixels), its entity, the cell that holds the segment, its direction and entity type."""

HORIZONTAL, VERTICAL = 0, 1
ALL_EDGES, SOLID_EDGES, DOOR_EDGES = 0, 1, 2
"""Kinds of lattice edges: all of tiles, those that are solid on both halves, and those on which doors lie."""
FIRST_HORIZONTAL, WORD_EDGES = 2 * COLUMNS + 1, COLUMNS
"""The words of a kind: a vertical line each, rows from bit 0 on; then two for a horizontal line, half of the columns
each."""
ENTITY = np.dtype(
    [(name, "i2") for name in ("x", "y", "mover", "order")]
    + [(name, "u1") for name in ("type", "initial", "orientation", "mode")],
    align=True,
)
"""Position in pixels (of a door: of its trigger), number of the mover record (of a switch: its exit's; -1 if
there is none), order of creation, type, state byte at the start of an episode, orientation and mode of the record."""

LEVEL_HEADER = np.dtype(
    [("spawn_x", "f8"), ("spawn_y", "f8"), ("start_distance", "f8")]
    + [(name, "i4") for name in ("first_entity", "first_mover", "first_door", "first_run", "first_field")]
    + [(name, "i4") for name in ("first_segment", "first_mine", "first_near", "near_unit")]
    + [(name, "i4") for name in ("entity_count", "mover_count", "door_count", "run_count", "exit_count", "gold_count")]
    + [(name, "i4") for name in ("first_exit", "has_platforms", "has_blocks", "has_plain_walls")]
    + [(name, "i4") for name in ("first_landmark", "landmark_count", "trail_count")],
    align=True,
)
"""One level of a set: start of the ninja, length of its path to the exit (pixels), and its rows of the packed arrays.

``first_entity``, ``first_mover``, ``first_door``, ``first_run``, ``first_field``, ``first_segment``, ``first_mine`` and
``first_near`` are indices of the packed arrays; ``near_unit``, the unit of ``near_start``;
``trail_count``, the past positions of the ninja that the last evil ninja needs (physics 03, section 12.3);
``first_exit`` is an index of the level's own entity table; ``has_platforms`` and ``has_blocks``, whether there are
one-way platforms and solid entities that move; ``has_plain_walls``, whether no door sticks out of the cell that lists
it (``sim.sight``). Packed levels have no landmarks (``level.level_set``).
"""

RUN = np.dtype([("type", "i2"), ("first", "i2"), ("stop", "i2"), ("shift", "i2")], align=True)
"""Consecutive entities of a type that moves or thinks: ``first`` to ``stop - 1`` in the entity table of the level.

Entities and mover records of a type are both consecutive: the mover record of entity ``slot`` is ``slot + shift``.
Types without mover records ignore ``shift``."""

LASER_FRAME = np.dtype(
    [(name, "f8") for name in ("x", "y", "angle", "next_x", "next_y", "next_angle")]
    + [("motion", "i4"), ("frames", "i2"), ("sense", "u1"), ("next_sense", "u1"), ("has_door", "?")],
    align=True,
)
"""A frame of a surface laser, before and after it (``sim.entities.laser.known``); ``sense`` 0: an empty entry.

One with a door in reach holds while the doors there are as at the start of the level."""


class LevelArrays(NamedTuple):
    """L packed levels, every array read-only.

    Attributes:
        header: (L,) ``LEVEL_HEADER``.
        tiles: (L, 25, 44) uint8.
        segment_start: (L, 1101) uint16; positions in the level's ``segments`` by cell ``column * 25 + row``.
        segments: ``SEGMENT`` records of all levels.
        mine_start: (L, 221) uint16; positions in the level's ``mines`` by block of ``MINE_ROWS`` cells of a column.
        mines: int16; entities of the level that can kill and never move, by cell.
        near_start: (L, 1100) uint16; positions in the level's ``near`` by cell, in units of ``near_unit``.
        near: int16; lists of the entities that never change their cell and can act on a ninja in a cell, in the order
            in which they are visited, each with ``NO_ENTITY`` behind it. The first is empty; neighbours share lists.
        entities: ``ENTITY`` records of all levels.
        mover_slots: int16; entity of each mover record of a level.
        doors: ``DOOR`` records of all levels.
        runs: ``RUN`` records of all levels, types ascending within a level.
        edges: (L, 3, 191) int64; the lattice that moving entities collide with, a bit an edge
            (``FIRST_HORIZONTAL``).
        laser_start: (L + 1,) int32; where the table of each level begins in ``laser_frames``.
        laser_frames: ``LASER_FRAME`` hash tables of all levels, empty ones at first: the simulator fills them in
            (``LevelSet.replace``). Play is the same with any part of them.
    """

    header: np.ndarray
    tiles: np.ndarray
    segment_start: np.ndarray
    segments: np.ndarray
    mine_start: np.ndarray
    mines: np.ndarray
    near_start: np.ndarray
    near: np.ndarray
    entities: np.ndarray
    mover_slots: np.ndarray
    doors: np.ndarray
    runs: np.ndarray
    edges: np.ndarray
    laser_start: np.ndarray
    laser_frames: np.ndarray


# fmt: off
_DTYPES: tuple[Any, ...] = (
    LEVEL_HEADER, "u1", "u2", SEGMENT, "u2", "i2", "u2", "i2", ENTITY, "i2", DOOR, RUN, "i8", "i4", LASER_FRAME,
)
# fmt: on
ARRAYS_LAYOUT = dict(zip(LevelArrays._fields, map(np.dtype, _DTYPES), strict=True)) | FIELDS_LAYOUT
"""The dtypes of the ``LevelArrays`` and of the distance fields."""

_MOVING = bits(kind for kind in KINDS if kind.has_mover)
_ACTING = bits(kind for kind in KINDS if kind.acts)
_DOORS = bits(kind for kind in KINDS if kind.is_door)
_WITH_SWITCH = bits(KINDS[door] for door in DOOR_SWITCHES)
_MINES = bits(kind for kind in KINDS if kind.deadly and not kind.has_mover)
_SOLID_MOVERS = bits(kind for kind in KINDS if kind.solid and kind.has_mover)
_CREATING = bits(kind for kind in KINDS if kind.has_entity and kind.number not in SWITCH_OF.values())
"""Kinds whose records create entities; an exit switch comes with its exit (physics 02, section 2.5)."""
_NUM_KINDS = len(KINDS)
_INITIAL_STATES = np.array([kind.initial for kind in KINDS], dtype=np.uint8)
_REACHES = np.array([(RADIUS + max(kind.radii) + 0.01) ** 2 for kind in KINDS])
"""Square of the distance within which an entity can act on the ninja, pixels, by kind."""
_SOLID = 2
NEIGHBOURS = 9
"""Cells that list an entity among those near them, at most."""
MINE_ROWS = 5
"""Cells of a column that share a start of their mines."""
_MOST_STARTS = 1 << 16
_LARGEST_UNIT = 8  # of the starts of lists of the largest levels
_LINES, _PARTS = (2 * ROWS, 2 * COLUMNS), (2 * COLUMNS, 2 * ROWS)
"""The last line of a lattice of half-edges, and the half-edges of each, for flat and for upright ones."""
MOST_SEGMENTS = CELLS + sum((lines + 1) * parts for lines, parts in zip(_LINES, _PARTS)) + 1
"""One curve a cell, all half-edges and one to spare; doors come in addition."""


@kernel
def write_level(tiles, records, out):
    """Compute the arrays of a level; alone in its set.

    Args:
        tiles: (23, 42) uint8.
        records: (N, 5) uint8.
        out: zeroed ``LevelArrays`` of :func:`level_room`; those of lasers stay as they are.
    """
    _write_tiles(tiles, out.tiles)
    _write_entities(records, out)
    _write_doors(records, out)
    _write_members(out)
    _write_near(out)
    _write_mines(out)
    _write_segments(out)
    _write_edges(out)
    _write_header(records, out)


@kernel
def _write_tiles(tiles, out):
    """Put a ring of full blocks around the tiles; numbers above 37 become 0."""
    for row in range(ROWS):
        for column in range(COLUMNS):
            out[0, row, column] = 1
            if 0 < row < ROWS - 1 and 0 < column < COLUMNS - 1:
                tile = tiles[row - 1, column - 1]
                out[0, row, column] = 0 if tile > MAX_TILE else tile


@kernel
def _creates(kind):
    """Return the number of entities that a record of a type creates."""
    if kind >= _NUM_KINDS or not _CREATING >> int(kind) & 1:
        return 0
    return 2 if kind == EXIT else 1


@kernel
def _write_entities(records, out):
    """Write the entities by type, those of a type in order of creation, an exit before its switch; and their movers.

    ``near`` gets the entities in order of creation.
    """
    header = out.header[0]
    exits = 0
    for row in range(records.shape[0]):
        exits += records[row, 0] == EXIT
    slot, mover = 0, 0
    for kind in range(_NUM_KINDS):  # physics 02, section 4.2
        order, first = 0, slot
        for row in range(records.shape[0]):
            if records[row, 0] == kind and _creates(kind):
                place = row + (_WITH_SWITCH >> kind & 1)  # a door lies at its trigger
                _write_entity(out, slot, records, row, place, kind, order)
                if _MOVING >> kind & 1:
                    out.entities[slot]["mover"], out.mover_slots[mover] = mover, slot
                    mover += 1
                slot += 1
                if kind == EXIT:
                    _write_entity(out, slot, records, row, row + exits, EXIT_SWITCH, order + 1)
                    out.entities[slot]["mover"] = mover - 1
                    slot += 1
            order += _creates(records[row, 0])
        if slot > first and _ACTING >> kind & 1:
            run = out.runs[header["run_count"]]
            run["type"], run["first"], run["stop"] = kind, first, slot
            run["shift"] = out.entities[first]["mover"] - first
            header["run_count"] += 1
    header["entity_count"], header["mover_count"], header["exit_count"] = slot, mover, exits


@kernel
def _write_entity(out, slot, records, row, place, kind, order):
    """Write an entity of the record in a row, without its mover; it lies where the record in row ``place`` does."""
    entity = out.entities[slot]
    entity["x"], entity["y"] = 6 * int(records[place, 1]), 6 * int(records[place, 2])
    entity["mover"], entity["order"] = NO_MOVER, order
    entity["type"], entity["initial"] = kind, _INITIAL_STATES[kind]
    entity["orientation"], entity["mode"] = 0, 0
    if kind != EXIT_SWITCH:
        entity["orientation"], entity["mode"] = records[row, 3] % ORIENTATIONS[kind], records[row, 4] % MODES[kind]
    out.near[order] = slot


@kernel
def _write_doors(records, out):
    """Write the doors in order of creation (physics 02, section 6.5)."""
    header = out.header[0]
    order, count = 0, 0
    for row in range(records.shape[0]):
        kind = int(records[row, 0])
        if kind < _NUM_KINDS and _DOORS >> kind & 1:
            x, y, orientation = 6 * int(records[row, 1]), 6 * int(records[row, 2]), records[row, 3] % ORIENTATIONS[kind]
            door = out.doors[count]
            door["x"], door["y"], door["owner"] = x, y, out.near[order]
            door["column"] = clamped(x - 12 * FACING_X[orientation], COLUMNS)
            door["row"] = clamped(y - 12 * FACING_Y[orientation], ROWS)
            door["vertical"], door["type"] = orientation == 0 or orientation == 4, kind
            count += 1
        order += _creates(kind)
    header["door_count"] = count


@kernel
def clamped(position, cells):
    """Return the column or row of a position, of so many (physics 02, section 4.3)."""
    return max(min(int(math.floor(position / CELL_SIZE)), cells - 1), 0)


@kernel
def _write_members(out):
    """Sort the entities that never change their cell by cell, those of a cell in order of creation.

    ``mines`` and ``segment_start`` hold them until their own contents are written.
    """
    start = out.segment_start
    for placing in range(2):
        for order in range(out.header[0]["entity_count"]):
            slot = out.near[order]
            entity = out.entities[slot]
            if not _MOVING >> int(entity["type"]) & 1:
                cell = clamped(entity["x"], COLUMNS) * ROWS + clamped(entity["y"], ROWS)
                if placing:
                    out.mines[start[0, cell]] = slot
                start[0, cell + 1 - placing] += 1
        _next_pass(start, placing)


@kernel
def _next_pass(start, placing):
    """Make starts of cells of their counts, which are one place behind; then of the ends of cells, again starts."""
    if placing:
        for cell in range(CELLS, 0, -1):
            start[0, cell] = start[0, cell - 1]
        start[0, 0] = 0
    else:
        for cell in range(CELLS):
            start[0, cell + 1] += start[0, cell]


@kernel
def _write_near(out):
    """Write, by cell, the entities that can act on a ninja in it, in the order of visits (physics 02, section 4.4).

    They are among those of the nine cells around it. A visit may move the ninja: a platform counts in all nine cells,
    as does everything around a launch pad.
    """
    unit, count = 0, 0
    while unit == 0 or count >= unit * _MOST_STARTS:
        unit = 1 if unit == 0 else 2 * unit
        count = _write_lists(out, unit)
    out.header[0]["near_unit"] = unit


@kernel
def _write_lists(out, unit):
    """Write the lists of entities near each cell, which begin at multiples of a unit; return where they end.

    If that is beyond what a start can be, some cells have none.
    """
    near, start = out.near, out.near_start
    near[0], count = NO_ENTITY, unit
    for column in range(COLUMNS):
        for row in range(ROWS):
            end, cell, first = _write_list(out, column, row, count), column * ROWS + row, count
            if end == count:
                first = 0
            elif row > 0 and _is_same(near, unit * int(start[0, cell - 1]), count):
                first = unit * int(start[0, cell - 1])
            elif column > 0 and _is_same(near, unit * int(start[0, cell - ROWS]), count):
                first = unit * int(start[0, cell - ROWS])
            else:
                count = (end // unit + 1) * unit
            if first >= unit * _MOST_STARTS:
                return count
            start[0, cell] = first // unit
    return count


@kernel
def _write_list(out, column, row, count):
    """Write the entities near a cell behind ``count`` places of ``near``; return the place behind the last."""
    has_pad = False
    for finding in range(2):
        for across in range(max(column - 1, 0), min(column + 2, COLUMNS)):
            for down in range(max(row - 1, 0), min(row + 2, ROWS)):
                cell = across * ROWS + down
                for place in range(out.segment_start[0, cell], out.segment_start[0, cell + 1]):
                    entity = out.entities[out.mines[place]]
                    if not finding:
                        has_pad |= entity["type"] == LAUNCH_PAD
                    elif has_pad or entity["type"] == ONE_WAY or _reaches(entity, column, row):
                        out.near[count] = out.mines[place]
                        count += 1
    out.near[count] = NO_ENTITY
    return count


@kernel
def _is_same(near, first, other):
    """Return whether two lists are equal."""
    while near[first] == near[other] and near[first] != NO_ENTITY:
        first += 1
        other += 1
    return near[first] == near[other]


@kernel
def _write_mines(out):
    """Keep those members of cells that can kill, by blocks of cells, and clear ``segment_start``."""
    count, start = 0, out.segment_start
    for cell in range(CELLS):
        for place in range(start[0, cell], start[0, cell + 1]):
            slot = out.mines[place]
            if _MINES >> int(out.entities[slot]["type"]) & 1:
                out.mines[count] = slot
                count += 1
        out.mine_start[0, cell // MINE_ROWS + 1] = count
    for cell in range(CELLS + 1):
        start[0, cell] = 0


@kernel
def _reaches(entity, column, row):
    """Return whether an entity can act on a ninja in a cell."""
    dx, dy = _gap(entity["x"], column, COLUMNS - 1), _gap(entity["y"], row, ROWS - 1)
    return dx * dx + dy * dy <= _REACHES[entity["type"]]


@kernel
def _gap(position, cell, last):
    """Return the distance of a position from a cell along an axis; the first and the last cell have no end."""
    if cell > 0 and position < CELL_SIZE * cell:
        return CELL_SIZE * cell - position
    if cell < last and position > CELL_SIZE * (cell + 1):
        return position - CELL_SIZE * (cell + 1)
    return 0.0


@kernel
def _write_segments(out):
    """Write the segments by cell, in the order that collision depends on (physics 01, section 2.7)."""
    tiles, start = out.tiles[0], out.segment_start
    for placing in range(2):
        for column in range(COLUMNS):
            for row in range(ROWS):
                if CURVE_KIND[tiles[row, column]] >= 0:
                    segment = _placed(out, column * ROWS + row, placing)
                    _write_curve(segment, tiles[row, column], 24 * column, 24 * row)
        for upright in range(2):
            _write_edge_segments(out, tiles, upright, placing)
        for number in range(out.header[0]["door_count"]):
            door = out.doors[number]
            _write_door_segment(_placed(out, door["column"] * ROWS + door["row"], placing), door)
        _next_pass(start, placing)


@kernel
def _placed(out, cell, placing):
    """Count a segment of a cell, or take its place; return the record to write, which without a place is the last."""
    place = out.segment_start[0, cell] if placing else out.segments.shape[0] - 1
    out.segment_start[0, cell + 1 - placing] += 1
    return out.segments[place]


@kernel
def _write_curve(segment, tile, x, y):
    """Write the diagonal or arc of a tile whose corner is (x, y)."""
    kind = CURVE_KIND[tile]
    is_straight = kind == STRAIGHT
    segment["kind"], segment["owner"] = kind, NO_OWNER
    segment["x1"], segment["y1"] = x + CURVE_SHAPE[tile, 0], y + CURVE_SHAPE[tile, 1]
    segment["x2"] = CURVE_SHAPE[tile, 2] + (x if is_straight else 0)
    segment["y2"] = CURVE_SHAPE[tile, 3] + (y if is_straight else 0)


@kernel
def _write_edge_segments(out, tiles, upright, placing):
    """Write the half-edges of a lattice, each directed so that its free side is on the left."""
    for column in range(_LINES[1] + 1 if upright else _PARTS[0]):
        for row in range(_PARTS[1] if upright else _LINES[0] + 1):
            sign = signed_edge(tiles, upright, column if upright else row, row if upright else column)
            if sign != 0:
                behind = sign > 0  # the solid is the one before the line
                x, y, x2, y2 = 12 * column, 12 * row, 12 * column, 12 * row
                if upright:
                    cell = ((column - behind) >> 1) * ROWS + (row >> 1)
                    y, y2 = (y + 12, y) if behind else (y, y + 12)
                else:
                    cell = (column >> 1) * ROWS + ((row - behind) >> 1)
                    x, x2 = (x, x + 12) if behind else (x + 12, x)
                segment = _placed(out, cell, placing)
                segment["x1"], segment["y1"], segment["x2"], segment["y2"] = x, y, x2, y2
                segment["kind"], segment["owner"] = STRAIGHT, NO_OWNER


@kernel
def _write_door_segment(segment, door):
    """Write the segment of a door."""
    half_x, half_y = (0, 12) if door["vertical"] else (12, 0)
    segment["x1"], segment["y1"] = door["x"] - half_x, door["y"] - half_y
    segment["x2"], segment["y2"] = door["x"] + half_x, door["y"] + half_y
    segment["kind"] = DOOR_CLOSED_AT_1 if door["type"] == TRAP_DOOR else DOOR_CLOSED_AT_0
    segment["owner"] = door["owner"]


@kernel
def _half_edge(table, tiles, upright, line, part, side):
    """Return a half-edge of a table, of the tile that has the line on its side 0, in its middle 1, or on its side 2."""
    across, along = (line - side) >> 1, part >> 1
    tile = tiles[along, across] if upright else tiles[across, along]
    return table[tile, 6 * upright + 2 * side + (part & 1)]


@kernel
def signed_edge(tiles, upright, line, part):
    """Return the sign of a half-edge, 0 without one (physics 01, section 2.5).

    Args:
        tiles: (25, 44) uint8.
        upright: 1 for the 89 vertical lines, with 50 parts each, 0 for the 51 horizontal ones, with 88.
        line: which line, from the left or the top.
        part: which half of a cell along the line.
    """
    if line & 1:
        return int(_half_edge(EDGE_SIGNS, tiles, upright, line, part, 1))
    last = _LINES[upright]
    sign = int(line == 0) - int(line == last)
    if line < last:
        sign += _half_edge(EDGE_SIGNS, tiles, upright, line, part, 0)
    if line > 0:
        sign += _half_edge(EDGE_SIGNS, tiles, upright, line, part, 2)
    return sign


@kernel
def grid_edge(tiles, upright, line, part):
    """Return the edge for moving entities, 0 to 2 (physics 01, section 2.8); arguments as of :func:`signed_edge`.

    Two solids that meet leave no edge; otherwise the stronger contribution stays.
    """
    if line & 1:
        return int(_half_edge(GRID_EDGES, tiles, upright, line, part, 1))
    last = _LINES[upright]
    edge = int(line == 0 or line == last)
    for side in range(0, 3, 2):
        if (line < last) if side == 0 else (line > 0):
            other = int(_half_edge(GRID_EDGES, tiles, upright, line, part, side))
            edge = 0 if edge == _SOLID and other == _SOLID else max(edge, other)
    return edge


@kernel
def _write_edges(out):
    """Write, by kind, the edges of the half-cell lattice as bits, line by line."""
    for upright in range(2):
        for line in range(_LINES[upright] + 1):
            for part in range(_PARTS[upright]):
                edge = grid_edge(out.tiles[0], upright, line, part)
                if edge:
                    _set_edge(out.edges, ALL_EDGES, upright, line, part)
                if edge == _SOLID:
                    _set_edge(out.edges, SOLID_EDGES, upright, line, part)
    for number in range(out.header[0]["door_count"]):  # a door closes two edges
        door = out.doors[number]
        column, row = 2 * int(door["column"]), 2 * int(door["row"])
        for half in range(2):
            if door["vertical"]:
                _set_edge(out.edges, DOOR_EDGES, VERTICAL, column + 2, row + half)
            else:
                _set_edge(out.edges, DOOR_EDGES, HORIZONTAL, row + 2, column + half)


@kernel
def _set_edge(edges, kind, upright, line, part):
    """Set the bit of an edge."""
    word = line if upright else FIRST_HORIZONTAL + 2 * line + part // WORD_EDGES
    edges[0, kind, word] |= np.int64(1) << np.int64(part if upright else part % WORD_EDGES)


@kernel
def _write_header(records, out):
    """Write what the header has beyond the counts."""
    header = out.header[0]
    header["spawn_x"], header["spawn_y"] = records[0, 1] * MAP_UNIT, records[0, 2] * MAP_UNIT
    evil = 0
    for slot in range(header["entity_count"]):
        kind = int(out.entities[slot]["type"])
        header["gold_count"] += kind == GOLD
        header["first_exit"] += kind < EXIT
        evil += kind == EVIL_NINJA
        header["has_platforms"] |= kind == ONE_WAY
        header["has_blocks"] |= _SOLID_MOVERS >> kind & 1
    header["trail_count"] = max(EVIL_DELAY * evil - 1, 0)
    header["has_plain_walls"] = 1
    for number in range(header["door_count"]):
        if not _lies_in_its_cell(out.doors[number]):
            header["has_plain_walls"] = 0


@kernel
def _lies_in_its_cell(door):
    """Return whether a door lies in the cell that lists it, as tiles always do; one beside a border need not."""
    half_x, half_y = (0, 12) if door["vertical"] else (12, 0)
    left, top = 24 * door["column"], 24 * door["row"]
    inside = door["x"] - half_x >= left and door["x"] + half_x <= left + 24
    return inside and door["y"] - half_y >= top and door["y"] + half_y <= top + 24


def compile_level(level: Level) -> LevelArrays:
    """Compute the arrays of a level, read-only, alone in its set; doors are in order of creation."""
    out = level_room(len(level.raw.records))
    _write_level(level.raw.tiles, level.raw.records, out)
    header = out.header[0]
    last = int(out.near_start.max()) * int(header["near_unit"])
    lengths = {
        "segments": out.segment_start[0, -1],
        "mines": out.mine_start[0, -1],
        "near": last + 1 + int((out.near[last:] == NO_ENTITY).argmax()),
        "entities": header["entity_count"],
        "mover_slots": header["mover_count"],
        "doors": header["door_count"],
        "runs": header["run_count"],
    }
    compiled = out._replace(**{name: getattr(out, name)[:length].copy() for name, length in lengths.items()})
    for array in compiled:
        array.flags.writeable = False
    return compiled


def level_distances(level: LevelArrays) -> Fields:
    """Compute the distances to the X exits of a compiled level, 1 + X fields (``level.routes.distance``)."""
    exits = np.flatnonzero(level.entities["type"] == EXIT)
    points = ([(int(e["x"]), int(e["y"])) for e in level.entities[exits + place]] for place in (0, 1))
    return objective_fields(level.tiles[0], *points)


_write_level = specialised_at_first(write_level)


def level_room(records: int) -> LevelArrays:
    """Return zeroed arrays with room for any level of so many records."""
    entities = records + KINDS[EXIT].most
    lengths = {
        "segments": MOST_SEGMENTS + records,
        "near": NEIGHBOURS * entities + _LARGEST_UNIT * (CELLS + 1),
        "runs": _NUM_KINDS,
        "doors": records,
        "header": 1,
        "laser_frames": 1,
    }
    shapes: dict[str, tuple[int, ...]] = {"segment_start": (1, CELLS + 1), "near_start": (1, CELLS)}
    shapes |= {"mine_start": (1, CELLS // MINE_ROWS + 1)}
    shapes |= {"tiles": (1, ROWS, COLUMNS), "edges": (1, 3, FIRST_HORIZONTAL + 2 * (2 * ROWS + 1)), "laser_start": (2,)}
    return LevelArrays(
        *(np.zeros(shapes.get(name, lengths.get(name, entities)), ARRAYS_LAYOUT[name]) for name in LevelArrays._fields)
    )
