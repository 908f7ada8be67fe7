"""The data with which another language draws a world: its walls, and each appearance as a sprite on one sheet.

The sprite of an appearance has its number in the tables of the glyphs, so the number of a stamp in
the grey pictures is also that of the sprite.
"""

from functools import lru_cache
from typing import Any

import numpy as np

from nclone_env.render import raster
from nclone_env.render.arrays import CELL
from nclone_env.render.colour import LOOKS, figure_of, with_rim
from nclone_env.render.picture import WORLD, Area, world_picture
from nclone_env.render.raster import numbered

SHEET_COLUMNS, SPRITE = 12, CELL + 2
"""Sprites in a row of the sheet, and the side of one, world pixels. The margin of a pixel is empty, so that what draws
sprites at another scale takes nothing from their neighbours."""
_OUT_OF_SIGHT = -1000.0


def walls_picture(levels: Any, worlds: Any, index: int, scale: float = 1.0, area: Area = WORLD) -> np.ndarray:
    """Return the picture of a world without ninja, doors and entities; see :func:`world_picture`."""
    header, ninjas = levels.header.copy(), worlds.ninjas.copy()
    for name in ("door_count", "entity_count", "run_count"):
        header[name] = 0
    header.flags.writeable = False  # as that of the levels: kernels are compiled for read-only levels
    ninjas["x"] = _OUT_OF_SIGHT
    return world_picture(levels._replace(header=header), worlds._replace(ninjas=ninjas), index, scale, area)


@lru_cache(maxsize=1)
def sprite_sheet(magnification: int = 1) -> np.ndarray:
    """Return all appearances, row by row, ``SHEET_COLUMNS`` in a row.

    Args:
        magnification: pixels of the sheet per pixel of the world, a whole number; the rims are smooth from 4.

    Returns:
        (rows * n, SHEET_COLUMNS * n, 4) uint8, RGBA with n = 26 * magnification; colours are not multiplied by alpha.
        Read-only: later calls return the same array.
    """
    coverage = raster.remembered_coverage()
    sprites = []
    for shown in numbered()[0]:
        alpha, ink = raster.stamp(figure_of(shown), LOOKS["light"].paints, magnification, coverage)
        with_rim(shown, alpha, ink, magnification)
        sprites.append(_sprite(alpha, ink))
    side, rows, inner = SPRITE * magnification, -(-len(sprites) // SHEET_COLUMNS), slice(magnification, -magnification)
    cells = np.zeros((rows * SHEET_COLUMNS, side, side, 4), np.uint8)
    cells[: len(sprites), inner, inner] = sprites
    by_row = cells.reshape(rows, SHEET_COLUMNS, side, side, 4).transpose(0, 2, 1, 3, 4)
    sheet = by_row.reshape(rows * side, SHEET_COLUMNS * side, 4)
    sheet.flags.writeable = False
    return sheet


def _sprite(alpha: np.ndarray, ink: np.ndarray) -> np.ndarray:
    """Return (n, n, 4) uint8 of a stamp, whose ink is multiplied by its alpha."""
    alpha = alpha.reshape(*ink.shape[:2], 1)
    colour = np.divide(ink, alpha, out=np.zeros_like(ink), where=alpha > 0)
    return (np.concatenate([colour, 255 * alpha], axis=2) + 0.5).clip(0, 255).astype(np.uint8)
