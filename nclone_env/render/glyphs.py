"""The grey pictures of all tiles, entities and ninja postures, rasterised once for the kernels.

A *kind* is one appearance: an entity type in one state, or the ninja in one state and facing. Each kind has a
stamp at full resolution and, for the global view, small stamps at 4 x 4 sub-pixel phases. Stamps hold alpha
and ink (already multiplied by alpha); pixel b becomes ``round(b * (255 - alpha) / 255) + ink``, which cannot
overflow.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import cv2
import numpy as np

from nclone_env.constants import COLUMNS, ENTITY_NAMES, MAX_TILE, NINJA, ROWS
from nclone_env.level.library import LevelArrays
from nclone_env.render import raster
from nclone_env.render.arrays import (
    CELL,
    FACING_RIGHT,
    GLOBAL_CENTRE,
    GLOBAL_HEIGHT,
    GLOBAL_SIDE,
    GLOBAL_WIDTH,
    PHASES,
    SCALE_X,
    SCALE_Y,
    STATES,
    Glyphs,
)
from nclone_env.render.shapes import ENTITY_LAYERS, PAINTS, POSTURES, Layer, ninja_layers, tile_outline


@lru_cache(maxsize=1)
def glyphs() -> Glyphs:
    """Return the glyphs, rasterised on the first call."""
    numbers, layers = zip(*_kinds(), strict=True)
    kinds = np.full((len(ENTITY_NAMES), STATES), -1, dtype=np.int64)
    for kind, (entity_type, state) in enumerate(numbers):
        kinds[entity_type, state] = kind
    pictures = [raster.stamp(item, raster.GREYS) for item in layers]
    planes = np.array([(255 * alpha, ink[..., 0]) for alpha, ink in pictures])
    stamps = _round(planes[:, None])
    global_stamps = _round(_global_planes(planes))
    boxes = np.array([[_box(item[:, 0].max(0)) for item in group] for group in (stamps, global_stamps)])
    result = Glyphs(_tiles(), stamps, global_stamps, boxes, kinds)
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


def _kinds() -> Iterator[tuple[tuple[int, int], tuple[Layer, ...]]]:
    """Yield ((type, column of the table of kinds), layers) of everything that is drawn."""
    for entity_type, states in ENTITY_LAYERS.items():
        for state, layers in states.items():
            yield (entity_type, state), layers
    for state in POSTURES:
        yield (NINJA, state), ninja_layers(state, -1)
        yield (NINJA, state + FACING_RIGHT), ninja_layers(state, 1)


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
