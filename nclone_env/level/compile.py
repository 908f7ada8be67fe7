"""Level to CompiledLevel: everything about a level that never changes during play, as arrays.

Tiles and doors become segments and the lattice of moving entities (physics 01, sections 2.5 to 2.8; 02, 6.5), object
records the table of entities and its order by cell (physics 02, sections 2 to 4).
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from nclone_env.game import (
    CELL_SIZE,
    CELLS,
    COLUMNS,
    DOOR_SWITCHES,
    EXIT,
    EXIT_SWITCH,
    FACING_X,
    FACING_Y,
    KINDS,
    LAUNCH_PAD,
    MAX_TILE,
    ONE_WAY,
    RADIUS,
    ROWS,
    SWITCH_OF,
    TRAP_DOOR,
)
from nclone_env.level.level import Level, count_exits, played_records
from nclone_env.level.routes.distance import objective_fields
from nclone_env.level.tiles import CURVE_KIND, CURVE_SHAPE, EDGE_SIGNS, GRID_EDGES, STRAIGHT

SEGMENT = np.dtype(
    [("x1", "i2"), ("y1", "i2"), ("x2", "i2"), ("y2", "i2"), ("kind", "i2"), ("owner", "i2")], align=True
)
"""A straight segment from (x1, y1) to (x2, y2), or an arc: centre (x1, y1), quadrant signs (x2, y2). Pixels.

``owner`` is the entity of a door, else ``NO_OWNER``."""

NO_OWNER = -1
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

_SOLID = 2
"""Value of a lattice edge that is solid on both halves."""
_WITH_MOVER = tuple(kind.number for kind in KINDS if kind.has_mover)
_DOORS = tuple(kind.number for kind in KINDS if kind.is_door)
_CREATING = tuple(kind.number for kind in KINDS if kind.has_entity and kind.number not in SWITCH_OF.values())
"""Kinds whose records create entities; an exit switch comes with its exit (physics 02, section 2.5)."""
_INITIAL_STATES = np.array([kind.initial for kind in KINDS], dtype=np.uint8)
_REACHES = np.array([RADIUS + max(kind.radii) + 0.01 for kind in KINDS])
"""Distance within which an entity can act on the ninja, pixels, by kind."""


def padded_tiles(tiles: np.ndarray) -> np.ndarray:
    """Return (25, 44) uint8: the (23, 42) tiles inside a ring of full blocks; numbers above 37 become 0."""
    padded = np.ones((ROWS, COLUMNS), dtype=np.uint8)
    padded[1:-1, 1:-1] = np.where(tiles > MAX_TILE, 0, tiles)
    return padded


def _curve_segments(tiles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    columns, rows = np.nonzero(CURVE_KIND[tiles.T] >= 0)
    numbers = tiles[rows, columns]
    curves = np.zeros(len(columns), dtype=SEGMENT)
    curves["owner"] = NO_OWNER
    shape = CURVE_SHAPE[numbers]
    offset_x, offset_y = 24 * columns, 24 * rows
    curves["kind"] = CURVE_KIND[numbers]
    straight = curves["kind"] == STRAIGHT
    curves["x1"], curves["y1"] = shape[:, 0] + offset_x, shape[:, 1] + offset_y
    curves["x2"] = np.where(straight, shape[:, 2] + offset_x, shape[:, 2])
    curves["y2"] = np.where(straight, shape[:, 3] + offset_y, shape[:, 3])
    return curves, columns * ROWS + rows


def edge_lattices(tiles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the signed half-edges: horizontal (51, 88) and vertical (50, 89) int8 (physics 01, section 2.5)."""
    return _half_edges(EDGE_SIGNS[tiles], 1, -1, np.add)


