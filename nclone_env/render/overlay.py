"""What lies over a picture: messages, the list of keys, and the path of a run."""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np

from nclone_env.render.area import Area
from nclone_env.render.bar import BRIGHT, DIM, GROUND, Colour
from nclone_env.render.text import fitting, text_width, write_text

_MESSAGE_LETTER, _HELP_LETTER = 13.0, 11.0  # height of a capital letter, pixels
_MARGIN, _LINE = 16, 26  # pixels
_OPACITY = 0.92


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


def with_path(picture: np.ndarray, path: np.ndarray, scale: float, area: Area, colour: Colour) -> np.ndarray:
    """Return a picture with the path of a run.

    Args:
        picture: (h, w, 3) uint8, of an area of the world.
        path: (T, 2) x and y of the ninja, world pixels.
        scale: pixels of the picture per pixel of the world.
        area: the part of the world.
        colour: of the line.
    """
    points = ((path - (area.left, area.top)) * scale * 16).round().astype(np.int32)  # with four bits of a fraction
    drawn = picture.copy()
    cv2.polylines(drawn, [points[:, None]], False, colour, max(1, round(1.5 * scale)), cv2.LINE_AA, shift=4)
    return drawn


def _darken(picture: np.ndarray, top: int, bottom: int, left: int, right: int) -> None:
    """Cover a rectangle with an almost opaque dark ground, as far as it is inside the picture."""
    part = picture[max(top, 0) : max(bottom, 0), max(left, 0) : max(right, 0)]
    if part.size:
        part[:] = cv2.addWeighted(part, 1 - _OPACITY, np.full_like(part, GROUND), _OPACITY, 0.0)
