"""The grey tiles, and every appearance of an entity, a door or the ninja, rasterised at full size.

Appearances are numbered. The alpha and ink of one, 24 x 24 pixels, are the source of its stamps at every resolution.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from nclone_env.constants import MAX_TILE
from nclone_env.kinds import DOOR_SWITCHES, KINDS
from nclone_env.render import raster
from nclone_env.render.arrays import ORIENTATIONS, STATES, Glyphs
from nclone_env.render.looks import DOOR_LIES, DOOR_UPRIGHT, Appearance, appearance, layers_of
from nclone_env.render.shapes import PAINTS, tile_outline


@lru_cache(maxsize=1)
def all_glyphs() -> Glyphs:
    """Return the glyphs, created on the first call."""
    _, numbers, door_numbers = numbered()
    result = Glyphs(_tiles(), numbers, door_numbers)
    for array in result:
        array.flags.writeable = False
    return result


def full_size_planes() -> np.ndarray:
    """Return (K, 2, 24, 24) float32, 0..255: alpha and ink of every appearance; rasterised at every call."""
    coverage = raster.remembered_coverage()
    pictures = [raster.stamp(layers_of(item), raster.GREYS, coverage=coverage) for item in numbered()[0]]
    return np.array([(255 * alpha, ink[..., 0]) for alpha, ink in pictures])


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
    covered = np.array([raster.coverage([tile_outline(tile)]) for tile in range(MAX_TILE + 1)])
    return round_half_up(background + covered * (solid - background))


def round_half_up(values: np.ndarray) -> np.ndarray:
    """Return grey levels as uint8, C-contiguous."""
    return np.floor(values + 0.5).astype(np.uint8, order="C")
