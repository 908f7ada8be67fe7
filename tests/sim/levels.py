"""Small levels for the tests of the simulator."""

from __future__ import annotations

import numpy as np

from nclone_env.level.raw import RawLevel


def room(records=(), spawn=(40, 58), tiles=None) -> RawLevel:
    """Return a level with a floor at y = 360; a ninja that spawns at (40, 58), in units of 6 pixels, just above it."""
    array = np.zeros((23, 42), np.uint8)
    array[14, :] = 1
    for (i, j), tile in (tiles or {}).items():
        array[j, i] = tile
    return RawLevel(array, np.array([(0, *spawn, 0, 0), *records], np.uint8))


FLOOR_Y = 24 * 15 - 10.0  # centre of a ninja that stands on the floor


MOVING_RECORDS = [
    (2, 30, 66, 0, 0),
    (3, 150, 66, 0, 0),
    (4, 62, 66, 0, 0),
    (5, 56, 64, 0, 0),
    (6, 110, 64, 0, 0),
    (7, 74, 66, 0, 0),
    (8, 130, 64, 0, 0),
    (9, 90, 66, 0, 0),
    (10, 84, 68, 6, 0),
    (14, 50, 34, 0, 0),
    (14, 90, 38, 2, 2),
    (16, 140, 67, 0, 0),
    (17, 40, 62, 0, 0),
    (17, 100, 58, 0, 0),
    (20, 66, 30, 2, 0),
    (20, 24, 40, 0, 0),
    (21, 46, 66, 0, 0),
    (24, 36, 64, 0, 0),
    (25, 120, 40, 0, 0),
    (25, 122, 44, 0, 0),
    (26, 80, 30, 4, 1),
    (28, 54, 50, 0, 0),
]


def moving(spawn=(26, 66), title: str = "moving") -> RawLevel:
    """Return a hall, 39 by 12 cells with its floor at y = 408, with doors and everything that moves."""
    tiles = np.ones((23, 42), np.uint8)
    tiles[4:16, 1:40] = 0
    return RawLevel(tiles, np.array([(0, *spawn, 0, 0), *MOVING_RECORDS], np.uint8), title)


def empty_level(records=(), tiles=None, spawn=(20, 20)) -> RawLevel:
    """Return a level of empty cells, but for tiles by (column, row) of the whole world, the border included."""
    array = np.zeros((23, 42), np.uint8)
    for (i, j), tile in (tiles or {}).items():
        array[j - 1, i - 1] = tile
    return RawLevel(array, np.array([(0, *spawn, 0, 0), *records], np.uint8))
