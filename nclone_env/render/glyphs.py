"""What is drawn: the grey tiles, and every appearance of an entity, a door or the ninja, rasterised at full size.

A *kind* is the number of one appearance. Its alpha and ink, 24 x 24 pixels, are the source of the stamps of every
resolution.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from nclone_env.constants import ENTITY_NAMES, MAX_TILE, REGULAR_DOOR, TRAP_DOOR
from nclone_env.level.records import DOOR_SWITCHES
from nclone_env.render import raster
from nclone_env.render.arrays import ORIENTATIONS, STATES, Glyphs
from nclone_env.render.looks import DOOR_LIES, DOOR_STANDS, Appearance, appearance, layers_of
from nclone_env.render.shapes import PAINTS, tile_outline


@lru_cache(maxsize=1)
def glyphs() -> Glyphs:
    """Return the glyphs, made on the first call."""
    _, kinds, door_kinds = _kinds()
    result = Glyphs(_tiles(), kinds, door_kinds)
    for array in result:
        array.flags.writeable = False
    return result


def full_size_planes() -> np.ndarray:
    """Return (K, 2, 24, 24) float32, 0..255: alpha and ink of every kind; rasterised at every call."""
    pictures = [raster.stamp(layers_of(item), raster.GREYS) for item in _kinds()[0]]
    return np.array([(255 * alpha, ink[..., 0]) for alpha, ink in pictures])


@lru_cache(maxsize=1)
def _kinds() -> tuple[tuple[Appearance, ...], np.ndarray, np.ndarray]:
    """Return everything that is drawn, by kind, and the ``kinds`` and ``door_kinds`` of the glyphs."""
    numbers: dict[Appearance, int] = {}
    kinds = np.full((len(ENTITY_NAMES), ORIENTATIONS, STATES), -1, dtype=np.int16)
    for place in np.ndindex(kinds.shape):
        shown = appearance(*place)
        if shown is not None:
            kinds[place] = numbers.setdefault(shown, len(numbers))
    door_kinds = kinds[: TRAP_DOOR + 1, (DOOR_LIES, DOOR_STANDS)].copy()
    for door, switch in DOOR_SWITCHES.items():
        kinds[door] = kinds[switch]
    kinds[REGULAR_DOOR] = -1
    return tuple(numbers), kinds, door_kinds


def _tiles() -> np.ndarray:
    background, solid = PAINTS["background"].grey, PAINTS["solid"].grey
    covered = np.array([raster.coverage([tile_outline(tile)]) for tile in range(MAX_TILE + 1)])
    return round_half_up(background + covered * (solid - background))


def round_half_up(values: np.ndarray) -> np.ndarray:
    """Return grey levels as uint8, C-contiguous."""
    return np.floor(values + 0.5).astype(np.uint8, order="C")
