"""What everything looks like: outlines and paints, shared by the grey observations and the colour pictures.

Outlines are polygons in pixels. Those of tiles use the cell's own coordinates (0..24 right and down, physics
01, section 2.3); those of entities and the ninja are relative to their centre and stay within 12 pixels of
it. A :class:`Layer` is one paint filled into outlines by the even-odd rule, so an inner outline is a hole.
Later layers cover earlier ones.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from nclone_env.constants import (
    CELEBRATING,
    DEAD,
    DISABLED,
    DYING,
    EXIT,
    EXIT_RADIUS,
    EXIT_SWITCH,
    FALLING,
    GOLD,
    GOLD_RADIUS,
    IMMOBILE,
    JUMPING,
    MINE,
    MINE_RADII,
    RUNNING,
    SLIDING,
    SWITCH_RADIUS,
    WALL_SLIDING,
)
from nclone_env.render.arrays import CELL

TOGGLE_MINE = 21
_ARC_STEPS = 24  # a quarter circle of radius 24 then differs from its polygon by 0.013 pixels


class Paint(NamedTuple):
    """One paint: the grey level of the observations and the colour of the pictures for people."""

    grey: int
    colour: tuple[int, int, int]


class Layer(NamedTuple):
    """Outlines, each (P, 2) float64 pixels, filled together by the even-odd rule with one paint."""

    paint: str
    outlines: tuple[np.ndarray, ...]


# The grey levels are spread so that no two kinds share one; the colours are calm greys with few accents.
PAINTS: Mapping[str, Paint] = {
    "background": Paint(176, (203, 203, 209)),
    "solid": Paint(96, (122, 122, 137)),
    "ninja": Paint(0, (16, 16, 20)),
    "headband": Paint(216, (236, 236, 240)),
    "mine": Paint(40, (166, 28, 36)),
    "mine_core": Paint(72, (236, 116, 108)),
    "safe_mine": Paint(128, (110, 144, 166)),
    "stepped_mine": Paint(64, (226, 116, 52)),
    "gold": Paint(255, (250, 214, 46)),
    "gold_edge": Paint(240, (190, 142, 8)),
    "exit": Paint(120, (94, 98, 118)),
    "exit_inside": Paint(152, (158, 160, 174)),
    "open_exit": Paint(136, (44, 110, 150)),
    "open_inside": Paint(228, (150, 222, 244)),
    "switch": Paint(20, (40, 84, 128)),
    "switch_light": Paint(200, (120, 220, 250)),
    "taken_switch": Paint(148, (170, 172, 184)),
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


def limb(start: tuple[float, float], end: tuple[float, float], width: float) -> np.ndarray:
    """Return a straight stroke (4, 2) from start to end."""
    a, b = np.array(start, dtype=np.float64), np.array(end, dtype=np.float64)
    along = (b - a) / np.linalg.norm(b - a)
    across = np.array([-along[1], along[0]]) * (width / 2)
    return np.stack([a + across, b + across, b - across, a - across])


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
    """Return the outline (P, 2) of a tile's solid region in cell coordinates; (0, 2) if nothing is solid.

    The glitched tiles 34 to 37 have an edge and no solid region: they are drawn as a stroke one pixel wide.

    Args:
        tile: number 0..37.
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


_ARMED, _SAFE, _STEPPED = MINE_RADII
_MINE = {
    0: (Layer("mine", (star(_ARMED + 2.5, _ARMED - 0.5, 8),)), Layer("mine_core", (circle(1.6),))),
    1: (Layer("safe_mine", (circle(_SAFE + 1.0), circle(_SAFE - 2.0))),),
    2: (Layer("stepped_mine", (circle(_STEPPED + 0.5), circle(_STEPPED - 2.5))),),
}
_GOLD = {
    0: (
        Layer("gold_edge", (box(-GOLD_RADIUS + 1, -GOLD_RADIUS + 1, GOLD_RADIUS - 1, GOLD_RADIUS - 1),)),
        Layer("gold", (box(-GOLD_RADIUS + 2, -GOLD_RADIUS + 2, GOLD_RADIUS - 2, GOLD_RADIUS - 2),)),
    )
}
_DOORWAY = box(-EXIT_RADIUS, -EXIT_RADIUS, EXIT_RADIUS, EXIT_RADIUS)
_EXIT = {
    0: (
        Layer("exit", (_DOORWAY,)),
        Layer("exit_inside", (box(-9, -9, 9, 9),)),
        Layer("exit", (box(-1.5, -9, 1.5, 9), box(-9, -1.5, 9, 1.5), box(-1.5, -1.5, 1.5, 1.5))),
    ),
    1: (Layer("open_exit", (_DOORWAY,)), Layer("open_inside", (box(-9, -9, 9, 9),))),
}
_SWITCH = {
    0: (
        Layer("switch", (box(-SWITCH_RADIUS, -SWITCH_RADIUS, SWITCH_RADIUS, SWITCH_RADIUS),)),
        Layer("switch_light", (circle(3.2, corners=4),)),
    ),
    1: (Layer("taken_switch", (box(-6, -6, 6, 6), box(-4.5, -4.5, 4.5, 4.5))),),
}

