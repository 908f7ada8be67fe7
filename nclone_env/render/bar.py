"""Bars of text along pictures for people: the title of a level, or how a run stands."""

from __future__ import annotations

import numpy as np

from nclone_env.render.text import fitting, text_width, write_text

BAR_HEIGHT = 28
"""Rows of a bar, pixels at any scale of the picture."""
Colour = tuple[int, int, int]
GROUND: Colour = (38, 43, 62)
BRIGHT: Colour = (240, 242, 248)
DIM: Colour = (158, 166, 188)
GOOD: Colour = (120, 224, 128)
BAD: Colour = (255, 128, 112)
GOLD: Colour = (255, 208, 32)
_LETTER = 10.0  # height of a capital letter, pixels
_MARGIN, _GAP = 10, 18
_LEAST_NAME = 0.2  # of the bar


def empty_bar(width: int) -> np.ndarray:
    """Return a bar without text, (28, width, 3) uint8."""
    return np.full((BAR_HEIGHT, width, 3), GROUND, np.uint8)


def title_bar(title: str, author: str, width: int) -> np.ndarray:
    """Return a bar with the title of a level and its author, (28, width, 3) uint8."""
    bar = empty_bar(width)
    texts = [(title, BRIGHT), *([(f"by {author}", DIM)] if author else [])]
    write_texts(bar, texts, _MARGIN, width - _MARGIN)
    return bar


def write_texts(bar: np.ndarray, texts: list[tuple[str, Colour]], left: float, right: float) -> float:
    """Write texts one after another into a bar, as far as there is room; return the x for the next one."""
    for text, colour in texts:
        shown = fitting(text, _LETTER, right - left)
        if not shown or shown == "...":
            break
        left = write_text(bar, shown, left, BAR_HEIGHT / 2, _LETTER, colour) + _GAP
    return left


def write_named(bar: np.ndarray, name: str, texts: list[tuple[str, Colour]], right: float) -> None:
    """Write a name and texts into a bar, left of x = ``right``; a name that leaves no room is shortened."""
    needed = sum(text_width(text, _LETTER) + _GAP for text, _ in texts)
    room = max(right - _MARGIN - needed, _LEAST_NAME * right)
    write_texts(bar, [(fitting(name, _LETTER, room), BRIGHT), *texts], _MARGIN, right)


def write_right(bar: np.ndarray, text: str, right: float, colour: Colour) -> float:
    """Write a text that ends at x = ``right``; return the x that the text before it may reach."""
    left = right - text_width(text, _LETTER)
    write_text(bar, text, left, BAR_HEIGHT / 2, _LETTER, colour)
    return left - _GAP
