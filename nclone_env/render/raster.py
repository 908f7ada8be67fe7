"""From outlines to pixels: coverage of polygons, glyphs, and the world at any scale.

Glyphs are the grey tiles, and every appearance of an entity, a door or the ninja. Appearances are numbered. The alpha
and ink of one, 24 x 24 pixels, are the source of its stamps at every resolution, one for each sub-pixel phase. Pixel b
under a stamp becomes ``round(b * (255 - alpha) / 255) + ink``, which cannot overflow, as ink is already multiplied by
alpha. Tiles of every level are resampled once.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

import numpy as np

from nclone_env._arrays import Arrays, Layout, cached_arrays
from nclone_env.config import RenderConfig
from nclone_env.game import COLUMNS, DOOR_SWITCHES, KINDS, MAX_TILE, ROWS, WORLD_HEIGHT, WORLD_WIDTH
from nclone_env.jit import BLENDED
from nclone_env.level import LevelArrays
from nclone_env.render.arrays import (
    CELL,
    NO_LAYERS,
    ORIENTATIONS,
    PHASES,
    STATES,
    Glyphs,
    Resolution,
)
from nclone_env.render.looks import DOOR_LIES, DOOR_UPRIGHT, Appearance, appearance, layers_of
from nclone_env.render.shapes import PAINTS, Layer, tile_outline

_SAMPLES = 8  # samples per pixel and axis
_LAYOUT: Layout = {
    "tiles": np.dtype(np.uint8),
    "appearances": np.dtype(np.int16),
    "door_appearances": np.dtype(np.int16),
    "planes": np.dtype(np.float32),
}

GREYS: Mapping[str, tuple[int, ...]] = {name: (paint.grey,) for name, paint in PAINTS.items()}
COLOURS: Mapping[str, tuple[int, ...]] = {name: paint.colour for name, paint in PAINTS.items()}

Scale = tuple[float, float]
"""Width and height of a pixel of the picture, world pixels."""
DrawLayers = Callable[[Scale, tuple[int, int]], np.ndarray]
"""Scale, rows and columns to the layers of all levels."""
_FULL_SIZE: Scale = (1.0, 1.0)
_HALF = CELL / 2
_TINY = 1e-9  # of a pixel: above the rounding error at the edge of the world


def coverage(outlines: Sequence[np.ndarray], magnification: int = 1) -> np.ndarray:
    """Return the share of each pixel of one cell that lies inside outlines, by the even-odd rule.

    Regular samples are tested exactly, then averaged: unlike a drawing library's filled polygons, edges on
    pixel boundaries stay sharp and shapes do not grow by a border.

    The outlines are polygons, (P, 2) float64 each, in cell coordinates 0..24. The result is (24 * magnification, 24 *
    magnification) float32, 0..1.
    """
    side = CELL * magnification
    result = np.zeros((side, side), dtype=np.float32)
    corners = np.concatenate([np.empty((0, 2)), *outlines]) * magnification
    if len(corners) == 0:
        return result
    left, top = np.floor(corners.min(axis=0)).clip(0, side).astype(int)  # no pixel outside of this box is covered
    right, bottom = np.ceil(corners.max(axis=0)).clip(0, side).astype(int)
    centres = (np.arange(side * _SAMPLES) + 0.5) / (_SAMPLES * magnification)
    columns, rows = centres[left * _SAMPLES : right * _SAMPLES], centres[top * _SAMPLES : bottom * _SAMPLES]
    numbers = np.arange(rows.size)
    changes = np.zeros((columns.size + 1, rows.size), dtype=np.bool_)  # [samples left of an edge, row of samples]
    for outline in outlines:
        for (ax, ay), (bx, by) in zip(outline, np.roll(outline, -1, axis=0), strict=True):
            if ay != by:
                first, last = np.searchsorted(rows, (min(ay, by), max(ay, by)))
                crossing = ax + (rows[first:last] - ay) * ((bx - ax) / (by - ay))
                changes[np.searchsorted(columns, crossing), numbers[first:last]] ^= True
    inside = np.bitwise_xor.accumulate(changes[:0:-1], axis=0)[::-1]
    covered = inside.reshape(right - left, _SAMPLES, rows.size).sum(axis=1, dtype=np.uint8)
    covered = covered.reshape(right - left, bottom - top, _SAMPLES).sum(axis=2, dtype=np.uint8)
    result[top:bottom, left:right] = covered.T
    return result / np.float32(_SAMPLES**2)


def stamp(
    layers: Sequence[Layer], inks: Mapping[str, tuple[int, ...]], magnification: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """Return one cell-sized stamp, centred, composed of layers, lowest first, with outlines relative to the centre.

    Returns:
        alpha (n, n) float32, 0..1, and ink (n, n, C) float32, 0..255, already multiplied by alpha: over a
        background b the result is ``b * (1 - alpha) + ink``.
    """
    side = CELL * magnification
    alpha = np.zeros((side, side), dtype=np.float32)
    ink = np.zeros((side, side, len(inks["background"])), dtype=np.float32)
    for layer in layers:
        covered = coverage([outline + CELL / 2 for outline in layer.outlines], magnification)
        alpha += covered * (1 - alpha)
        ink += covered[..., None] * (np.array(inks[layer.paint], dtype=np.float32) - ink)
    return alpha, ink


@lru_cache(maxsize=1)
def all_glyphs() -> Glyphs:
    """Return the glyphs, drawn once per machine."""
    drawn = cached_glyphs()
    return Glyphs(*(drawn[name] for name in Glyphs._fields))


def cached_glyphs() -> Arrays:
    """Return the arrays of the glyphs by name, with the ``planes`` from which stamps are made, read-only."""
    return cached_arrays("glyphs", "", _LAYOUT, _drawn)


def _drawn() -> dict[str, np.ndarray]:
    shown, numbers, door_numbers = numbered()
    pictures = [stamp(layers_of(item), GREYS) for item in shown]
    planes = np.array([(255 * alpha, ink[..., 0]) for alpha, ink in pictures])
    return {"tiles": _tiles(), "appearances": numbers, "door_appearances": door_numbers, "planes": planes}


@lru_cache(maxsize=1)
def numbered() -> tuple[tuple[Appearance, ...], np.ndarray, np.ndarray]:
    """Return all appearances by number, and the ``appearances`` and ``door_appearances`` of the glyphs."""
    found: dict[Appearance, int] = {}
    numbers = np.full((len(KINDS), ORIENTATIONS, STATES), -1, dtype=np.int16)
    for place in np.ndindex(numbers.shape):
        shown = appearance(*place)
        if shown is not None:
            numbers[place] = found.setdefault(shown, len(found))
    doors = [kind.number for kind in KINDS if kind.is_door]
    door_numbers = numbers[: max(doors) + 1, (DOOR_LIES, DOOR_UPRIGHT)].copy()
    for door in doors:
        numbers[door] = numbers[DOOR_SWITCHES[door]] if door in DOOR_SWITCHES else -1
    return tuple(found), numbers, door_numbers


def _tiles() -> np.ndarray:
    background, solid = PAINTS["background"].grey, PAINTS["solid"].grey
    covered = np.array([coverage([tile_outline(tile)]) for tile in range(MAX_TILE + 1)])
    return round_half_up(background + covered * (solid - background))


def round_half_up(values: np.ndarray) -> np.ndarray:
    """Return grey levels as uint8, C-contiguous."""
    return np.floor(values + 0.5).astype(np.uint8, order="C")


def frame_resolution(sizes: RenderConfig, draw: DrawLayers) -> Resolution:
    """Return the world at the scale of ``player_frame``; without layers at full size, where glyphs show the tiles.

    ``draw`` returns ``static_layers`` of the levels.
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
    """Return the tiles of every level averaged over the area of each pixel, (L, *shape) uint8, read-only.

    ``scale`` is width and height of a pixel, ``shape`` the rows and columns from the upper left corner of the world,
    beyond which all is solid.
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
    total, found = picture, []
    for axis in (0, 1):
        edges = np.arange(shape[axis] + 1) * scale[1 - axis]
        before = np.minimum(edges.astype(np.int64), picture.shape[axis] - 1)
        places = np.unique([before, before + 1])
        total = _integral(total, axis, places)
        found.append((np.searchsorted(places, before), np.expand_dims(np.minimum(edges - before, 1.0), 1 - axis)))
    for axis, (before, after) in enumerate(found):  # linear in both directions within a pixel
        total = np.diff(total.take(before, axis) * (1.0 - after) + total.take(before + 1, axis) * after, axis=axis)
    return total / (scale[0] * scale[1])


def _integral(values: np.ndarray, axis: int, places: np.ndarray) -> np.ndarray:
    """Return the sums of integers before each of some places along an axis; they ascend from 0 to the size at most."""
    parts = np.add.reduceat(values, places[places < values.shape[axis]], axis=axis, dtype=np.int32)
    sums = np.insert(parts, 0, 0, axis=axis)
    return np.cumsum(sums, axis=axis, dtype=np.int32).take(np.arange(len(places)), axis)


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
    planes = cached_glyphs()["planes"]  # (K, 2, 24, 24) float32, 0..255: alpha and ink of every appearance
    stamps = round_half_up(planes[:, None] if scale == _FULL_SIZE else _reduced(planes, scale))
    beyond = -stamps.shape[-1] % BLENDED  # kernels blend so many pixels at a time
    stamps = np.pad(stamps, (*((0, 0),) * 4, (0, beyond)))
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
