"""Colour pictures of whole levels for people, from the same shapes as the grey observations."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache, partial
from typing import Any

import cv2
import numpy as np

from nclone_env.constants import COLUMNS, IMMOBILE, MAP_UNIT, MAX_TILE, ROWS, WORLD_HEIGHT, WORLD_WIDTH
from nclone_env.jit import kernel
from nclone_env.kinds import DOOR_SWITCHES, KINDS, LASER_TURRET, NINJA, REGULAR_DOOR, ROCKET_TURRET, initial_state
from nclone_env.level.level import Level
from nclone_env.level.raw import RawLevel
from nclone_env.render import raster
from nclone_env.render.arrays import CELL, FACES_LEFT, FACES_RIGHT
from nclone_env.render.beams import BEAM_COLOURS, draw_beams
from nclone_env.render.looks import (
    DOOR_LIES,
    DOOR_UPRIGHT,
    Appearance,
    appearance,
    layers_of,
)
from nclone_env.render.shapes import PAINTS, tile_outline
from nclone_env.sim.entities.laser.turret import orientation as beam_orientation
from nclone_env.sim.entities.rocket_turret import is_flying
from nclone_env.sim.query import place_of

_SHOOTING = tuple(kind.number for kind in KINDS if kind.shoots)
_DOORS = tuple(kind.number for kind in KINDS if kind.is_door)


Item = tuple[float, float, Appearance | None]
"""Drawn at x, y (world pixels): an appearance, or nothing."""


def world_picture(levels: Any, worlds: Any, index: int, scale: float = 1.0) -> np.ndarray:
    """Return a picture of one world.

    Args:
        levels: packed level arrays.
        worlds: packed world arrays.
        index: world.
        scale: pixels of the picture per pixel of the world.

    Returns:
        (round(600 * scale), round(1056 * scale), 3) uint8, RGB; a new array.
    """
    ninja = worlds.ninjas[index]
    header, states = levels.header[ninja["level"]], worlds.entity_states[index]
    items: list[Item] = []
    for door in levels.doors[header["first_door"] :][: header["door_count"]]:
        orientation = DOOR_UPRIGHT if door["vertical"] else DOOR_LIES
        shown = appearance(int(door["type"]), orientation, int(states[door["owner"]]))
        items.append((float(door["x"]), float(door["y"]), shown))
    entities = levels.entities[header["first_entity"] :][: header["entity_count"]]
    places = np.empty((len(entities), 2))
    find_places(entities, worlds, index, places)
    for entity, state, (x, y) in zip(entities, states.tolist(), places.tolist()):
        items.extend(_entity_items(entity, state, x, y, worlds.movers[index]))
    orientation = FACES_RIGHT if ninja["facing"] >= 0 else FACES_LEFT
    items.append((float(ninja["x"]), float(ninja["y"]), appearance(NINJA, orientation, int(ninja["state"]))))
    return _picture(levels.tiles[ninja["level"]], items, scale, partial(_draw_beams, levels, worlds, index))


def _draw_beams(levels: Any, worlds: Any, index: int, picture: np.ndarray) -> None:
    """Draw the beams of a world into a picture of a whole number of pixels per pixel of the world.

    The kernel is only called, and so compiled, if an entity can shoot.
    """
    header = levels.header[worlds.ninjas[index]["level"]]
    kinds = levels.entities["type"][header["first_entity"] :][: header["entity_count"]]
    if np.isin(kinds, _SHOOTING).any():
        magnification = picture.shape[0] / WORLD_HEIGHT
        draw_beams(levels, worlds, index, BEAM_COLOURS, (0.0, 0.0, magnification, magnification), picture)


def _no_beams(picture: np.ndarray) -> None:
    """Draw nothing: no entity shoots before play."""


@kernel
def find_places(entities, worlds, index, out):
    """Write the present position of each entity, pixels, into ``out``, (E, 2)."""
    for slot in range(entities.shape[0]):
        out[slot, 0], out[slot, 1] = place_of(worlds, index, entities[slot])


def _entity_items(entity: np.void, state: int, x: float, y: float, movers: np.ndarray) -> Iterator[Item]:
    """Yield the items of an entity at (x, y); of a door only its switch."""
    kind, orientation = int(entity["type"]), int(entity["orientation"])
    if kind == LASER_TURRET:
        orientation = beam_orientation(movers[entity["mover"]])
    if kind == ROCKET_TURRET and is_flying(state):
        yield float(entity["x"]), float(entity["y"]), appearance(kind, 0, 0)
    if kind != REGULAR_DOOR:
        yield x, y, appearance(DOOR_SWITCHES.get(kind, kind), orientation, state)


def level_picture(level: RawLevel | Level) -> np.ndarray:
    """Return a picture of a level before play: (600, 1056, 3) uint8, RGB."""
    raw = level if isinstance(level, RawLevel) else level.raw
    tiles = np.ones((ROWS, COLUMNS), dtype=np.uint8)
    tiles[1:-1, 1:-1] = raw.tiles
    items: list[Item] = []
    for kind, x, y, orientation, _ in sorted(raw.records[1:].tolist(), key=_drawing_order):
        if kind != NINJA:  # further ninjas are for levels with two players
            shown = appearance(kind, orientation, initial_state(kind, orientation))
            items.append((x * MAP_UNIT, y * MAP_UNIT, shown))
    for _, x, y, _, _ in raw.records[:1].tolist():
        items.append((x * MAP_UNIT, y * MAP_UNIT, appearance(NINJA, FACES_RIGHT, IMMOBILE)))
    return _picture(tiles, items, 1.0)


def _drawing_order(record: list[int]) -> tuple[bool, int]:
    """Return the sort key for the drawing order of a world: doors, then the rest by type."""
    return record[0] not in _DOORS, record[0]


def _picture(
    tiles: np.ndarray, items: Iterable[Item], scale: float, beams: Callable[[np.ndarray], None] = _no_beams
) -> np.ndarray:
    """Draw tiles (25, 44), beams and items, later ones on top, at the next whole magnification; then reduce."""
    magnification = max(1, math.ceil(scale))
    side = CELL * magnification
    cells = _tile_colours(magnification)[np.where(tiles > MAX_TILE, 0, tiles)]
    picture = cells.transpose(0, 2, 1, 3, 4).reshape(ROWS * side, COLUMNS * side, 3)
    beams(picture)
    for x, y, shown in items:
        if shown is not None:
            left, top = round(x * magnification) - side // 2, round(y * magnification) - side // 2
            _put(picture, *_colour_stamp(shown, magnification), left, top)
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


@lru_cache(maxsize=256)
def _colour_stamp(shown: Appearance, magnification: int) -> tuple[np.ndarray, np.ndarray]:
    """Return alpha (n, n, 1) and ink (n, n, 3), float32."""
    alpha, ink = raster.stamp(layers_of(shown), raster.COLOURS, magnification)
    return alpha[..., None], ink
