"""The ninja: a black figure in the posture of its state, its light headband towards its front."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from nclone_env.constants import (
    CELEBRATING,
    DEAD,
    DISABLED,
    DYING,
    FALLING,
    IMMOBILE,
    JUMPING,
    RUNNING,
    SLIDING,
    WALL_SLIDING,
)
from nclone_env.render.shapes import Layer, box, circle, limb


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
