"""What only the colour pictures have: walls with an edge line where they meet the air, and figures with a light rim.

The edge line lies inside the wall and the rim outside the figure, so both show the same geometry as the grey
observations.
"""

from __future__ import annotations

import math
from functools import lru_cache

import cv2
import numpy as np

from nclone_env.constants import COLUMNS, MAX_TILE, ROWS
from nclone_env.kinds import NINJA
from nclone_env.render import raster
from nclone_env.render.arrays import CELL
from nclone_env.render.looks import Appearance, layers_of
from nclone_env.render.shapes import PAINTS, tile_outline

Colour = tuple[int, int, int]

EDGE: Colour = (38, 43, 62)
"""Of the line along walls."""
_EDGE_WIDTH = 2.0  # world pixels
_RIM: Colour = (250, 250, 252)
_RIM_WIDTH, _NINJA_RIM_WIDTH = 0.75, 1.5  # world pixels
_RIM_OPACITY, _NINJA_RIM_OPACITY = 0.55, 1.0
_FINER = 4  # samples per pixel and axis from which a rim is averaged


@lru_cache(maxsize=16)
def walls(tiles: bytes, magnification: int) -> np.ndarray:
    """Return the picture of a level's tiles.

    Args:
        tiles: numbers of the tiles of the world, 25 rows of 44 bytes.
        magnification: pixels of the picture per pixel of the world, a whole number.

    Returns:
        (600 * magnification, 1056 * magnification, 3) uint8, RGB, read-only: later calls return the same array.
    """
    numbers = np.frombuffer(tiles, np.uint8).reshape(ROWS, COLUMNS)
    cells = _coverages(magnification)[np.where(numbers > MAX_TILE, 0, numbers)]
    side = CELL * magnification
    solid = cells.transpose(0, 2, 1, 3).reshape(ROWS * side, COLUMNS * side)
    inner = cv2.erode(solid, _disc(_EDGE_WIDTH * magnification), borderType=cv2.BORDER_REPLICATE)
    background, edge, fill = (PAINTS["background"].colour, EDGE, PAINTS["solid"].colour)
    picture = np.empty((*solid.shape, 3), np.uint8)
    for channel, (air, line, wall) in enumerate(zip(background, edge, fill, strict=True)):
        picture[..., channel] = air + solid * (line - air) + inner * (wall - line) + 0.5
    picture.flags.writeable = False
    return picture


@lru_cache(maxsize=256)
def colour_stamp(shown: Appearance, magnification: int) -> tuple[np.ndarray, np.ndarray]:
    """Return alpha (n, n, 1) and ink (n, n, 3), float32, of a figure and its rim, n = 24 * magnification."""
    alpha, ink = raster.stamp(layers_of(shown), raster.COLOURS, magnification)
    rim = _rim(shown, magnification) * (1 - alpha)
    return (alpha + rim)[..., None], ink + rim[..., None] * np.array(_RIM, np.float32)


def _rim(shown: Appearance, magnification: int) -> np.ndarray:
    """Return (n, n) float32, 0..1: how much a figure widened by its rim covers of each pixel."""
    is_ninja = shown.type == NINJA
    width, opacity = (_NINJA_RIM_WIDTH, _NINJA_RIM_OPACITY) if is_ninja else (_RIM_WIDTH, _RIM_OPACITY)
    finer = magnification * _FINER
    alpha, _ = raster.stamp(layers_of(shown), raster.GREYS, finer)
    widened = cv2.dilate(alpha, _disc(width * finer))
    side = CELL * magnification
    return opacity * cv2.resize(widened, (side, side), interpolation=cv2.INTER_AREA)


@lru_cache(maxsize=2)
def _coverages(magnification: int) -> np.ndarray:
    """Return (38, n, n) float32, 0..1: how much each tile covers of each pixel."""
    covered = [raster.coverage([tile_outline(tile)], magnification) for tile in range(MAX_TILE + 1)]
    return np.array(covered, np.float32)


def _disc(radius: float) -> np.ndarray:
    """Return the pixels of a disc as an array of 0 and 1 whose side is odd."""
    reach = math.ceil(radius)
    across = np.arange(-reach, reach + 1)
    return (np.hypot(*np.meshgrid(across, across)) <= radius + 0.25).astype(np.uint8)
