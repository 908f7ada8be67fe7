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


def empty_level(records=(), tiles=None, spawn=(20, 20)) -> RawLevel:
    """Return a level of empty cells, but for tiles by (column, row) of the whole world, the border included."""
    array = np.zeros((23, 42), np.uint8)
    for (i, j), tile in (tiles or {}).items():
        array[j - 1, i - 1] = tile
    return RawLevel(array, np.array([(0, *spawn, 0, 0), *records], np.uint8))
