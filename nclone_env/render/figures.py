"""The figures of the colour pictures, and their colours by theme.

Most figures are those of the grey observations. Exit and exit switch have their own: people look for a door and for
something of its size, while observations keep their pixels. Colours tell apart for people who see red and green alike:
what kills is dark or vermilion, what opens is blue or teal, and opposite states differ in brightness as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from nclone_env import kinds
from nclone_env.config import Theme
from nclone_env.kinds import KINDS
from nclone_env.render.looks import Appearance, layers_of
from nclone_env.render.raster import COLOURS
from nclone_env.render.shapes import Layer, Layers, box, circle, polygon, square, turned

Colour = tuple[int, int, int]

_EXIT_HALF = KINDS[kinds.EXIT].radii[0]
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
_FIGURES: Mapping[int, tuple[Layers, ...]] = {kinds.EXIT: _EXIT, kinds.EXIT_SWITCH: _EXIT_SWITCH}
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


class Look(NamedTuple):
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


_LIGHT = {**{name: (red, green, blue) for name, (red, green, blue) in COLOURS.items()}, **_PAINTS}
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
LOOKS: Mapping[Theme, Look] = {
    "light": Look(_LIGHT, (38, 43, 62), (250, 250, 252), (250, 250, 252)),
    "dark": Look({**_LIGHT, **_DARK_PAINTS}, (146, 156, 188), (232, 236, 246), (10, 12, 18)),
}


@lru_cache(maxsize=512)
def figure_of(shown: Appearance) -> Layers:
    """Return the layers of an appearance in pictures for people, lowest first, relative to its centre."""
    own = _FIGURES.get(shown.type)
    return layers_of(shown) if own is None else turned(own[shown.variant], shown.turn)
