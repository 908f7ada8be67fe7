"""A canvas of quarter cells, on which shapes with straight and diagonal edges are cut out of a solid block.

The diagonals of a cell part it into four quarters: top, right, bottom, left. A shape whose corners are corners of
cells, and whose edges are horizontal, vertical or diagonal, covers whole quarters, so that tiles show it exactly.
"""

from __future__ import annotations

import numpy as np

from nclone_env.constants import TILE_COLUMNS, TILE_ROWS
from nclone_env.generate.sketch import BLOCK, OPEN

_UNIT = 6  # parts of a cell, so that the middles of quarters are integers
_rows, _columns = np.indices((TILE_ROWS, TILE_COLUMNS))
_x = _UNIT * _columns[..., None] + np.array((3, 5, 3, 1))
_y = _UNIT * _rows[..., None] + np.array((1, 3, 5, 3))
_SOLID = {(0, 3): 6, (0, 1): 7, (1, 2): 8, (2, 3): 9}  # slopes by their solid quarters

Shape = np.ndarray
"""(23, 42, 4) bool: quarters of cells."""


def box(left: int, top: int, right: int, bottom: int, cut: int = 0) -> Shape:
    """Return a rectangle from the first to the last column and row, its corners cut off by so many cells."""
    x, y = _x - _UNIT * left, _y - _UNIT * top
    width, height = _UNIT * (right + 1 - left), _UNIT * (bottom + 1 - top)
    inside = (x > 0) & (x < width) & (y > 0) & (y < height)
    return inside & (np.minimum(x, width - x) + np.minimum(y, height - y) > _UNIT * cut)


def swept(column: int, row: int, size: int, right: int, down: int) -> Shape:
    """Return what a square of some cells sweeps on its way to a neighbouring cell: 1, 0 or -1 right and down."""
    left, top = min(column, column + right), min(row, row + down)
    both = box(left, top, left + size - 1 + abs(right), top + size - 1 + abs(down))
    half = _UNIT * size // 2
    aside = (_x - _UNIT * column - half) * down - (_y - _UNIT * row - half) * right
    return both & (abs(aside) < half * (abs(right) + abs(down)))


def mirrored(shape: Shape) -> Shape:
    """Return the mirror image, left and right exchanged."""
    return shape[:, ::-1][..., [0, 3, 2, 1]]


def turned(shape: Shape) -> Shape:
    """Return the shape turned by 180 degrees."""
    return shape[::-1, ::-1][..., [2, 3, 0, 1]]


def tiles_of(air: Shape) -> np.ndarray:
    """Return (23, 42) uint8: the tiles around some air; the outermost cells are solid."""
    solid = ~air
    tiles = np.where(solid.sum(axis=2) > 2, BLOCK, OPEN).astype(np.uint8)
    for quarters, tile in _SOLID.items():
        tiles[(solid == np.isin(np.arange(4), quarters)).all(axis=2)] = tile
    tiles[[0, -1]] = tiles[:, [0, -1]] = BLOCK
    return tiles
