"""Parts of the world that a picture shows: all of it, or what levels use."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from nclone_env.game import COLUMNS, ROWS, WORLD_HEIGHT, WORLD_WIDTH
from nclone_env.render.arrays import CELL

_FULL_TILE = 1
_LARGEST_ZOOM = 2.0


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


def zoom_of(area: Area) -> float:
    """Return how much a part of the world is enlarged: at most twice, and to no more than the size of the world."""
    return min(_LARGEST_ZOOM, WORLD_WIDTH / area.width, WORLD_HEIGHT / area.height)


def union(areas: Iterable[Area]) -> Area:
    """Return the smallest area that contains some areas, at least one."""
    corners = [(area.left, area.top, area.left + area.width, area.top + area.height) for area in areas]
    lefts, tops, rights, bottoms = zip(*corners)
    left, top = min(lefts), min(tops)
    return Area(left, top, max(rights) - left, max(bottoms) - top)
