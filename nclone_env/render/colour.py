"""What only the colour pictures have: walls with an edge line where they meet the air, and figures with a light rim.

The edge line lies inside the wall and the rim outside the figure, so both show the same geometry as the grey
observations. Most figures are those of the grey observations, too. Exit and exit switch have their own: people look for
a door and for something of its size, while observations keep their pixels. Colours tell apart for people who see red
and green alike: what kills is dark or vermilion, what opens is blue or teal, and opposite states differ in brightness.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

import cv2
import numpy as np

from nclone_env.config import Theme
from nclone_env.game import COLUMNS, EXIT, EXIT_SWITCH, KINDS, MAX_TILE, NINJA, ROWS
from nclone_env.render import raster
from nclone_env.render.arrays import CELL
from nclone_env.render.looks import Appearance, layers_of
from nclone_env.render.shapes import Layer, Layers, box, circle, polygon, square, tile_outline, turned

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
    """The colours of a theme.

    Attributes:
        paints: name of a paint to its colour.
        edge: colour of the line along walls.
        rim: colour of the rim around figures.
        ninja_rim: colour of that around the ninja.
    """

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
