"""The grey pictures of all tiles, entities and ninja postures, rasterised once for the kernels.

A *kind* is the number of one appearance of an entity, a door or the ninja. Each kind has a stamp at full
resolution and, for the global view, small stamps at 4 x 4 sub-pixel phases. Stamps hold alpha
and ink (already multiplied by alpha); pixel b becomes ``round(b * (255 - alpha) / 255) + ink``, which cannot
overflow.
"""

from __future__ import annotations

from functools import lru_cache

import cv2
import numpy as np

from nclone_env.constants import COLUMNS, ENTITY_NAMES, MAX_TILE, REGULAR_DOOR, ROWS, TRAP_DOOR
from nclone_env.level.library import LevelArrays
from nclone_env.level.records import DOOR_SWITCHES
from nclone_env.render import raster
from nclone_env.render.arrays import (
    CELL,
    GLOBAL_CENTRE,
    GLOBAL_HEIGHT,
    GLOBAL_SIDE,
    GLOBAL_WIDTH,
    ORIENTATIONS,
    PHASES,
    SCALE_X,
    SCALE_Y,
    STATES,
    Glyphs,
)
from nclone_env.render.looks import DOOR_LIES, DOOR_STANDS, Appearance, appearance, layers_of
from nclone_env.render.shapes import PAINTS, tile_outline


@lru_cache(maxsize=1)
def glyphs() -> Glyphs:
    """Return the glyphs, rasterised on the first call."""
    shown, kinds = _kinds()
    pictures = [raster.stamp(layers_of(item), raster.GREYS) for item in shown]
    planes = np.array([(255 * alpha, ink[..., 0]) for alpha, ink in pictures])
    stamps = _round(planes[:, None])
    global_stamps = _round(_global_planes(planes))
    boxes = np.array([[_box(item[:, 0].max(0)) for item in group] for group in (stamps, global_stamps)])
    door_kinds = kinds[: TRAP_DOOR + 1, (DOOR_LIES, DOOR_STANDS)].copy()
    for door, switch in DOOR_SWITCHES.items():
        kinds[door] = kinds[switch]
    kinds[REGULAR_DOOR] = -1
    result = Glyphs(_tiles(), stamps, global_stamps, boxes, kinds, door_kinds)
    for array in result:
        array.flags.writeable = False
    return result


def static_layers(levels: LevelArrays) -> np.ndarray:
    """Return the tiles of every level at the resolution of the global view.

    Args:
        levels: packed levels.

    Returns:
        (L, 128, 256) uint8, read-only: the whole world averaged over areas of 4.125 x 4.6875 pixels.
    """
    layers = np.empty((len(levels.tiles), GLOBAL_HEIGHT, GLOBAL_WIDTH), dtype=np.uint8)
    for tiles, layer in zip(levels.tiles, layers, strict=True):
        cells = glyphs().tiles[np.where(tiles > MAX_TILE, 0, tiles)]
        picture = cells.transpose(0, 2, 1, 3).reshape(ROWS * CELL, COLUMNS * CELL)
        cv2.resize(picture, (GLOBAL_WIDTH, GLOBAL_HEIGHT), dst=layer, interpolation=cv2.INTER_AREA)
    layers.flags.writeable = False
    return layers


def _kinds() -> tuple[list[Appearance], np.ndarray]:
    """Return everything that is drawn, by kind, and (29, 8, 256) int16: the kind by type, orientation and state."""
    numbers: dict[Appearance, int] = {}
    kinds = np.full((len(ENTITY_NAMES), ORIENTATIONS, STATES), -1, dtype=np.int16)
    for place in np.ndindex(kinds.shape):
        shown = appearance(*place)
        if shown is not None:
            kinds[place] = numbers.setdefault(shown, len(numbers))
    return list(numbers), kinds


def _tiles() -> np.ndarray:
    background, solid = PAINTS["background"].grey, PAINTS["solid"].grey
    covered = np.array([raster.coverage([tile_outline(tile)]) for tile in range(MAX_TILE + 1)])
    return _round(background + covered * (solid - background))


def _global_planes(planes: np.ndarray) -> np.ndarray:
    """Return (K, 16, 2, 7, 7): area averages of (K, 2, 24, 24) planes on the coarse grid at every phase."""
    rows, columns = _area_weights(SCALE_Y), _area_weights(SCALE_X)
    averaged = np.einsum("pri,kaij,qcj->kpqarc", rows, planes, columns)
    return averaged.reshape(len(planes), PHASES * PHASES, *averaged.shape[3:])


def _area_weights(scale: float) -> np.ndarray:
    """Return (4, 7, 24): the share of each coarse pixel that each fine pixel covers, by phase."""
    centre = GLOBAL_CENTRE + np.arange(PHASES)[:, None, None] / PHASES
    fine = np.arange(CELL) - CELL / 2
    coarse = np.arange(GLOBAL_SIDE)[:, None]
    start = np.maximum(coarse, centre + fine / scale)
    end = np.minimum(coarse + 1, centre + (fine + 1) / scale)
    return np.maximum(end - start, 0.0)


def _box(alpha: np.ndarray) -> tuple[int, int, int, int]:
    rows, columns = np.flatnonzero(alpha.any(axis=1)), np.flatnonzero(alpha.any(axis=0))
    return int(rows[0]), int(rows[-1]) + 1, int(columns[0]), int(columns[-1]) + 1


def _round(values: np.ndarray) -> np.ndarray:
    return np.floor(values + 0.5).astype(np.uint8)
