"""Colour pictures of whole levels for people, from the same shapes as the grey observations."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Protocol

import cv2
import numpy as np

from nclone_env.constants import (
    COLUMNS,
    IMMOBILE,
    MAP_UNIT,
    MAX_TILE,
    NINJA,
    ROWS,
    WORLD_HEIGHT,
    WORLD_WIDTH,
)
from nclone_env.level.raw import RawLevel
from nclone_env.render import raster
from nclone_env.render.arrays import CELL
from nclone_env.render.shapes import ENTITY_LAYERS, PAINTS, TOGGLE_MINE, ninja_layers, tile_outline


class HasRaw(Protocol):
    """A compiled level, which keeps the raw one it was made from."""

    @property
    def raw(self) -> RawLevel:
        """The level as its file says it."""
        ...


Item = tuple[float, float, int, int, int]
"""Something to draw: x, y (world pixels), type, state, facing (of the ninja)."""


def world_picture(levels: Any, worlds: Any, index: int, scale: float = 1.0) -> np.ndarray:
    """Return a picture of one world.

    Args:
        levels: packed level arrays.
        worlds: packed world arrays.
        index: which world.
        scale: pixels of the picture per pixel of the world.

    Returns:
        (round(600 * scale), round(1056 * scale), 3) uint8, RGB; a fresh array.
    """
    head = worlds.heads[index]
    level = head["level"]
    first, count = levels.header[level]["first_entity"], levels.header[level]["entity_count"]
    items: list[Item] = [
        (entity["x"], entity["y"], int(entity["type"]), int(state), 0)
        for entity, state in zip(levels.entities[first : first + count], worlds.entity_states[index])
    ]
    items.append((head["x"], head["y"], NINJA, int(head["state"]), int(head["facing"])))
    return _picture(levels.tiles[level], items, scale)


def level_picture(level: RawLevel | HasRaw) -> np.ndarray:
    """Return a picture of a level before play: (600, 1056, 3) uint8, RGB."""
    raw = level if isinstance(level, RawLevel) else level.raw
    tiles = np.ones((ROWS, COLUMNS), dtype=np.uint8)
    tiles[1:-1, 1:-1] = raw.tiles
    items: list[Item] = [
        (x * MAP_UNIT, y * MAP_UNIT, entity_type, int(entity_type == TOGGLE_MINE), 0)
        for entity_type, x, y, _, _ in raw.records[1:].tolist()
        if entity_type != NINJA
    ]
    for _, x, y, _, _ in raw.records[:1].tolist():
        items.append((x * MAP_UNIT, y * MAP_UNIT, NINJA, IMMOBILE, 1))
    return _picture(tiles, items, 1.0)


def _picture(tiles: np.ndarray, items: Iterable[Item], scale: float) -> np.ndarray:
    """Draw tiles (25, 44) and items, later ones on top, at the next whole magnification; then reduce."""
    magnification = max(1, math.ceil(scale))
    side = CELL * magnification
    cells = _tile_colours(magnification)[np.where(tiles > MAX_TILE, 0, tiles)]
    picture = cells.transpose(0, 2, 1, 3, 4).reshape(ROWS * side, COLUMNS * side, 3)
    for x, y, entity_type, state, facing in items:
        if entity_type == NINJA or state in ENTITY_LAYERS.get(entity_type, {}):
            stamp = _colour_stamp(entity_type, state, facing, magnification)
            left, top = round(x * magnification) - side // 2, round(y * magnification) - side // 2
            _put(picture, *stamp, left, top)
    if scale == magnification:
        return picture
    size = (round(WORLD_WIDTH * scale), round(WORLD_HEIGHT * scale))
    return cv2.resize(picture, size, interpolation=cv2.INTER_AREA)


def _put(picture: np.ndarray, alpha: np.ndarray, ink: np.ndarray, left: int, top: int) -> None:
    """Blend a stamp with its upper left corner at (left, top), as far as it is inside the picture."""
    height, width = picture.shape[:2]
    side = len(alpha)
    rows = slice(max(top, 0), max(min(top + side, height), 0))
    columns = slice(max(left, 0), max(min(left + side, width), 0))
    inner = slice(rows.start - top, rows.stop - top), slice(columns.start - left, columns.stop - left)
    below = picture[rows, columns]
    if below.size:
        below[:] = below * (1 - alpha[inner]) + ink[inner] + 0.5


@lru_cache(maxsize=2)
def _tile_colours(magnification: int) -> np.ndarray:
    """Return (38, n, n, 3) uint8 pictures of all tiles."""
    background, solid = (np.array(PAINTS[name].colour, dtype=np.float32) for name in ("background", "solid"))
    covered = [raster.coverage([tile_outline(tile)], magnification) for tile in range(MAX_TILE + 1)]
    mixed = background + np.array(covered)[..., None] * (solid - background)
    return (mixed + 0.5).astype(np.uint8)


@lru_cache(maxsize=128)
def _colour_stamp(entity_type: int, state: int, facing: int, magnification: int) -> tuple[np.ndarray, np.ndarray]:
    """Return alpha (n, n, 1) and ink (n, n, 3), float32, of an entity or the ninja."""
    layers = ninja_layers(state, facing) if entity_type == NINJA else ENTITY_LAYERS[entity_type][state]
    alpha, ink = raster.stamp(layers, raster.COLOURS, magnification)
    return alpha[..., None], ink