ENTITY_LAYERS: Mapping[int, Mapping[int, tuple[Layer, ...]]] = {
    MINE: _MINE,
    GOLD: _GOLD,
    EXIT: _EXIT,
    EXIT_SWITCH: _SWITCH,
    TOGGLE_MINE: _MINE,
}
"""Entity type to state to layers. A missing state (gold taken) or a missing type is not drawn."""


class Posture(NamedTuple):
    """Joints of the ninja facing right, pixels from the centre: head, hip, two hands, two feet."""

    head: tuple[float, float]
    hip: tuple[float, float]
    hands: tuple[tuple[float, float], tuple[float, float]]
    feet: tuple[tuple[float, float], tuple[float, float]]


_SPRAWLED = Posture((-5.0, 5.0), (1.5, 6.0), ((-2.0, 8.5), (1.5, 1.0)), ((8.5, 3.5), (8.0, 6.5)))
POSTURES: Mapping[int, Posture] = {
    IMMOBILE: Posture((0.0, -5.5), (0.0, 2.5), ((-3.5, 2.5), (3.5, 2.5)), ((-2.5, 9.5), (2.5, 9.5))),
    RUNNING: Posture((3.0, -5.0), (-1.0, 2.0), ((-5.5, -0.5), (6.5, 1.0)), ((-8.0, 5.5), (5.0, 8.5))),
    SLIDING: Posture((-3.5, -4.0), (0.0, 3.5), ((-8.5, 1.5), (4.5, -1.5)), ((4.0, 9.0), (9.0, 4.5))),
    JUMPING: Posture((1.0, -5.0), (-0.5, 2.5), ((-4.0, -8.0), (6.5, -7.0)), ((-4.5, 8.5), (3.0, 5.5))),
    FALLING: Posture((0.0, -5.0), (0.0, 2.0), ((-8.5, -3.0), (8.5, -3.0)), ((-5.5, 8.0), (5.5, 8.0))),
    WALL_SLIDING: Posture((2.5, -5.5), (2.0, 2.5), ((8.5, -4.5), (8.5, 1.0)), ((8.0, 5.5), (1.0, 9.5))),
    DEAD: _SPRAWLED,
    DYING: _SPRAWLED,
    CELEBRATING: Posture((0.0, -4.0), (0.0, 3.0), ((-6.0, -8.0), (6.0, -8.0)), ((-4.5, 9.0), (4.5, 9.0))),
    DISABLED: _SPRAWLED,
}
"""Ninja state to posture: standing, running, sliding, jumping, falling, on a wall, dead, celebrating."""


def ninja_layers(state: int, facing: int) -> tuple[Layer, ...]:
    """Return the layers of the ninja: a black figure within radius 10 whose light headband marks its front.

    Args:
        state: ninja state 0..9 (physics 01, section 5).
        facing: negative for left, otherwise right.
    """
    posture = POSTURES[state]
    head, hip = posture.head, posture.hip
    shoulder = (head[0] * 0.6 + hip[0] * 0.4, head[1] * 0.6 + hip[1] * 0.4)
    parts = [circle(4.0, *head, corners=20), limb(shoulder, hip, 6.0), circle(3.0, *hip, corners=16)]
    parts += [limb(shoulder, hand, 2.8) for hand in posture.hands]
    parts += [limb(hip, foot, 3.4) for foot in posture.feet]
    band = box(head[0] - 0.5, head[1] - 1.2, head[0] + 3.8, head[1] + 1.0)
    if facing < 0:
        parts, band = [part * (-1.0, 1.0) for part in parts], band * (-1.0, 1.0)
    # One layer a part: overlapping outlines within one layer would cancel out.
    return (*(Layer("ninja", (part,)) for part in parts), Layer("headband", (band,)))
