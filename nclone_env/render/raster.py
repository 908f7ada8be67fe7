"""From outlines to pixels: coverage of polygons, and composition of layers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from nclone_env.render.arrays import CELL
from nclone_env.render.shapes import PAINTS, Layer

_SAMPLES = 8  # samples per pixel and axis

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
