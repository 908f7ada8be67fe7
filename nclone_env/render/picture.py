"""Colour pictures of levels, or of the parts that they use, for people: of the same shapes as the grey observations.

For another language that draws a world there are its walls, and each appearance as a sprite on one sheet. The sprite of
an appearance has its number in the tables of the glyphs, so the number of a stamp in the grey pictures is also that of
the sprite.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, NamedTuple

import cv2
import numpy as np

from nclone_env.game import (
    COLUMNS,
    IMMOBILE,
    KINDS,
    MAP_UNIT,
    NINJA,
    ROWS,
    RUNNING,
    WORLD_HEIGHT,
    WORLD_WIDTH,
    initial_state,
)
from nclone_env.level import Level, RawLevel, played_records
from nclone_env.render import raster
from nclone_env.render.arrays import CELL, FACES_LEFT, FACES_RIGHT
from nclone_env.render.colour import PALETTES, Stamp, Theme, add_rim, colour_stamp, figure_of, walls, widened
from nclone_env.render.compose import BEAM_COLOURS, BEAM_WIDTHS, draw_beams, list_sprites
from nclone_env.render.looks import Appearance, appearance
from nclone_env.render.raster import all_glyphs, numbered

_FULL_TILE = 1
_LARGEST_ZOOM = 2.0
_SHOOTING = tuple(kind.number for kind in KINDS if kind.shoots)
_DOORS = tuple(kind.number for kind in KINDS if kind.is_door)
_GHOST_OPACITY = 0.4
_LOSSLESS = (cv2.IMWRITE_WEBP_QUALITY, 101)
Item = tuple[float, float, Appearance | None]
"""Drawn at x, y (world pixels): an appearance, or nothing."""

_SHEET_COLUMNS, _SPRITE = 12, CELL + 2
_OUT_OF_SIGHT = -1000.0


class Area(NamedTuple):
    """A rectangle of the world: its upper left corner and its size, whole pixels."""

    left: int
    top: int
    width: int
    height: int


WORLD = Area(0, 0, WORLD_WIDTH, WORLD_HEIGHT)


def used_area(tiles: np.ndarray, places: np.ndarray) -> Area:
    """Return the smallest area of whole cells that contains all non-solid cells, with one cell of wall around it.

    The tiles are (25, 44); the cells of ``places``, (k, 2) pixels, count too: entities may lie in walls. If nothing is
    left, it is the world.
    """
    used = tiles != _FULL_TILE
    columns, rows = (places // CELL).astype(np.int64).T
    inside = (columns >= 0) & (columns < COLUMNS) & (rows >= 0) & (rows < ROWS)
    used[rows[inside], columns[inside]] = True
    if not used.any():
        return WORLD
    across, down = np.flatnonzero(used.any(axis=0)), np.flatnonzero(used.any(axis=1))
    left, right = max(int(across[0]) - 1, 0), min(int(across[-1]) + 2, COLUMNS)
    top, bottom = max(int(down[0]) - 1, 0), min(int(down[-1]) + 2, ROWS)
    return Area(left * CELL, top * CELL, (right - left) * CELL, (bottom - top) * CELL)


def zoom_of(area: Area) -> float:
    """Return how much a part of the world is enlarged: at most twice, and to no more than the size of the world."""
    return min(_LARGEST_ZOOM, WORLD_WIDTH / area.width, WORLD_HEIGHT / area.height)


def union(areas: Iterable[Area]) -> Area:
    """Return the smallest area that contains some areas, at least one."""
    corners = [(area.left, area.top, area.left + area.width, area.top + area.height) for area in areas]
    lefts, tops, rights, bottoms = zip(*corners)
    left, top = min(lefts), min(tops)
    return Area(left, top, max(rights) - left, max(bottoms) - top)


def world_picture(
    levels: Any,
    worlds: Any,
    index: int,
    scale: float = 1.0,
    area: Area = WORLD,
    ghosts: Iterable[np.void] = (),
    theme: Theme = "light",
) -> np.ndarray:
    """Return a new picture of one world, (round(area.height * scale), round(area.width * scale), 3) uint8, RGB.

    Ghosts are ``NINJA_RECORD`` of ninjas of other runs, drawn translucent.
    """
    ninja = worlds.ninjas[index]
    header, shown = levels.header[ninja["level"]], numbered()[0]
    rows = np.empty((int(header["door_count"] + 2 * header["entity_count"] + 1), 3))
    count = list_sprites(levels, worlds, index, all_glyphs(), rows)
    sprites = [(x, y, shown[int(number)] if number >= 0 else None) for number, x, y in rows[:count].tolist()]
    canvas = PictureCanvas(levels.tiles[ninja["level"]], scale, area, theme)
    _draw_beams(levels, worlds, index, canvas)
    canvas.draw(sprites[:-1])
    canvas.draw(map(_ninja_item, ghosts), _GHOST_OPACITY)
    canvas.draw(sprites[-1:])
    return canvas.picture()


def _ninja_item(ninja: np.void) -> Item:
    orientation = FACES_RIGHT if ninja["facing"] >= 0 else FACES_LEFT
    return float(ninja["x"]), float(ninja["y"]), appearance(NINJA, orientation, int(ninja["state"]))


def _draw_beams(levels: Any, worlds: Any, index: int, canvas: PictureCanvas) -> None:
    """Draw the beams of a world.

    The kernel is only called, and so compiled, if an entity can shoot.
    """
    header = levels.header[worlds.ninjas[index]["level"]]
    kinds = levels.entities["type"][header["first_entity"] :][: header["entity_count"]]
    if np.isin(kinds, _SHOOTING).any():
        magnification = float(canvas.magnification)
        view = (float(canvas.area.left), float(canvas.area.top), magnification, magnification)
        draw_beams(levels, worlds, index, BEAM_COLOURS, view, canvas.pixels)


def level_picture(
    level: RawLevel | Level, scale: float = 1.0, crop: bool = False, theme: Theme = "light"
) -> np.ndarray:
    """Return a picture of a level before play, (height, width, 3) uint8, RGB.

    Cropped, it shows only the part of the world that is not solid, and a cell of wall around it.
    """
    raw = level if isinstance(level, RawLevel) else level.raw
    items: list[Item] = []
    for kind, x, y, orientation, _ in sorted(played_records(raw.records)[1:].tolist(), key=_drawing_order):
        if kind != NINJA:  # further ninjas are for levels with two players
            shown = appearance(kind, orientation, initial_state(kind, orientation))
            items.append((x * MAP_UNIT, y * MAP_UNIT, shown))
    for _, x, y, _, _ in raw.records[:1].tolist():
        items.append((x * MAP_UNIT, y * MAP_UNIT, appearance(NINJA, FACES_RIGHT, IMMOBILE)))
    canvas = PictureCanvas(
        np.pad(raw.tiles, 1, constant_values=_FULL_TILE), scale, used_area_of(raw) if crop else WORLD, theme
    )
    canvas.draw(items)
    return canvas.picture()


def used_area_of(raw: RawLevel) -> Area:
    """Return the part of the world that a level uses."""
    return used_area(np.pad(raw.tiles, 1, constant_values=_FULL_TILE), raw.records[:, 1:3] * MAP_UNIT)


def _drawing_order(record: list[int]) -> tuple[bool, int]:
    """Return the sort key for the drawing order of a world: doors, then the rest by type."""
    return record[0] not in _DOORS, record[0]


class PictureCanvas:
    """A part of the world, of (25, 44) tiles, at the next whole magnification.

    Attributes:
        pixels: (area.height * m, area.width * m, 3) uint8, m the magnification.
    """

    def __init__(self, tiles: np.ndarray, scale: float, area: Area, theme: Theme = "light"):
        self.area, self.magnification = area, max(1, math.ceil(scale))
        self._scale, self._theme = scale, theme
        left, top, width, height = (side * self.magnification for side in area)
        world = walls(tiles.tobytes(), self.magnification, theme)
        self.pixels = world[top : top + height, left : left + width].copy()

    def draw(self, items: Iterable[Item], opacity: float = 1.0) -> None:
        """Draw items, later ones on top."""
        magnification = self.magnification
        left, top = self.area.left * magnification, self.area.top * magnification
        for x, y, shown in items:
            if shown is not None:
                stamp = colour_stamp(shown, magnification, self._theme)
                stamp = stamp if opacity == 1.0 else stamp.faded(opacity)
                _put(self.pixels, stamp, round(x * magnification) - left, round(y * magnification) - top)

    def picture(self) -> np.ndarray:
        """Return the picture of the area at the scale."""
        if self._scale == self.magnification:
            return self.pixels
        size = (round(self.area.width * self._scale), round(self.area.height * self._scale))
        interpolation = cv2.INTER_AREA if self._scale < 1 else cv2.INTER_LINEAR  # the average over areas is slow
        return cv2.resize(self.pixels, size, interpolation=interpolation)


def _put(picture: np.ndarray, stamp: Stamp, x: int, y: int) -> None:
    """Blend a stamp with its centre at (x, y), as far as it is inside the picture."""
    (height, width), (left, top) = picture.shape[:2], (x + stamp.left, y + stamp.top)
    rows = slice(max(top, 0), max(min(top + stamp.keep.shape[0], height), 0))
    columns = slice(max(left, 0), max(min(left + stamp.keep.shape[1], width), 0))
    below = picture[rows, columns]
    if below.size:
        inner = slice(rows.start - top, rows.stop - top), slice(columns.start - left, columns.stop - left)
        below[:] = below * stamp.keep[inner] + stamp.ink[inner]


def with_path(
    picture: np.ndarray, path: np.ndarray, scale: float, area: Area, colour: tuple[int, int, int]
) -> np.ndarray:
    """Return a picture of an area of the world with the path of a run, (T, 2) x and y of the ninja, world pixels."""
    points = ((path - (area.left, area.top)) * scale * 16).round().astype(np.int32)  # with four bits of a fraction
    drawn = picture.copy()
    cv2.polylines(drawn, [points[:, None]], False, colour, max(1, round(1.5 * scale)), cv2.LINE_AA, shift=4)
    return drawn


def encoded(picture: np.ndarray, suffix: str, size: tuple[int, int] | None = None) -> bytes:
    """Return a picture, (height, width, 3 or 4) uint8, RGB or RGBA, as a ``.webp`` or ``.png`` file.

    With a ``size`` it is averaged to this width and height, which are smaller.
    """
    if size is not None:
        picture = cv2.resize(picture, size, interpolation=cv2.INTER_AREA)
    order = (2, 1, 0, 3)[: picture.shape[2]]
    options = _LOSSLESS if suffix == ".webp" else ()
    return cv2.imencode(suffix, np.ascontiguousarray(picture[..., order]), options)[1].tobytes()


def walls_picture(levels: Any, worlds: Any, index: int, scale: float = 1.0, area: Area = WORLD) -> np.ndarray:
    """Return the picture of a world without ninja, doors and entities; see :func:`world_picture`."""
    header, ninjas = levels.header.copy(), worlds.ninjas.copy()
    for name in ("door_count", "entity_count", "run_count"):
        header[name] = 0
    header.flags.writeable = False  # as that of the levels: kernels are compiled for read-only levels
    ninjas["x"] = _OUT_OF_SIGHT
    return world_picture(levels._replace(header=header), worlds._replace(ninjas=ninjas), index, scale, area)


class SpriteSheet(NamedTuple):
    """All appearances, and what a program needs to draw with them.

    Attributes:
        picture: (rows * n, columns * n, 4) uint8, RGBA with n = side * magnification; colours are not multiplied by
            alpha. Read-only: later calls return the same array.
        columns: sprites in a row.
        side: of a sprite, world pixels. Its margin of a pixel is empty, so that what draws sprites at another scale
            takes nothing from their neighbours.
        ninja: (n, n, 4) uint8; the sprite of a running ninja.
        beams: width, world pixels, and colour of each line of a beam.
    """

    picture: np.ndarray
    columns: int
    side: int
    ninja: np.ndarray
    beams: tuple[tuple[float, tuple[int, int, int]], ...]


@lru_cache(maxsize=1)
def sprite_sheet(magnification: int = 1) -> SpriteSheet:
    """Return all appearances, row by row; the rims are smooth from 4 pixels of the sheet per pixel of the world."""
    sprites = []
    for shown in numbered()[0]:
        alpha, ink = raster.stamp(figure_of(shown), PALETTES["light"].paints, magnification)
        add_rim(widened(shown, alpha, magnification), shown, alpha, ink)
        sprites.append(_sprite(alpha, ink))
    side, rows, inner = (
        _SPRITE * magnification,
        -(-len(sprites) // _SHEET_COLUMNS),
        slice(magnification, -magnification),
    )
    cells = np.zeros((rows * _SHEET_COLUMNS, side, side, 4), np.uint8)
    cells[: len(sprites), inner, inner] = sprites
    by_row = cells.reshape(rows, _SHEET_COLUMNS, side, side, 4).transpose(0, 2, 1, 3, 4)
    sheet = by_row.reshape(rows * side, _SHEET_COLUMNS * side, 4)
    sheet.flags.writeable = False
    ninja = cells[all_glyphs().appearances[NINJA, FACES_RIGHT, RUNNING]]
    beams = tuple(zip(BEAM_WIDTHS, BEAM_COLOURS, strict=True))
    return SpriteSheet(sheet, _SHEET_COLUMNS, _SPRITE, ninja, beams)


def _sprite(alpha: np.ndarray, ink: np.ndarray) -> np.ndarray:
    """Return (n, n, 4) uint8 of a stamp, whose ink is multiplied by its alpha."""
    alpha = alpha.reshape(*ink.shape[:2], 1)
    colour = np.divide(ink, alpha, out=np.zeros_like(ink), where=alpha > 0)
    return (np.concatenate([colour, 255 * alpha], axis=2) + 0.5).clip(0, 255).astype(np.uint8)
