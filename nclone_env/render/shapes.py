"""Paints, outlines and tiles: the elements of the grey observations and the colour pictures.

Outlines are polygons in pixels. Those of tiles use the cell's own coordinates (0..24 right and down, physics
01, section 2.3); those of entities and the ninja are relative to their centre and stay within 12 pixels of
it. A :class:`Layer` is one paint filled into outlines by the even-odd rule, so an inner outline is a hole.
Later layers cover earlier ones.
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from nclone_env.game import FACING_X, FACING_Y
from nclone_env.render.arrays import CELL

_ARC_STEPS = 24  # a quarter circle of radius 24 then differs from its polygon by 0.013 pixels


class Paint(NamedTuple):
    """One paint: the grey level of the observations and the colour of the pictures for people."""

    grey: int
    colour: tuple[int, int, int]


class Layer(NamedTuple):
    """Outlines, each (P, 2) float64 pixels, filled together by the even-odd rule with one paint."""

    paint: str
    outlines: tuple[np.ndarray, ...]


Layers = tuple[Layer, ...]
"""A figure: layers, lowest first."""


# The grey levels are spread so that no two paints share one; the colours are calm greys with few accents: reds kill,
# blues open, yellows are worth having, oranges throw the ninja, and only the ninja's headband is green.
PAINTS: Mapping[str, Paint] = {
    "background": Paint(176, (230, 232, 238)),
    "solid": Paint(96, (96, 105, 130)),
    "ninja": Paint(0, (16, 16, 20)),
    "headband": Paint(216, (96, 214, 88)),
    "mine": Paint(40, (196, 24, 40)),
    "mine_core": Paint(72, (255, 150, 140)),
    "safe_mine": Paint(128, (84, 138, 172)),
    "stepped_mine": Paint(64, (226, 116, 52)),
    "gold": Paint(255, (255, 208, 32)),
    "gold_edge": Paint(240, (176, 120, 0)),
    "exit": Paint(120, (70, 78, 104)),
    "exit_inside": Paint(152, (176, 182, 200)),
    "open_exit": Paint(136, (44, 110, 150)),
    "open_inside": Paint(228, (150, 222, 244)),
    "switch": Paint(20, (40, 84, 128)),
    "switch_light": Paint(200, (120, 220, 250)),
    "taken_switch": Paint(148, (182, 186, 200)),
    "door": Paint(80, (58, 64, 88)),
    "open_door": Paint(140, (156, 162, 182)),
    "locked_door": Paint(56, (38, 92, 92)),
    "lock": Paint(224, (120, 226, 196)),
    "trap_door": Paint(48, (118, 66, 92)),
    "trap_light": Paint(232, (246, 164, 206)),
    "launch_pad": Paint(60, (112, 84, 58)),
    "launch_front": Paint(244, (250, 160, 60)),
    "one_way": Paint(66, (104, 114, 148)),
    "one_way_front": Paint(36, (40, 46, 70)),
    "shell": Paint(24, (52, 52, 66)),
    "zap_eye": Paint(248, (255, 108, 168)),
    "chaser_eye": Paint(236, (255, 84, 60)),
    "chaingun_eye": Paint(208, (190, 226, 90)),
    "laser_eye": Paint(242, (236, 60, 60)),
    "mini_eye": Paint(252, (244, 196, 255)),
    "guard": Paint(28, (74, 40, 48)),
    "guard_eye": Paint(220, (255, 120, 84)),
    "block": Paint(234, (250, 250, 253)),
    "block_edge": Paint(112, (112, 120, 148)),
    "thwump": Paint(76, (86, 92, 112)),
    "thwump_face": Paint(16, (214, 44, 60)),
    "thwump_eye": Paint(192, (196, 204, 220)),
    "boost_pad": Paint(124, (176, 116, 50)),
    "boost_light": Paint(204, (255, 206, 120)),
    "ball": Paint(8, (30, 22, 30)),
    "ball_core": Paint(160, (232, 70, 84)),
    "shove": Paint(68, (96, 82, 112)),
    "shove_core": Paint(184, (190, 170, 216)),
    "shove_danger": Paint(32, (196, 36, 58)),
    "turret": Paint(34, (66, 60, 68)),
    "rocket": Paint(44, (206, 60, 40)),
    "gauss": Paint(230, (244, 224, 120)),
    "evil": Paint(12, (96, 18, 44)),
    "evil_eye": Paint(238, (255, 150, 170)),
    "laser": Paint(52, (184, 30, 54)),
    "laser_light": Paint(250, (255, 96, 110)),
    "beam": Paint(4, (226, 32, 54)),
    "shot": Paint(254, (252, 110, 70)),
    "aim": Paint(50, (206, 84, 84)),
    "trail": Paint(222, (240, 176, 120)),
}


def circle(radius: float, x: float = 0.0, y: float = 0.0, corners: int = 32, turn: float = 0.0) -> np.ndarray:
    """Return a regular polygon (corners, 2) around (x, y), its first corner at ``turn`` radians."""
    angles = turn + np.arange(corners) * (2 * math.pi / corners)
    return np.stack([x + radius * np.cos(angles), y + radius * np.sin(angles)], axis=1)


def star(outer: float, inner: float, points: int) -> np.ndarray:
    """Return a star (2 * points, 2) around the centre with one point straight up."""
    outline = circle(1.0, corners=2 * points, turn=-math.pi / 2)
    outline[0::2] *= outer
    outline[1::2] *= inner
    return outline


def box(left: float, top: float, right: float, bottom: float) -> np.ndarray:
    """Return an axis-aligned rectangle (4, 2)."""
    return np.array([(left, top), (right, top), (right, bottom), (left, bottom)], dtype=np.float64)


def square(half: float) -> np.ndarray:
    """Return a square (4, 2) around the centre."""
    return box(-half, -half, half, half)


def polygon(*points: tuple[float, float]) -> np.ndarray:
    """Return the outline (P, 2) through points."""
    return np.array(points, dtype=np.float64)


def limb(start: tuple[float, float], end: tuple[float, float], width: float) -> np.ndarray:
    """Return a straight stroke (4, 2) from start to end."""
    a, b = np.array(start, dtype=np.float64), np.array(end, dtype=np.float64)
    along = (b - a) / np.linalg.norm(b - a)
    across = np.array([-along[1], along[0]]) * (width / 2)
    return np.stack([a + across, b + across, b - across, a - across])


def turned(layers: Sequence[Layer], eighths: int) -> tuple[Layer, ...]:
    """Return layers turned clockwise around the centre by a number 0..7 of eighths of a full turn."""
    cosine, sine = FACING_X[eighths], FACING_Y[eighths]
    matrix = np.array([(cosine, sine), (-sine, cosine)])
    return tuple(Layer(paint, tuple(outline @ matrix for outline in outlines)) for paint, outlines in layers)


# Tiles 6..33 come in groups of four that are reflections of one another (physics 01, section 2.2): each group
# is given by its top-left member, the rest by mirroring.
_TOP_LEFT_TILES = {
    6: [(0, 0), (24, 0), (0, 24)],
    18: [(0, 0), (24, 0), (0, 12)],
    22: [(0, 0), (24, 0), (24, 12), (0, 24)],
    26: [(0, 0), (12, 0), (0, 24)],
    30: [(0, 0), (24, 0), (12, 24), (0, 24)],
}
_PLAIN_TILES = {
    1: (0, 0, 24, 24),
    2: (0, 0, 24, 12),
    3: (12, 0, 24, 24),
    4: (0, 12, 24, 24),
    5: (0, 0, 12, 24),
    34: (0, 0, 24, 1),
    35: (23, 0, 24, 24),
    36: (0, 23, 24, 24),
    37: (0, 0, 1, 24),
}


def _quarter_arc(x: float, y: float, sign: int) -> np.ndarray:
    """Return points of the arc around (x, y) through the quadrant (sign, sign), from (x + 24 * sign, y)."""
    angles = np.linspace(0.0, math.pi / 2, _ARC_STEPS + 1)
    return np.stack([x + sign * CELL * np.cos(angles), y + sign * CELL * np.sin(angles)], axis=1)


def _top_left_outline(first: int) -> np.ndarray:
    if first == 10:  # quarter moon: solid inside the circle around the corner
        return np.vstack([[(0.0, 0.0)], _quarter_arc(0.0, 0.0, 1)])
    if first == 14:  # quarter pipe: solid outside the circle around the opposite corner
        return np.vstack([[(0.0, 0.0)], _quarter_arc(24.0, 24.0, -1)])
    return np.array(_TOP_LEFT_TILES[first], dtype=np.float64)


def tile_outline(tile: int) -> np.ndarray:
    """Return the outline (P, 2) of the solid region of a tile, 0..37, in cell coordinates; (0, 2) if nothing is solid.

    The glitched tiles 34 to 37 have an edge and no solid region: they are drawn as a stroke one pixel wide.
    """
    if tile in _PLAIN_TILES:
        return box(*_PLAIN_TILES[tile])
    if not 6 <= tile <= 33:
        return np.zeros((0, 2))
    corner = (tile - 6) % 4  # top-left, top-right, bottom-right, bottom-left
    outline = _top_left_outline(tile - corner)
    if corner in (1, 2):
        outline[:, 0] = CELL - outline[:, 0]
    if corner in (2, 3):
        outline[:, 1] = CELL - outline[:, 1]
    return outline
