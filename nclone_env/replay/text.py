"""Text on colour pictures, in the font that OpenCV brings: bars along them, messages and tables over them."""

from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from nclone_env.errors import without_opencv
from nclone_env.game import INPUT_JUMP, INPUT_LEFT, INPUT_RIGHT
from nclone_env.replay.recording import without_accents

try:
    import cv2
except ImportError as _error:
    raise without_opencv(_error) from _error

_FONT = cv2.FONT_HERSHEY_SIMPLEX
_LONGEST = 200  # characters; names come from files
_HEIGHT = 22.0  # pixels of a capital letter at scale 1
BAR_HEIGHT = 28
"""Rows of a bar with one line, pixels at any scale of the picture."""
_LOW, _TWO_LINES = 22, 38  # rows of one below a narrow picture, and with two lines
_WIDE, _NARROW = 640, 430  # least width of a picture with a bar of one line, and with a low one
Colour = tuple[int, int, int]
GROUND: Colour = (38, 43, 62)
BRIGHT: Colour = (240, 242, 248)
DIM: Colour = (158, 166, 188)
GOOD: Colour = (96, 220, 232)  # blue and orange differ for people who see red and green alike
BAD: Colour = (255, 142, 84)
GOLD: Colour = (255, 208, 32)
_LETTER, _SMALL_LETTER, _LEAST_LETTER = 11.5, 9.5, 6.0  # height of a capital letter, pixels
_MARGIN, _GAP = 10, 18
_CAP, _SMALL_CAP = 20, 16  # side of a key cap, pixels
_ARROWS = ((-6, 0, 4, -6, 4, 6), (6, 0, -4, -6, -4, 6), (0, -6, -6, 4, 6, 4))  # left, right, up
_KEYS = (INPUT_LEFT, INPUT_RIGHT, INPUT_JUMP)
_MESSAGE_LETTER, _HELP_LETTER = 13.0, 11.0  # height of a capital letter, pixels
_BORDER, _LINE = 16, 26  # pixels
_OPACITY = 0.92


def write_text(
    picture: np.ndarray,
    text: str,
    left: float,
    middle: float,
    height: float,
    colour: tuple[int, int, int],
    bold: bool = False,
) -> float:
    """Write one line of text into a picture, (h, w, 3) uint8, C-contiguous; return the x of its end.

    It begins at ``left``; ``middle`` and ``height`` are those of its capital letters, pixels. What does not fit is cut;
    letters lose their accents, and other characters outside ASCII become question marks.
    """
    plain, scale, thickness = _plain(text), height / _HEIGHT, _thickness(height) + bold
    place = (round(left), round(middle + height / 2))
    cv2.putText(picture, plain, place, _FONT, scale, colour, thickness, cv2.LINE_AA)
    return left + text_width(text, height)


@lru_cache(maxsize=2048)  # a bar asks for the same widths in every frame
def text_width(text: str, height: float) -> float:
    """Return the width of one line of text whose capital letters have a height, in pixels."""
    return float(cv2.getTextSize(_plain(text), _FONT, height / _HEIGHT, _thickness(height))[0][0])


def fitting(text: str, height: float, width: float) -> str:
    """Return the text, shortened to ``...`` at its end if it is wider than so many pixels."""
    text = text[:_LONGEST]
    if text_width(text, height) <= width:
        return text
    wider = bisect_right(range(len(text)), width, key=lambda length: text_width(f"{text[:length]}...", height))
    return f"{text[: max(wider - 1, 0)].rstrip()}..."


def _plain(text: str) -> str:
    return without_accents(text).encode("ascii", "replace").decode()


def _thickness(height: float) -> int:
    return max(1, round(height / 9))


def bar_height(width: int) -> int:
    """Return the height of the bar below a picture of some width, pixels: a narrow one has two lines."""
    return BAR_HEIGHT if width >= _WIDE else _LOW if width >= _NARROW else _TWO_LINES


def write_bar(width: int, name: str, texts: Sequence[tuple[str, Colour]], code: int) -> np.ndarray:
    """Return a bar, (``bar_height(width)``, width, 3) uint8 RGB, with a name, texts and the keys that are held.

    Args:
        name: written smaller if it needs more room, and cut where that is not enough.
        texts: with their colours; the first one is bold.
        code: input byte of the keys.
    """
    bar = np.full((bar_height(width), width, 3), GROUND, np.uint8)
    one_line = len(bar) < _TWO_LINES
    cap, letter = (_CAP, _LETTER) if len(bar) == BAR_HEIGHT else (_SMALL_CAP, _SMALL_LETTER)
    middle = len(bar) / 2 if one_line else _TWO_LINES * 0.75
    right = draw_keys(bar, code, width - 6, round(middle), cap) - 12
    if one_line:
        needed = sum(text_width(text, letter) + _GAP for text, _ in texts)
        left = _write_name(bar, name, max(right - _MARGIN - needed, 0.25 * right), middle, letter)
    else:
        _write_name(bar, name, width - 2 * _MARGIN, _TWO_LINES * 0.26, letter)
        left = _MARGIN
        while letter > _LEAST_LETTER and sum(text_width(text, letter) + letter for text, _ in texts) > right - left:
            letter -= 0.5
    _write_texts(bar, texts, left, right, middle, letter)
    return bar


