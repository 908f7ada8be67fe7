"""Mirror images of levels: left and right exchanged, for twice as many levels to learn from."""

import dataclasses

import numpy as np

from nclone_env.game import COLUMNS, INPUT_LEFT, INPUT_RIGHT, KINDS, LASER_TURRET
from nclone_env.level.formats.text import TILES
from nclone_env.level.level import Level

_UNITS = 4 * COLUMNS  # width of the world in units of records
_DIRECTED = tuple(kind.number for kind in KINDS if "o" in (kind.pack or "") and not kind.is_door)
"""Kinds that face a direction; doors are either vertical or horizontal."""
_DRONES = tuple(kind.number for kind in KINDS if "drone" in kind.name)


def _mirror_image(name: str) -> str:
    """Return the name of a tile with left and right exchanged."""
    return name.replace("left", "*").replace("right", "left").replace("*", "right")


_TILE_NAMES = [name for _, name in TILES]
_MIRRORED_TILES = np.arange(256, dtype=np.uint8)  # numbers that are no tiles stay
_MIRRORED_TILES[: len(TILES)] = [_TILE_NAMES.index(_mirror_image(name)) for name in _TILE_NAMES]


def mirrored(level: Level) -> Level:
    """Return the mirror image of a level; ``mirrored(mirrored(level))`` has the contents of the level.

    Play is mirrored too, except for ties that depend on the order of cells and for rounding, which add up over
    some seconds.
    """
    raw = level.raw
    image = dataclasses.replace(raw, tiles=mirrored_tiles(raw.tiles), records=_mirrored_records(raw.records))
    return Level(image, f"{level.name} mirrored")


def mirrored_inputs(inputs: np.ndarray) -> np.ndarray:
    """Return inputs, (T,) uint8, with left and right exchanged; where both are pressed, left counts, as in play."""
    left = (inputs & INPUT_LEFT) != 0
    right = ~left & ((inputs & INPUT_RIGHT) != 0)
    others = inputs & ~np.uint8(INPUT_LEFT | INPUT_RIGHT)
    return others | np.where(left, INPUT_RIGHT, np.where(right, INPUT_LEFT, 0)).astype(np.uint8)


def mirrored_tiles(tiles: np.ndarray) -> np.ndarray:
    """Return the mirror image of (rows, columns) uint8 tiles, left and right exchanged."""
    return _MIRRORED_TILES[tiles[:, ::-1]]


def _mirrored_records(records: np.ndarray) -> np.ndarray:
    mirror = records.copy()
    kinds, orientations = records[:, 0], records[:, 3]
    mirror[:, 1] = _UNITS - records[:, 1]
    directed = np.isin(kinds, _DIRECTED)
    mirror[directed, 3] = (4 - orientations[directed]) % 8
    drones = np.isin(kinds, _DRONES)
    mirror[drones, 3] = (4 - orientations[drones] // 2 * 2) % 8  # drones round odd orientations down
    turning = drones | (kinds == LASER_TURRET)
    mirror[turning, 4] = records[turning, 4] ^ 1  # clockwise or not
    return mirror
