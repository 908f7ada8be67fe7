"""From outlines to pixels: coverage of polygons, composition of layers, and the glyphs that are made of both.

Glyphs are the grey tiles, and every appearance of an entity, a door or the ninja. Appearances are numbered. The alpha
and ink of one, 24 x 24 pixels, are the source of its stamps at every resolution.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

import numpy as np

from nclone_env.game import DOOR_SWITCHES, KINDS, MAX_TILE
from nclone_env.level import Arrays, Layout, cached_arrays
from nclone_env.render.arrays import CELL, ORIENTATIONS, STATES, Glyphs
from nclone_env.render.looks import DOOR_LIES, DOOR_UPRIGHT, Appearance, appearance, layers_of
from nclone_env.render.shapes import PAINTS, Layer, tile_outline

_SAMPLES = 8  # samples per pixel and axis
_LAYOUT: Layout = {
    "tiles": np.dtype(np.uint8),
    "appearances": np.dtype(np.int16),
    "door_appearances": np.dtype(np.int16),
    "planes": np.dtype(np.float32),
}

Coverage = Callable[[Sequence[np.ndarray], int], np.ndarray]
"""Takes outlines and magnification as :func:`coverage`."""
GREYS: Mapping[str, tuple[int, ...]] = {name: (paint.grey,) for name, paint in PAINTS.items()}
COLOURS: Mapping[str, tuple[int, ...]] = {name: paint.colour for name, paint in PAINTS.items()}


def coverage(outlines: Sequence[np.ndarray], magnification: int = 1) -> np.ndarray:
    """Return the share of each pixel of one cell that lies inside outlines, by the even-odd rule.

    Regular samples are tested exactly, then averaged: unlike a drawing library's filled polygons, edges on
    pixel boundaries stay sharp and shapes do not grow by a border.

    Args:
        outlines: polygons, each (P, 2) float64, in cell coordinates 0..24.
        magnification: pixels of the result per pixel of the world, a whole number.

    Returns:
        (24 * magnification, 24 * magnification) float32, 0..1.
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


def remembered_coverage() -> Coverage:
    """Return a function like :func:`coverage` that computes each shape once: appearances share most layers."""
    known: dict[tuple[int, tuple[bytes, ...]], np.ndarray] = {}

    def remembered(outlines: Sequence[np.ndarray], magnification: int) -> np.ndarray:
        key = magnification, tuple(outline.tobytes() for outline in outlines)
        if key not in known:
            known[key] = coverage(outlines, magnification)
        return known[key]

    return remembered


def stamp(
    layers: Sequence[Layer], inks: Mapping[str, tuple[int, ...]], magnification: int = 1, coverage: Coverage = coverage
) -> tuple[np.ndarray, np.ndarray]:
    """Return one cell-sized stamp, centred, composed of layers.

    Args:
        layers: lowest first; outlines are relative to the centre.
        inks: paint name to its C channels, ``GREYS`` or ``COLOURS``.
        magnification: pixels of the result per pixel of the world, a whole number.
        coverage: gives the same results as :func:`coverage`.

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
    drawn = _cached()
    return Glyphs(*(drawn[name] for name in Glyphs._fields))


def full_size_planes() -> np.ndarray:
    """Return (K, 2, 24, 24) float32, 0..255, read-only: alpha and ink of every appearance."""
    return _cached()["planes"]


def _cached() -> Arrays:
    return cached_arrays("glyphs", "", _LAYOUT, _drawn)


def _drawn() -> dict[str, np.ndarray]:
    shown, numbers, door_numbers = numbered()
    covers = remembered_coverage()
    pictures = [stamp(layers_of(item), GREYS, coverage=covers) for item in shown]
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