def draw_keys(bar: np.ndarray, code: int, right: int, middle: int, cap: int = _CAP) -> int:
    """Draw key caps with arrows to the left, to the right and up into a bar, (h, w, 3) uint8, bright if they are held.

    They end at x ``right``, with their middle at y ``middle``; ``cap`` is the side of one. Return the x at which they
    begin.
    """
    left = right - len(_KEYS) * (cap + 4)
    for number, (key, arrow) in enumerate(zip(_KEYS, _ARROWS, strict=True)):
        down, half = bool(code & key), cap // 2
        x = left + number * (cap + 4) + half
        cv2.rectangle(
            bar, (x - half, middle - half), (x + half, middle + half), BRIGHT if down else DIM, -1 if down else 1
        )
        points = np.array(arrow).reshape(3, 2) * (cap / _CAP) + (x, middle)
        cv2.fillConvexPoly(bar, points.round().astype(np.int32), GROUND if down else DIM, cv2.LINE_AA)
    return left


def _write_name(bar: np.ndarray, name: str, room: float, middle: float, letter: float) -> float:
    """Write a name, smaller if it needs more room; return the x for the next text."""
    while letter > _LEAST_LETTER and text_width(name, letter) > room:
        letter -= 0.5
    return write_text(bar, fitting(name, letter, room), _MARGIN, middle, letter, BRIGHT) + _GAP


def _write_texts(
    bar: np.ndarray, texts: Sequence[tuple[str, Colour]], left: float, right: float, middle: float, letter: float
) -> None:
    """Write texts one after another into a bar, the first one bold, as far as there is room."""
    for number, (text, colour) in enumerate(texts):
        shown = fitting(text, letter, right - left)
        if not shown or shown == "...":
            break
        left = write_text(bar, shown, left, middle, letter, colour, bold=number == 0) + 1.6 * letter


def draw_message(picture: np.ndarray, text: str) -> None:
    """Write a message on a dark ground at the lower edge of a picture, (h, w, 3) uint8, shortened if it is too long."""
    height, width = picture.shape[:2]
    shown = fitting(text, _MESSAGE_LETTER, width - 4 * _BORDER)
    half = round(text_width(shown, _MESSAGE_LETTER) / 2) + _BORDER
    top = height - 3 * _BORDER
    _darken(picture, top, top + 2 * _BORDER, width // 2 - half, width // 2 + half)
    write_text(picture, shown, width // 2 - half + _BORDER, top + _BORDER, _MESSAGE_LETTER, BRIGHT)


def draw_progress(picture: np.ndarray, share: float) -> None:
    """Draw a bar above the message of a picture, (h, w, 3) uint8, filled by a share, 0..1."""
    height, width = picture.shape[:2]
    half, bottom = min(180, width // 3), height - 4 * _BORDER
    left, top = width // 2 - half, bottom - _BORDER
    cv2.rectangle(picture, (left, top), (left + 2 * half, bottom), DIM, 1)
    cv2.rectangle(picture, (left, top), (left + round(2 * half * share), bottom), GOOD, -1)


def draw_table(picture: np.ndarray, rows: Sequence[tuple[str, str]]) -> None:
    """Write rows of two columns on a dark ground in the middle of a picture, (h, w, 3) uint8."""
    height, width = picture.shape[:2]
    first, second = (max(text_width(texts[column], _HELP_LETTER) for texts in rows) for column in (0, 1))
    half = (round(first + second) + 3 * _BORDER) // 2
    top = (height - _LINE * len(rows)) // 2
    _darken(picture, top - _BORDER, top + _LINE * len(rows) + _BORDER, width // 2 - half, width // 2 + half)
    left = width // 2 - half + _BORDER
    for number, (key, meaning) in enumerate(rows):
        middle = top + _LINE * number + _LINE / 2
        write_text(picture, key, left, middle, _HELP_LETTER, BRIGHT)
        write_text(picture, meaning, left + first + _BORDER, middle, _HELP_LETTER, DIM)


def _darken(picture: np.ndarray, top: int, bottom: int, left: int, right: int) -> None:
    """Cover a rectangle with an almost opaque dark ground, as far as it is inside the picture."""
    part = picture[max(top, 0) : max(bottom, 0), max(left, 0) : max(right, 0)]
    if part.size:
        part[:] = cv2.addWeighted(part, 1 - _OPACITY, np.full_like(part, GROUND), _OPACITY, 0.0)