def grid_edges(tiles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the edges for moving entities: horizontal (51, 88) and vertical (50, 89) int8, values 0 to 2.

    Two solids that meet leave no edge; otherwise the stronger contribution stays (physics 01, section 2.8).
    """
    return _half_edges(
        GRID_EDGES[tiles], 1, 1, lambda one, other: np.where((one == 2) & (other == 2), 0, np.maximum(one, other))
    )


def _half_edges(
    values: np.ndarray, first: int, last: int, joined: Callable[[np.ndarray, np.ndarray], np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the lattices of (25, 44, 12) half-edges, given those on the border of the world."""
    horizontal = np.zeros((2 * ROWS + 1, 2 * COLUMNS), dtype=np.int8)
    vertical = np.zeros((2 * ROWS, 2 * COLUMNS + 1), dtype=np.int8)
    horizontal[0], horizontal[-1] = vertical[:, 0], vertical[:, -1] = first, last
    for line, half in np.ndindex(3, 2):
        across = horizontal[line : line + 49 : 2, half::2]
        across[:] = joined(across, values[:, :, 2 * line + half])
        upright = vertical[half::2, line : line + 87 : 2]
        upright[:] = joined(upright, values[:, :, 6 + 2 * line + half])
    return horizontal, vertical


def _edge_segments(tiles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    horizontal, vertical = edge_lattices(tiles)
    parts, cells = [], []
    for lattice, flat in ((horizontal, True), (vertical, False)):
        i, j = np.nonzero(lattice.T)
        positive = lattice[j, i] > 0
        part = np.zeros(len(i), dtype=SEGMENT)
        part["owner"] = NO_OWNER
        x, y = 12 * i, 12 * j
        forward = positive if flat else ~positive
        ahead_x, ahead_y = (12, 0) if flat else (0, 12)
        part["x1"], part["y1"] = np.where(forward, x, x + ahead_x), np.where(forward, y, y + ahead_y)
        part["x2"], part["y2"] = np.where(forward, x + ahead_x, x), np.where(forward, y + ahead_y, y)
        column = i // 2 if flat else (i - positive) // 2
        row = (j - positive) // 2 if flat else j // 2
        parts.append(part)
        cells.append(column * ROWS + row)
    return np.concatenate(parts), np.concatenate(cells)


def _door_segments(doors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    part = np.zeros(len(doors), dtype=SEGMENT)
    vertical = doors["vertical"] != 0
    half_x, half_y = np.where(vertical, 0, 12), np.where(vertical, 12, 0)
    part["x1"], part["y1"] = doors["x"] - half_x, doors["y"] - half_y
    part["x2"], part["y2"] = doors["x"] + half_x, doors["y"] + half_y
    part["kind"] = np.where(doors["type"] == TRAP_DOOR, DOOR_CLOSED_AT_1, DOOR_CLOSED_AT_0)
    part["owner"] = doors["owner"]
    return part, doors["column"].astype(np.int64) * ROWS + doors["row"]


def pack_edges(tiles: np.ndarray, doors: np.ndarray) -> np.ndarray:
    """Return (3, 191) int64: by kind, the edges of the half-cell lattice as bits, line by line."""
    horizontal, vertical = grid_edges(tiles)
    on_doors = np.zeros_like(horizontal), np.zeros_like(vertical)
    for door in doors:  # closes two edges
        column, row = 2 * int(door["column"]), 2 * int(door["row"])
        if door["vertical"]:
            on_doors[VERTICAL][row : row + 2, column + 2] = 1
        else:
            on_doors[HORIZONTAL][row + 2, column : column + 2] = 1
    kinds = ((horizontal, vertical), (horizontal == _SOLID, vertical == _SOLID), on_doors)
    return np.stack([np.concatenate([_words(across.T), _words(flat)]) for flat, across in kinds])


def _words(lines: np.ndarray) -> np.ndarray:
    """Return the bits of lines of at most ``WORD_EDGES`` edges, a word each, or of twice as many, two words each."""
    parts = (lines != 0).reshape(-1, WORD_EDGES) if lines.shape[1] > 2 * ROWS else lines != 0
    return parts.astype(np.int64) @ (1 << np.arange(parts.shape[1]))


def sort_by_cell(items: np.ndarray, cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return items sorted by cell, stable within a cell, and (1101,) int32: the start of each cell."""
    order = np.argsort(cells, kind="stable")
    start = np.zeros(CELLS + 1, dtype=np.int32)
    np.cumsum(np.bincount(cells, minlength=CELLS), out=start[1:])
    return items[order], start


def _entity_table(records: np.ndarray) -> dict[str, np.ndarray]:
    """Return the arrays of a ``CompiledLevel`` about entities, created from (N, 5) uint8 records in their order."""
    records = played_records(records)
    created = np.array(_create(records), dtype=np.int64).reshape(-1, 5)
    kinds = created[:, 2]
    slots = np.argsort(np.where(kinds == EXIT_SWITCH, EXIT, kinds), kind="stable")  # physics 02, section 4.2
    entities = np.zeros(len(created), dtype=ENTITY)
    for name, column in zip(("x", "y", "type", "orientation", "mode"), created[slots].T, strict=True):
        entities[name] = column
    entities["order"] = slots
    entities["initial"] = _INITIAL_STATES[entities["type"]]
    moving = np.isin(entities["type"], _WITH_MOVER)
    entities["mover"] = np.where(moving, np.cumsum(moving) - 1, -1)
    switches = np.flatnonzero(entities["type"] == EXIT_SWITCH)
    entities["mover"][switches] = entities["mover"][switches - 1]
    fixed = np.flatnonzero(~moving)
    fixed = fixed[np.argsort(entities["order"][fixed], kind="stable")]
    cells = cells_of(entities["x"][fixed], entities["y"][fixed])
    members, start = sort_by_cell(fixed.astype(np.int16), cells)
    near, near_start = _near_entities(entities, fixed, cells)
    return {
        "entities": entities,
        "members": members,
        "member_start": start,
        "near": near,
        "near_start": near_start,
        "mover_slots": np.flatnonzero(moving).astype(np.int16),
        "doors": _doors(records, entities),
        "exits": np.flatnonzero(entities["type"] == EXIT),
    }


def _near_entities(entities: np.ndarray, fixed: np.ndarray, cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return int16, by cell, the entities that can act on a ninja in it, and (1101,) int32, the start of each cell.

    They are among those of the nine cells around it, in the order in which these are visited (physics 02, section 4.4).
    A visit may move the ninja: a platform counts in all nine cells, as does everything around a launch pad.

    Args:
        entities: ``ENTITY`` records of the level.
        fixed: indices of those that never change their cell, in order of creation.
        cells: their cells.
    """
    columns, rows = np.divmod(cells, ROWS)
    x, y, kinds = entities["x"][fixed], entities["y"][fixed], entities["type"][fixed]
    pads = np.zeros((COLUMNS + 2, ROWS + 2), dtype=bool)
    for column, row in zip(columns[kinds == LAUNCH_PAD], rows[kinds == LAUNCH_PAD], strict=True):
        pads[column : column + 3, row : row + 3] = True
    found, places = [], []
    for across, down in np.ndindex(3, 3):
        column, row = columns + across - 1, rows + down - 1
        gap = np.hypot(_gap(x, column, COLUMNS - 1), _gap(y, row, ROWS - 1))
        within = (column >= 0) & (column < COLUMNS) & (row >= 0) & (row < ROWS)
        within &= (gap <= _REACHES[kinds]) | (kinds == ONE_WAY) | pads[column + 1, row + 1]
        found.append(np.flatnonzero(within))
        places.append((column * ROWS + row)[within])
    which, cell = np.concatenate(found), np.concatenate(places)
    visited = np.lexsort((which, cells[which]))  # by cell, then in order of creation
    return sort_by_cell(fixed[which[visited]].astype(np.int16), cell[visited])


def _gap(position: np.ndarray, cell: np.ndarray, last: int) -> np.ndarray:
    """Return the distance of positions from cells along an axis; the first and the last cell have no end."""
    before = np.where(cell > 0, CELL_SIZE * cell - position, 0.0)
    behind = np.where(cell < last, position - CELL_SIZE * (cell + 1), 0.0)
    return np.maximum(np.maximum(before, behind), 0.0)


def cells_of(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the clamped cell numbers ``column * 25 + row`` of positions in pixels (physics 02, section 4.3)."""
    column = np.clip(np.floor_divide(x, CELL_SIZE), 0, COLUMNS - 1).astype(np.int64)
    row = np.clip(np.floor_divide(y, CELL_SIZE), 0, ROWS - 1).astype(np.int64)
    return column * ROWS + row


def _create(records: np.ndarray) -> list[tuple[int, int, int, int, int]]:
    """Return (x, y, type, orientation, mode) of each entity in order of creation; a door lies at its trigger."""
    exits = count_exits(records)
    created: list[tuple[int, int, int, int, int]] = []
    for row in np.flatnonzero(np.isin(records[:, 0], _CREATING)):
        kind, x, y, orientation, mode = records[row].tolist()
        if kind in DOOR_SWITCHES:
            x, y = records[row + 1, 1:3].tolist()
        created.append((6 * x, 6 * y, kind, orientation, mode))
        if kind == EXIT:
            x, y = records[row + exits, 1:3].tolist()
            created.append((6 * x, 6 * y, EXIT_SWITCH, 0, 0))
    return created


def _doors(records: np.ndarray, entities: np.ndarray) -> np.ndarray:
    """Return the doors in order of creation (physics 02, section 6.5)."""
    rows = records[np.isin(records[:, 0], _DOORS)]
    owners = np.flatnonzero(np.isin(entities["type"], _DOORS))
    owners = owners[np.argsort(entities["order"][owners], kind="stable")]
    doors = np.zeros(len(rows), dtype=DOOR)
    for number, (kind, x, y, orientation, _) in enumerate(rows.tolist()):
        behind_x, behind_y = 6 * x - 12 * FACING_X[orientation], 6 * y - 12 * FACING_Y[orientation]
        column, row = divmod(int(cells_of(np.array(behind_x), np.array(behind_y))), ROWS)
        doors[number] = (6 * x, 6 * y, owners[number], column, row, orientation in (0, 4), kind)
    return doors


class CompiledLevel(NamedTuple):
    """The arrays of one level, read-only, as those of ``LevelArrays``; environments play those of a ``LevelSet``.

    Segments are in the order that collision depends on (physics 01, section 2.7), entities in type-list order (physics
    02, section 4.2), members of a cell and doors in order of creation. ``exits``, (X,) int64, are the indices of the
    exits in ``entities``; the switch of each exit follows it.
    """

    tiles: np.ndarray
    segments: np.ndarray
    segment_start: np.ndarray
    edges: np.ndarray
    entities: np.ndarray
    members: np.ndarray
    member_start: np.ndarray
    near: np.ndarray
    near_start: np.ndarray
    mover_slots: np.ndarray
    doors: np.ndarray
    exits: np.ndarray

    def distances(self) -> np.ndarray:
        """Compute the distances to the objectives, (1 + X, 51, 89) float32 (``level.routes.distance``)."""
        exits, switches = self.entities[self.exits], self.entities[self.exits + 1]
        exit_points, switch_points = ([(int(e["x"]), int(e["y"])) for e in group] for group in (exits, switches))
        return objective_fields(self.tiles, exit_points, switch_points)


def compile_level(level: Level) -> CompiledLevel:
    """Compute the arrays of a level."""
    tiles = padded_tiles(level.raw.tiles)
    table = _entity_table(level.raw.records)
    parts = (_curve_segments(tiles), _edge_segments(tiles), _door_segments(table["doors"]))
    segments, start = sort_by_cell(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))
    compiled = CompiledLevel(tiles, segments, start, pack_edges(tiles, table["doors"]), **table)
    for array in compiled:
        array.flags.writeable = False
    return compiled
