"""The world at any scale: the tiles of every level resampled once, and stamps of everything else at sub-pixel phases.

A stamp holds alpha and ink (already multiplied by alpha); pixel b becomes ``round(b * (255 - alpha) / 255) + ink``,
which cannot overflow.
"""

import math
from collections.abc import Callable
from functools import lru_cache

import cv2
import numpy as np

from nclone_env.config import RenderConfig
from nclone_env.game import COLUMNS, MAX_TILE, ROWS, WORLD_HEIGHT, WORLD_WIDTH
from nclone_env.level import LevelArrays
from nclone_env.render.arrays import CELL, NO_LAYERS, PHASES, Resolution
from nclone_env.render.raster import all_glyphs, full_size_planes, round_half_up
from nclone_env.render.shapes import PAINTS

Scale = tuple[float, float]
"""Width and height of a pixel of the picture, world pixels."""
DrawLayers = Callable[[Scale, tuple[int, int]], np.ndarray]
"""Scale, rows and columns to the layers of all levels."""
_FULL_SIZE: Scale = (1.0, 1.0)
_HALF = CELL / 2
_TINY = 1e-9  # of a pixel: above the rounding error at the edge of the world


def frame_resolution(sizes: RenderConfig, draw: DrawLayers) -> Resolution:
    """Return the world at the scale of ``player_frame``; without layers at full size, where glyphs show the tiles.

    Args:
        draw: returns ``static_layers`` of the levels.
    """
    scale = (sizes.pixel_side,) * 2
    if scale == _FULL_SIZE:
        return _resolution(scale, NO_LAYERS)
    height, width = (math.ceil(side / scale[0] - _TINY) for side in (WORLD_HEIGHT, WORLD_WIDTH))
    return _resolution(scale, draw(scale, (height, width)))


def view_resolution(sizes: RenderConfig, draw: DrawLayers) -> Resolution:
    """Return the world at the scale of ``global_view``; arguments as of :func:`frame_resolution`."""
    height, width = sizes.view_shape
    scale = (WORLD_WIDTH / width, WORLD_HEIGHT / height)
    return _resolution(scale, draw(scale, (height, width)))


def static_layers(levels: LevelArrays, scale: Scale, shape: tuple[int, int]) -> np.ndarray:
    """Return the tiles of every level, averaged over the area of each pixel.

    Args:
        scale: width and height of a pixel.
        shape: rows and columns from the upper left corner of the world; solid beyond it.

    Returns:
        (L, *shape) uint8, read-only, the averages rounded to nearest.
    """
    layers = np.empty((len(levels.tiles), *shape), dtype=np.uint8)
    beyond = [(0, max(math.ceil(n * s) - m, 0)) for n, s, m in zip(shape, scale[::-1], (WORLD_HEIGHT, WORLD_WIDTH))]
    for tiles, layer in zip(levels.tiles, layers, strict=True):
        cells = all_glyphs().tiles[np.where(tiles > MAX_TILE, 0, tiles)]
        picture = cells.transpose(0, 2, 1, 3).reshape(ROWS * CELL, COLUMNS * CELL)
        picture = np.pad(picture, beyond, constant_values=PAINTS["solid"].grey)
        layer[:] = round_half_up(area_average(picture, scale, shape))
    layers.flags.writeable = False
    return layers


def area_average(picture: np.ndarray, scale: Scale, shape: tuple[int, int]) -> np.ndarray:
    """Return (*shape) float64: exact averages of a (h, w) uint8 picture, from differences of its integral."""
    total = cv2.integral(picture)  # linear in both directions within a pixel
    for axis in (0, 1):
        edges = np.arange(shape[axis] + 1) * scale[1 - axis]
        before = np.minimum(edges.astype(np.int64), picture.shape[axis] - 1)
        after = np.expand_dims(np.minimum(edges - before, 1.0), 1 - axis)
        total = total.take(before, axis) * (1.0 - after) + total.take(before + 1, axis) * after
        total = np.diff(total, axis=axis)
    return total / (scale[0] * scale[1])


def _resolution(scale: Scale, layers: np.ndarray) -> Resolution:
    stamps, boxes = _stamps(scale)
    centre = np.array([_centre(step) for step in scale], dtype=np.int64)
    result = Resolution(np.array(scale), stamps, centre, boxes, layers)
    for array in result:
        array.flags.writeable = False
    return result


@lru_cache(maxsize=8)
def _stamps(scale: Scale) -> tuple[np.ndarray, np.ndarray]:
    """Return the stamps and boxes of a scale, rasterised on first use."""
    planes = full_size_planes()
    stamps = round_half_up(planes[:, None] if scale == _FULL_SIZE else _reduced(planes, scale))
    return stamps, np.array([_box(item[:, 0].max(0)) for item in stamps])


def _reduced(planes: np.ndarray, scale: Scale) -> np.ndarray:
    """Return (K, 16, 2, h, w): area averages of (K, 2, 24, 24) planes at every phase.

    Each row is computed from the full-size rows that contribute to it alone.
    """
    columns, rows = (_area_weights(step) for step in scale)
    averaged = np.zeros((len(planes), PHASES, PHASES, 2, rows.shape[1], columns.shape[1]))
    for phase, row in np.ndindex(rows.shape[:2]):
        above = np.flatnonzero(rows[phase, row])
        shares = rows[phase, row, above]
        averaged[:, phase, :, :, row] = np.einsum("i,kaij,qcj->kqac", shares, planes[:, :, above], columns)
    return averaged.reshape(len(planes), PHASES * PHASES, *averaged.shape[3:])


def _centre(step: float) -> int:
    """Return the pixel of a stamp that begins at its centre at phase 0: no part lies before the first pixel."""
    return math.ceil(_HALF / step)


def _area_weights(step: float) -> np.ndarray:
    """Return (4, n, 24): the share of each of n pixels that each full-size pixel covers, by phase."""
    centre = _centre(step) + np.arange(PHASES)[:, None, None] / PHASES
    fine = np.arange(CELL) - _HALF
    coarse = np.arange(math.ceil(centre.max() + _HALF / step))[:, None]
    start = np.maximum(coarse, centre + fine / step)
    end = np.minimum(coarse + 1, centre + (fine + 1) / step)
    return np.maximum(end - start, 0.0)


def _box(alpha: np.ndarray) -> tuple[int, int, int, int]:
    rows, columns = np.flatnonzero(alpha.any(axis=1)), np.flatnonzero(alpha.any(axis=0))
    if not rows.size:
        return 0, 0, 0, 0
    return int(rows[0]), int(rows[-1]) + 1, int(columns[0]), int(columns[-1]) + 1
