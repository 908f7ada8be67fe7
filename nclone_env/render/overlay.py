"""What lies over a game in a window: messages, the list of keys, and the keys that are held."""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np

from nclone_env.render.bar import BAR_HEIGHT, BRIGHT, DIM, GROUND, Colour
from nclone_env.render.text import fitting, text_width, write_text

_MESSAGE_LETTER, _HELP_LETTER = 13.0, 11.0  # height of a capital letter, pixels
_MARGIN, _LINE = 16, 26  # pixels
_CAP = 20  # side of a key cap, pixels
_OPACITY = 0.92
_ARROWS = ((-6, 0, 4, -6, 4, 6), (6, 0, -4, -6, -4, 6), (0, -6, -6, 4, 6, 4))  # left, right, up


def draw_message(picture: np.ndarray, text: str, colour: Colour = BRIGHT) -> None:
    """Write a message on a dark ground at the lower edge of a picture, (h, w, 3) uint8, shortened if it is too long."""
    height, width = picture.shape[:2]
    shown = fitting(text, _MESSAGE_LETTER, width - 4 * _MARGIN)
    half = round(text_width(shown, _MESSAGE_LETTER) / 2) + _MARGIN
    top = height - 3 * _MARGIN
    _darken(picture, top, top + 2 * _MARGIN, width // 2 - half, width // 2 + half)
    write_text(picture, shown, width // 2 - half + _MARGIN, top + _MARGIN, _MESSAGE_LETTER, colour)


def draw_table(picture: np.ndarray, rows: Sequence[tuple[str, str]]) -> None:
    """Write rows of two columns on a dark ground in the middle of a picture, (h, w, 3) uint8."""
    height, width = picture.shape[:2]
    first, second = (max(text_width(texts[column], _HELP_LETTER) for texts in rows) for column in (0, 1))
    half = (round(first + second) + 3 * _MARGIN) // 2
    top = (height - _LINE * len(rows)) // 2
    _darken(picture, top - _MARGIN, top + _LINE * len(rows) + _MARGIN, width // 2 - half, width // 2 + half)
    left = width // 2 - half + _MARGIN
    for number, (key, meaning) in enumerate(rows):
        middle = top + _LINE * number + _LINE / 2
        write_text(picture, key, left, middle, _HELP_LETTER, BRIGHT)
        write_text(picture, meaning, left + first + _MARGIN, middle, _HELP_LETTER, DIM)


def draw_keys(bar: np.ndarray, held: Sequence[bool], right: int) -> int:
    """Draw key caps with arrows to the left, to the right and up into a bar, bright if they are held.

    Args:
        bar: (28, w, 3) uint8.
        held: whether left, right and jump are.
        right: x at which they end.

    Returns:
        x at which they begin.
    """
    left = right - len(held) * (_CAP + 4)
    for number, (down, arrow) in enumerate(zip(held, _ARROWS, strict=True)):
        x, y = left + number * (_CAP + 4) + _CAP // 2, BAR_HEIGHT // 2
        corners = (x - _CAP // 2, y - _CAP // 2), (x + _CAP // 2, y + _CAP // 2)
        cv2.rectangle(bar, *corners, BRIGHT if down else DIM, cv2.FILLED if down else 1)
        points = np.array(arrow, np.int32).reshape(3, 2) + (x, y)
        cv2.fillConvexPoly(bar, points.astype(np.int32), GROUND if down else DIM, cv2.LINE_AA)
    return left


def _darken(picture: np.ndarray, top: int, bottom: int, left: int, right: int) -> None:
    """Cover a rectangle with an almost opaque dark ground, as far as it is inside the picture."""
    part = picture[max(top, 0) : max(bottom, 0), max(left, 0) : max(right, 0)]
    if part.size:
        part[:] = cv2.addWeighted(part, 1 - _OPACITY, np.full_like(part, GROUND), _OPACITY, 0.0)
