"""Parts of the world that a picture shows: all of it, what a level uses, or that at the world's proportions."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nclone_env.constants import COLUMNS, ROWS, WORLD_HEIGHT, WORLD_WIDTH
from nclone_env.render.arrays import CELL

_FULL_TILE = 1
_CLOSE_UPS = (528, 660, 704, 792, 880)
"""Widths of the areas that are drawn enlarged: those of the world's proportions have a whole number of rows."""


class Area(NamedTuple):
    """A rectangle of the world: its upper left corner and its size, whole pixels."""

    left: int
    top: int
    width: int
    height: int


WORLD = Area(0, 0, WORLD_WIDTH, WORLD_HEIGHT)


def used_area(tiles: np.ndarray, places: np.ndarray) -> Area:
    """Return the smallest area of whole cells that contains all non-solid cells, with one cell of wall around it.

    Args:
        tiles: (25, 44) numbers of the tiles of the world.
        places: (k, 2) x and y of entities and the ninja, pixels: they may lie in walls.

    Returns:
        The area; the world if nothing is in it.
    """
    used = tiles != _FULL_TILE
    columns, rows = (places // CELL).astype(np.int64).T
    inside = (columns >= 0) & (columns < COLUMNS) & (rows >= 0) & (rows < ROWS)
    used[rows[inside], columns[inside]] = True
    if not used.any():
        return WORLD
    across, down = np.flatnonzero(used.any(axis=0)), np.flatnonzero(used.any(axis=1))
    left, right = max(int(across[0]) - 1, 0), min(int(across[-1]) + 2, COLUMNS)
    top, bottom = max(int(down[0]) - 1, 0), min(int(down[-1]) + 2, ROWS)
    return Area(left * CELL, top * CELL, (right - left) * CELL, (bottom - top) * CELL)


def close_up(used: Area) -> tuple[Area, float]:
    """Return the smallest area with the world's aspect ratio that contains a used one, and the zoom.

    It is between half of the world in each direction and the whole world.
    """
    for width in _CLOSE_UPS:
        height = width * WORLD_HEIGHT // WORLD_WIDTH
        if used.width <= width and used.height <= height:
            left = used.left + (used.width - width) // 2
            top = used.top + (used.height - height) // 2
            left, top = min(max(left, 0), WORLD_WIDTH - width), min(max(top, 0), WORLD_HEIGHT - height)
            return Area(left, top, width, height), WORLD_WIDTH / width
    return WORLD, 1.0
