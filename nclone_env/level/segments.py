"""Tiles and doors to segments and to the lattice of moving entities (physics 01, sections 2.5 to 2.8; 02, 6.5)."""

from __future__ import annotations

import numpy as np

from nclone_env.constants import CELLS, COLUMNS, MAX_TILE, ROWS
from nclone_env.kinds import TRAP_DOOR
from nclone_env.level.tiles import CURVE_KIND, CURVE_SHAPE, EDGE_SIGNS, GRID_EDGES, STRAIGHT

SEGMENT = np.dtype(
    [("x1", "i2"), ("y1", "i2"), ("x2", "i2"), ("y2", "i2"), ("kind", "i2"), ("owner", "i2")],
    align=True,
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

GRID_SHAPE = (2, 2 * ROWS + 1, 2 * COLUMNS + 1)
HORIZONTAL, VERTICAL = 0, 1  # first index of the grid
EDGE_VALUE, EDGE_DOOR = 3, 4  # bits of the grid: contribution of the tiles; whether a door lies on the edge


def padded_tiles(tiles: np.ndarray) -> np.ndarray:
    """Return (25, 44) uint8: the (23, 42) tiles inside a ring of full blocks; numbers above 37 become 0."""
    padded = np.ones((ROWS, COLUMNS), dtype=np.uint8)
    padded[1:-1, 1:-1] = np.where(tiles > MAX_TILE, 0, tiles)
    return padded


def sorted_segments(tiles: np.ndarray, doors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the segments sorted by cell and the start of each cell (physics 01, sections 2.5 to 2.7).

    Args:
        tiles: (25, 44) uint8.
        doors: (D,) ``DOOR``, in order of creation.
    """
    parts = (_curve_segments(tiles), _edge_segments(tiles), _door_segments(doors))
    segments, cells = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return sort_by_cell(segments, cells)


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
    signs = EDGE_SIGNS[tiles]
    horizontal = np.zeros((2 * ROWS + 1, 2 * COLUMNS), dtype=np.int8)
    vertical = np.zeros((2 * ROWS, 2 * COLUMNS + 1), dtype=np.int8)
    horizontal[0], horizontal[-1] = 1, -1
    vertical[:, 0], vertical[:, -1] = 1, -1
    for line in range(3):
        for half in range(2):
            horizontal[line : line + 49 : 2, half::2] += signs[:, :, 2 * line + half]
            vertical[half::2, line : line + 87 : 2] += signs[:, :, 6 + 2 * line + half]
    return horizontal, vertical


def grid_edges(tiles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the edges for moving entities: horizontal (51, 88) and vertical (50, 89) int8, values 0 to 2.

    Two solids that meet leave no edge; otherwise the stronger contribution stays (physics 01, section 2.8).
    """
    values = GRID_EDGES[tiles]
    horizontal = np.zeros((2 * ROWS + 1, 2 * COLUMNS), dtype=np.int8)
    vertical = np.zeros((2 * ROWS, 2 * COLUMNS + 1), dtype=np.int8)
    horizontal[[0, -1]] = 1
    vertical[:, [0, -1]] = 1
    for line in range(3):
        for half in range(2):
            _merge(horizontal[line : line + 49 : 2, half::2], values[:, :, 2 * line + half])
            _merge(vertical[half::2, line : line + 87 : 2], values[:, :, 6 + 2 * line + half])
    return horizontal, vertical


def _merge(lattice: np.ndarray, values: np.ndarray) -> None:
    both_solid = (lattice == 2) & (values == 2)
    np.maximum(lattice, values, out=lattice)
    lattice[both_solid] = 0


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


def door_edges(door: np.void) -> tuple[int, tuple[tuple[int, int], tuple[int, int]]]:
    """Return (``HORIZONTAL`` or ``VERTICAL``, the two (row, column) of the lattice edges a door closes)."""
    column, row = 2 * int(door["column"]), 2 * int(door["row"])
    if door["vertical"]:
        return VERTICAL, ((row, column + 2), (row + 1, column + 2))
    return HORIZONTAL, ((row + 2, column), (row + 2, column + 1))


def grid(tiles: np.ndarray, doors: np.ndarray) -> np.ndarray:
    """Return (2, 51, 89) uint8: horizontal and vertical edges of the half-cell lattice, [direction, row, column].

    Edges that do not exist (horizontal ones in column 88, vertical ones in row 50) are 0.
    """
    edges = np.zeros(GRID_SHAPE, dtype=np.uint8)
    edges[HORIZONTAL, :, :-1], edges[VERTICAL, :-1] = grid_edges(tiles)
    for door in doors:
        direction, places = door_edges(door)
        for row, column in places:
            edges[direction, row, column] |= EDGE_DOOR
    return edges


def sort_by_cell(items: np.ndarray, cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return items sorted by cell, stable within a cell, and (1101,) int32: the start of each cell."""
    order = np.argsort(cells, kind="stable")
    start = np.zeros(CELLS + 1, dtype=np.int32)
    np.cumsum(np.bincount(cells, minlength=CELLS), out=start[1:])
    return items[order], start
