"""Runs as moving pictures: one, or several at once in a grid."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from nclone_env.level.level import Level
from nclone_env.render import GROUND
from nclone_env.replay.view import View, view_size

_GAP = 4  # pixels between views


class WatchedRun(NamedTuple):
    """A run to watch.

    Attributes:
        level: the level.
        inputs: one byte 0..15 a frame; taken one after another as the frames are shown.
        label: what the bar says instead of the name of the level.
    """

    level: Level
    inputs: Iterable[int]
    label: str = ""


def run_pictures(run: WatchedRun, scale: float = 1.0, every: int = 1) -> Iterator[np.ndarray]:
    """Play a run and yield its pictures, from the initial state to the last frame.

    Args:
        run: the run.
        scale: size of the pictures as a multiple of 1056 x 600 pixels.
        every: yield every n-th frame, and the last.

    Yields:
        (round(600 * scale) + 28, round(1056 * scale), 3) uint8, RGB; the last 28 rows are the bar.
    """
    view = View(run.level, scale)
    frame = shown = 0
    yield _picture(view, run.label)
    for frame, code in enumerate(run.inputs, start=1):
        view.tick(code)
        if frame % every == 0:
            shown = frame
            yield _picture(view, run.label)
    if shown < frame:
        yield _picture(view, run.label)


def grid_size(views: int, scale: float = 1.0) -> tuple[int, int]:
    """Return width and height of a grid of views, pixels: about those of one view at the scale."""
    columns, rows = _shape(views)
    width, height = view_size(scale / columns)
    return columns * (width + _GAP) - _GAP, rows * (height + _GAP) - _GAP


def grid_pictures(runs: Iterator[WatchedRun], views: int, scale: float = 1.0, hold: int = 0) -> Iterator[np.ndarray]:
    """Yield pictures of several runs at once, each of which makes room for the next one when it has ended.

    Args:
        runs: the runs; may be endless.
        views: number of runs shown at once, at least 1.
        scale: size of a picture as a multiple of 1056 x 600 pixels.
        hold: frames for which the last picture of a run stays.

    Yields:
        (h, w, 3) uint8, RGB, of ``grid_size``; until all runs have ended.
    """
    columns, _ = _shape(views)
    width, height = grid_size(views, scale)
    picture = np.full((height, width, 3), GROUND, np.uint8)
    cells = [_one_after_another(runs, scale / columns, hold) for _ in range(views)]
    across, down = (side + _GAP for side in view_size(scale / columns))
    while True:
        moved = False
        for number, cell in enumerate(cells):
            shown = next(cell, None)
            if shown is not None:
                moved = True
                top, left = number // columns * down, number % columns * across
                picture[top : top + len(shown), left : left + shown.shape[1]] = shown
        if not moved:
            return
        yield picture.copy()


def _one_after_another(runs: Iterator[WatchedRun], scale: float, hold: int) -> Iterator[np.ndarray]:
    """Yield the pictures of one run after another."""
    for run in runs:
        picture = None
        for picture in run_pictures(run, scale):
            yield picture
        if picture is not None:
            yield from itertools.repeat(picture, hold)


def _shape(views: int) -> tuple[int, int]:
    """Return columns and rows of a grid."""
    columns = math.ceil(math.sqrt(views))
    return columns, math.ceil(views / columns)


def _picture(view: View, label: str) -> np.ndarray:
    return np.vstack([view.picture(), view.bar(label)])
