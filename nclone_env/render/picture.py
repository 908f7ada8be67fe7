"""Colour pictures of levels, or of the parts that they use, for people: of the same shapes as the grey observations.

Walls have an edge line where they meet the air, and figures a light rim. The line lies inside the wall and the rim
outside the figure, so both show the same geometry as the observations. Exit and exit switch have figures of their own:
people look for a door and for something of its size, while observations keep their pixels. Colours tell apart for
people who see red and green alike: what kills is dark or vermilion, what opens is blue or teal, and opposite states
differ in brightness.

For another language that draws a world there are its walls, and each appearance as a sprite on one sheet. The sprite of
an appearance has its number in the tables of the glyphs, so the number of a stamp in the grey pictures is also that of
the sprite.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from nclone_env.config import Theme
from nclone_env.errors import without_opencv
from nclone_env.game import (
    COLUMNS,
    EXIT,
    EXIT_SWITCH,
    IMMOBILE,
    KINDS,
    MAP_UNIT,
    MAX_TILE,
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
from nclone_env.render.compose import BEAM_COLOURS, BEAM_WIDTHS, draw_beams, list_sprites
from nclone_env.render.looks import Appearance, appearance, layers_of
from nclone_env.render.raster import all_glyphs, numbered
from nclone_env.render.shapes import Layer, Layers, box, circle, polygon, square, tile_outline, turned

try:
    import cv2
except ImportError as _error:
    raise without_opencv(_error) from _error

_EDGE_WIDTH = 2.0  # world pixels
_RIM_WIDTH, _NINJA_RIM_WIDTH = 0.75, 1.5  # world pixels
_RIM_OPACITY, _NINJA_RIM_OPACITY = 0.55, 1.0
_PARTS = 64  # samples from which the coverage of a pixel is counted
_FINER = 4  # samples per pixel and axis from which a rim is averaged
Colour = tuple[int, int, int]

_EXIT_HALF = KINDS[EXIT].radii[0]
_SWITCH_HALF = 9.0  # half as large again as what the ninja touches
_FRAME = box(-_EXIT_HALF, -_EXIT_HALF, _EXIT_HALF, _EXIT_HALF)
_OPENING = box(-8.5, -8, 8.5, _EXIT_HALF)
_LAMP = Layer("lamp", (box(-6, -11, 6, -9.2),))  # of the colour of the switch
_EXIT: tuple[Layers, ...] = (  # closed: a leaf with panels and a handle; open: bright, the leaf turned aside
    (
        Layer("door_frame", (_FRAME,)),
        _LAMP,
        Layer("door_leaf", (box(-8, -7.5, 8, _EXIT_HALF),)),
        Layer("door_panel", (box(-6, -5.5, 6, 0.5), box(-6, 3.5, 6, 10))),
        Layer("door_handle", (circle(1.7, 5.4, 2.0, 12),)),
    ),
    (
        Layer("door_frame", (_FRAME,)),
        _LAMP,
        Layer("door_light", (_OPENING,)),
        Layer("door_leaf", (polygon((-8.5, -8), (-3.5, -5), (-3.5, 12), (-8.5, 12)),)),
        Layer("door_handle", (circle(1.0, -4.8, 3.5, 10),)),
    ),
)
_EXIT_SWITCH: tuple[Layers, ...] = (  # present, taken
    (
        Layer("switch", (square(_SWITCH_HALF),)),
        Layer("switch_inside", (square(_SWITCH_HALF - 2),)),
        Layer("lamp", (circle(5.6, corners=4),)),
    ),
    (Layer("taken_switch", (square(_SWITCH_HALF), square(_SWITCH_HALF - 1.5))),),
)
_FIGURES: Mapping[int, tuple[Layers, ...]] = {EXIT: _EXIT, EXIT_SWITCH: _EXIT_SWITCH}
_PAINTS: Mapping[str, Colour] = {
    "door_frame": (44, 52, 82),
    "door_leaf": (84, 94, 128),
    "door_panel": (64, 72, 102),
    "door_handle": (255, 214, 92),
    "door_light": (206, 242, 255),
    "switch_inside": (24, 58, 96),
    "lamp": (110, 222, 255),
    "locked_door": (16, 108, 150),
    "lock": (130, 226, 250),
    "trap_door": (96, 36, 60),
    "trap_light": (255, 188, 92),
}


class Palette(NamedTuple):
    """The colours of a theme: of paints by name, of the line along walls, and of the rims around figures."""

    paints: Mapping[str, Colour]
    edge: Colour
    rim: Colour
    ninja_rim: Colour


_LIGHT = {**{name: (red, green, blue) for name, (red, green, blue) in raster.COLOURS.items()}, **_PAINTS}
_DARK_PAINTS: Mapping[str, Colour] = {
    "background": (26, 29, 40),
    "solid": (70, 78, 102),
    "ninja": (244, 246, 252),
    "door_frame": (104, 116, 156),
    "door_leaf": (58, 66, 98),
    "door_panel": (42, 48, 74),
    "switch": (120, 190, 236),
    "taken_switch": (72, 78, 98),
    "exit": (104, 116, 156),
    "shell": (140, 144, 168),
    "one_way": (130, 140, 176),
    "one_way_front": (210, 216, 236),
    "door": (150, 158, 190),
    "open_door": (84, 90, 112),
    "turret": (150, 146, 160),
    "guard": (150, 96, 108),
    "evil": (176, 60, 96),
    "ball": (120, 100, 122),
    "laser": (216, 60, 84),
}
PALETTES: Mapping[Theme, Palette] = {
    "light": Palette(_LIGHT, (38, 43, 62), (250, 250, 252), (250, 250, 252)),
    "dark": Palette({**_LIGHT, **_DARK_PAINTS}, (146, 156, 188), (232, 236, 246), (10, 12, 18)),
}


@lru_cache(maxsize=512)
def figure_of(shown: Appearance) -> Layers:
    """Return the layers of an appearance in pictures for people, lowest first, relative to its centre."""
    own = _FIGURES.get(shown.type)
    return layers_of(shown) if own is None else turned(own[shown.variant], shown.turn)


@lru_cache(maxsize=16)
def walls(tiles: bytes, magnification: int, theme: Theme = "light") -> np.ndarray:
    """Return the picture of a level's tiles, 25 rows of 44 bytes.

    It is (600 * magnification, 1056 * magnification, 3) uint8, RGB, read-only: later calls return the same array.
    """
    numbers = np.frombuffer(tiles, np.uint8).reshape(ROWS, COLUMNS)
    cells = _covered_parts(magnification)[np.where(numbers > MAX_TILE, 0, numbers)]
    side = CELL * magnification
    solid = cells.transpose(0, 2, 1, 3).reshape(ROWS * side, COLUMNS * side)
    inner = cv2.erode(solid, _disc(_EDGE_WIDTH * magnification), borderType=cv2.BORDER_REPLICATE)
    picture = _mixtures(theme).take(solid.astype(np.uint16) * (_PARTS + 1) + inner, axis=0)
    picture.flags.writeable = False
    return picture


@lru_cache(maxsize=2)
def _mixtures(theme: Theme) -> np.ndarray:
    """Return (65 * 65, 3) uint8: the colour of a pixel by the shares of it that walls and their insides cover."""
    solid, inner = (part[..., None] / _PARTS for part in np.mgrid[: _PARTS + 1, : _PARTS + 1])
    look = PALETTES[theme]
    air, line, wall = map(np.array, (look.paints["background"], look.edge, look.paints["solid"]))
    return (air + solid * (line - air) + inner * (wall - line) + 0.5).clip(0, 255).astype(np.uint8).reshape(-1, 3)


class Stamp(NamedTuple):
    """A figure and its rim: over a background b the result is ``b * keep + ink``, rounded down.

    Attributes:
        keep: (h, w, 1) float32, 0..1; what is left of the background.
        ink: (h, w, 3) float32, colour times what it covers, and 0.5.
        left: x of the first column relative to the centre, pixels.
        top: y of the first row.
    """

    keep: np.ndarray
    ink: np.ndarray
    left: int
    top: int

    def faded(self, opacity: float) -> Stamp:
        """Return a translucent stamp."""
        return self._replace(keep=1 - (1 - self.keep) * opacity, ink=(self.ink - 0.5) * opacity + 0.5)


@lru_cache(maxsize=256)
def colour_stamp(shown: Appearance, magnification: int, theme: Theme = "light") -> Stamp:
    """Return the stamp of an appearance, in pixels of a whole number per pixel of the world."""
    alpha, ink = raster.stamp(figure_of(shown), PALETTES[theme].paints, magnification)
    add_rim(_rim(shown, magnification), shown, alpha, ink, theme)
    rows, columns = (np.flatnonzero(alpha.any(axis=axis)) for axis in (1, 0))
    box = slice(rows[0], rows[-1] + 1), slice(columns[0], columns[-1] + 1)
    half = len(alpha) // 2
    return Stamp(1 - alpha[box][..., None], ink[box] + 0.5, int(columns[0]) - half, int(rows[0]) - half)


def add_rim(covered: np.ndarray, shown: Appearance, alpha: np.ndarray, ink: np.ndarray, theme: Theme = "light") -> None:
    """Add a rim, given how much the figure with it covers of each pixel, to a stamp of ``raster.stamp`` in place."""
    palette, rim = PALETTES[theme], covered * (1 - alpha)
    colour = palette.ninja_rim if shown.type == NINJA else palette.rim
    ink += rim[..., None] * np.array(colour, np.float32)
    alpha += rim


def _rim(shown: Appearance, magnification: int) -> np.ndarray:
    """Return (n, n) float32, 0..1: how much a figure widened by its rim covers of each pixel."""
    finer = magnification * _FINER
    alpha, _ = raster.stamp(figure_of(shown), PALETTES["light"].paints, finer)
    side = CELL * magnification
    return cv2.resize(widened(shown, alpha, finer), (side, side), interpolation=cv2.INTER_AREA)


def widened(shown: Appearance, alpha: np.ndarray, magnification: int) -> np.ndarray:
    """Return the coverage (n, n) of a figure widened by its rim, times the opacity of the rim; smooth from 4 on."""
    is_ninja = shown.type == NINJA
    width, opacity = (_NINJA_RIM_WIDTH, _NINJA_RIM_OPACITY) if is_ninja else (_RIM_WIDTH, _RIM_OPACITY)
    return opacity * cv2.dilate(alpha, _disc(width * magnification))


@lru_cache(maxsize=2)
def _covered_parts(magnification: int) -> np.ndarray:
    """Return (38, n, n) uint8, 0..64: how many parts of 64 of each pixel each tile covers."""
    covered = [raster.coverage([tile_outline(tile)], magnification) for tile in range(MAX_TILE + 1)]
    return (np.array(covered) * _PARTS + 0.5).astype(np.uint8)


def _disc(radius: float) -> np.ndarray:
    """Return the pixels of a disc as an array of 0 and 1 whose side is odd."""
    reach = math.ceil(radius)
    across = np.arange(-reach, reach + 1)
    return (np.hypot(*np.meshgrid(across, across)) <= radius + 0.25).astype(np.uint8)


_FULL_TILE = 1
_LARGEST_ZOOM = 2.0
_SHOOTING = tuple(kind.number for kind in KINDS if kind.shoots)
_DOORS = tuple(kind.number for kind in KINDS if kind.is_door)
_GHOST_OPACITY = 0.4
_LOSSLESS = (cv2.IMWRITE_WEBP_QUALITY, 101)
Item = tuple[float, float, Appearance | None]
"""Drawn at x, y (world pixels): an appearance, or nothing."""

_SHEET_COLUMNS, _SPRITE = 12, CELL + 2


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
    records = played_records(raw.records)[1:].tolist()
    for kind, x, y, orientation, _ in sorted(records, key=lambda record: (record[0] not in _DOORS, record[0])):
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


def encoded(picture: np.ndarray, suffix: str) -> bytes:
    """Return a picture, (height, width, 3 or 4) uint8, RGB or RGBA, as a ``.webp`` or ``.png`` file."""
    order = (2, 1, 0, 3)[: picture.shape[2]]
    options = _LOSSLESS if suffix == ".webp" else ()
    return cv2.imencode(suffix, np.ascontiguousarray(picture[..., order]), options)[1].tobytes()


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


@lru_cache(maxsize=2)
def sprite_sheet(magnification: int = 1, theme: Theme = "light") -> SpriteSheet:
    """Return all appearances, row by row; the rims are smooth from 4 pixels of the sheet per pixel of the world."""
    sprites = []
    for shown in numbered()[0]:
        alpha, ink = raster.stamp(figure_of(shown), PALETTES[theme].paints, magnification)
        add_rim(widened(shown, alpha, magnification), shown, alpha, ink, theme)
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
