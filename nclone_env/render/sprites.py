"""What a program of another language needs to draw a world: its walls, and every appearance as a sprite on one sheet.

The sprite of an appearance has its number in the tables of the glyphs, so what selects a stamp of the grey pictures
selects the sprite as well.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nclone_env.level.raw import RawLevel
from nclone_env.render import raster
from nclone_env.render.arrays import CELL
from nclone_env.render.glyphs import numbered
from nclone_env.render.looks import layers_of
from nclone_env.render.picture import level_picture

SHEET_COLUMNS = 12


def walls_picture(raw: RawLevel) -> np.ndarray:
    """Return the picture of a level without ninja and entities: (600, 1056, 3) uint8, RGB."""
    return level_picture(replace(raw, records=np.empty((0, 5), np.uint8)))


def sprite_sheet(magnification: int = 1) -> np.ndarray:
    """Return all appearances, row by row, ``SHEET_COLUMNS`` in a row.

    Args:
        magnification: pixels of the sheet per pixel of the world, a whole number.

    Returns:
        (rows * n, SHEET_COLUMNS * n, 4) uint8, RGBA with n = 24 * magnification; colours are not multiplied by alpha.
    """
    sprites = [_sprite(*raster.stamp(layers_of(shown), raster.COLOURS, magnification)) for shown in numbered()[0]]
    side, rows = CELL * magnification, -(-len(sprites) // SHEET_COLUMNS)
    cells = np.zeros((rows * SHEET_COLUMNS, side, side, 4), np.uint8)
    cells[: len(sprites)] = sprites
    by_row = cells.reshape(rows, SHEET_COLUMNS, side, side, 4).transpose(0, 2, 1, 3, 4)
    return by_row.reshape(rows * side, SHEET_COLUMNS * side, 4)


def _sprite(alpha: np.ndarray, ink: np.ndarray) -> np.ndarray:
    """Return (n, n, 4) uint8 of a stamp, whose ink is multiplied by its alpha."""
    alpha = alpha.reshape(*ink.shape[:2], 1)
    colour = np.divide(ink, alpha, out=np.zeros_like(ink), where=alpha > 0)
    return (np.concatenate([colour, 255 * alpha], axis=2) + 0.5).clip(0, 255).astype(np.uint8)
