"""The grey pictures of all tiles, entities and ninja postures, rasterised once for the kernels.

A *kind* is one appearance: an entity type in one state, or the ninja in one state and facing. Each kind has a
stamp at full resolution and, for the global view, small stamps at 4 x 4 sub-pixel phases. Stamps hold alpha
and ink (already multiplied by alpha); pixel b becomes ``round(b * (255 - alpha) / 255) + ink``, which cannot
overflow.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from nclone_env.constants import ENTITY_NAMES, MAX_TILE, NINJA, WORLD_HEIGHT, WORLD_WIDTH
from nclone_env.memory_tree import MemoryNode, array_group
from nclone_env.render import raster
from nclone_env.render.shapes import CELL, ENTITY_LAYERS, PAINTS, POSTURES, Layer, ninja_layers, tile_outline

GLOBAL_WIDTH, GLOBAL_HEIGHT = 256, 128
SCALE_X, SCALE_Y = WORLD_WIDTH / GLOBAL_WIDTH, WORLD_HEIGHT / GLOBAL_HEIGHT  # 4.125 and 4.6875 world pixels
PHASES = 4  # sub-pixel positions of a global stamp, per axis
GLOBAL_SIDE = 7  # pixels of a global stamp, per axis; the centre lies in pixel GLOBAL_CENTRE
GLOBAL_CENTRE = 3
STATES = 20  # columns of the table of stamps: state of an entity, or state + 10 * (facing right) of the ninja
FACING_RIGHT = 10


class Glyphs(NamedTuple):
    """Read-only arrays for the kernels; K kinds.

    Attributes:
        tiles: (38, 24, 24) uint8; the grey pixels of each tile.
        stamps: (K, 1, 2, 24, 24) uint8; alpha and ink, centred on the corner between pixels 11 and 12.
        global_stamps: (K, 16, 2, 7, 7) uint8; alpha and ink for phase 4 * y + x, centred in pixel 3.
        boxes: (2, K, 4) int64; first row, end row, first column, end column of what a stamp (0) and a global
            stamp (1, over all phases) covers.
        kinds: (29, 20) int64; kind by type and state, -1 if nothing is drawn. Row 0 is the ninja: columns
            0..9 are its states facing left, 10..19 facing right.
    """

    tiles: np.ndarray
    stamps: np.ndarray
    global_stamps: np.ndarray
    boxes: np.ndarray
    kinds: np.ndarray

    def memory(self) -> MemoryNode:
        """Return the bytes of all arrays; every environment shares them."""
        return array_group("glyphs", self._asdict(), shared=True)


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
