"""Text on colour pictures, in the font that OpenCV brings."""

from __future__ import annotations

import cv2
import numpy as np

_FONT = cv2.FONT_HERSHEY_SIMPLEX
_LONGEST = 200  # characters; names come from files
_HEIGHT = 22.0  # pixels of a capital letter at scale 1


def write_text(
    picture: np.ndarray,
    text: str,
    left: float,
    middle: float,
    height: float,
    colour: tuple[int, int, int],
    bold: bool = False,
) -> float:
    """Write one line of text into a picture; what does not fit is cut.

    Args:
        picture: (h, w, 3) uint8, C-contiguous.
        text: the line; characters outside ASCII become question marks.
        left: x of its beginning, pixels.
        middle: y of the middle of its capital letters, pixels.
        height: height of a capital letter, pixels.
        colour: red, green and blue.
        bold: draw thicker strokes.

    Returns:
        x of its end.
    """
    plain, scale, thickness = _plain(text), height / _HEIGHT, _thickness(height) + bold
    place = (round(left), round(middle + height / 2))
    cv2.putText(picture, plain, place, _FONT, scale, colour, thickness, cv2.LINE_AA)
    return left + text_width(text, height)


def text_width(text: str, height: float) -> float:
    """Return the width of one line of text whose capital letters have a height, in pixels."""
    return float(cv2.getTextSize(_plain(text), _FONT, height / _HEIGHT, _thickness(height))[0][0])


def fitting(text: str, height: float, width: float) -> str:
    """Return the text, shortened to ``...`` at its end if it is wider than so many pixels."""
    text = text[:_LONGEST]
    if text_width(text, height) <= width:
        return text
    while text and text_width(f"{text}...", height) > width:
        text = text[:-1]
    return f"{text.rstrip()}..."


def _plain(text: str) -> str:
    return text.encode("ascii", "replace").decode()


def _thickness(height: float) -> int:
    return max(1, round(height / 9))
