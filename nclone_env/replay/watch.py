"""Runs as moving pictures: one, or several at once in a grid."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from nclone_env.config import Theme
from nclone_env.constants import WORLD_HEIGHT, WORLD_WIDTH
from nclone_env.level import Level
from nclone_env.render import GROUND, bar_height
from nclone_env.replay.view import View, view_size

_GAP = 4  # pixels between views
_ROOM = WORLD_WIDTH, WORLD_HEIGHT + 120  # pixels for a grid at scale 1: the world and some bars


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


class Grid(NamedTuple):
    """How several views are arranged.

    Attributes:
        scale: of a view, as of ``View``.
        columns: views in a row.
        width: of the room of a view, pixels.
        heights: of the room of the views of each row, pixels.
    """

    scale: float
    columns: int
    width: int
    heights: tuple[int, ...]

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of the pictures, pixels."""
        return self.columns * (self.width + _GAP) - _GAP, sum(self.heights) + _GAP * (len(self.heights) - 1)

    def place(self, number: int, picture: np.ndarray) -> np.ndarray:
        """Return the room of a view in a picture of the grid."""
        row, column = divmod(number, self.columns)
        top, left = sum(self.heights[:row]) + _GAP * row, (self.width + _GAP) * column
        return picture[top : top + self.heights[row], left : left + self.width]


def run_pictures(run: WatchedRun, scale: float = 1.0, every: int = 1, theme: Theme = "light") -> Iterator[np.ndarray]:
    """Play a run and yield its pictures, from the initial state to the last frame.

    Args:
        scale: size of the pictures, as of ``View``.
        every: yield every n-th frame, and the last.

    Yields:
        (h, w, 3) uint8, RGB, the width and height of ``view_size([run.level], scale)``: the part of the world that the
        level uses, and a bar.
    """
    view = View(run.level, scale, theme)
    frame = shown = 0
    yield _picture(view, run.label)
    for frame, code in enumerate(run.inputs, start=1):
        view.tick(code)
        if frame % every == 0:
            shown = frame
            yield _picture(view, run.label)
    if shown < frame:
        yield _picture(view, run.label)


def arranged(views: Sequence[Sequence[Level]], scale: float = 1.0, step: int = 1) -> Grid:
    """Return the arrangement in which views are largest.

    Args:
        views: the levels that each view may show, at least one.
        scale: 1 fills about 1056 x 720 pixels.
        step: the number of columns is a multiple of it, unless there are fewer views.
    """
    step = step if step <= len(views) else 1
    grids = [_grid(views, columns, scale) for columns in range(step, len(views) + step, step)]
    return max(grids, key=lambda grid: grid.scale)


def _grid(views: Sequence[Sequence[Level]], columns: int, scale: float) -> Grid:
    """Return the largest arrangement in so many columns."""
    sizes = [view_size(levels, 1.0) for levels in views]
    rows = [sizes[first : first + columns] for first in range(0, len(sizes), columns)]
    width = max(width for width, _ in sizes)
    heights = [max(height - bar_height(width) for width, height in row) for row in rows]
    bars = len(rows) * (bar_height(_ROOM[0] // columns) + _GAP)
    share = scale * max(0.05, min(1.0, _ROOM[0] / columns / width, (_ROOM[1] - bars) / sum(heights)))
    cells = [view_size(levels, share) for levels in views]
    room = [max(height for _, height in cells[first : first + columns]) for first in range(0, len(cells), columns)]
    return Grid(share, min(columns, len(views)), max(width for width, _ in cells), tuple(room))


def grid_pictures(
    views: Sequence[Iterator[WatchedRun]], grid: Grid, hold: int = 0, theme: Theme = "light"
) -> Iterator[np.ndarray]:
    """Yield pictures of several runs at once, each of which makes room for the next one when it has ended.

    Args:
        views: the runs that each view shows one after another; may be endless, and one iterator for several views.
        grid: the arrangement.
        hold: frames for which the last picture of a run stays.

    Yields:
        (h, w, 3) uint8, RGB, of the size of the grid; until all runs have ended.
    """
    width, height = grid.size
    picture = np.full((height, width, 3), GROUND, np.uint8)
    cells = [_one_after_another(runs, grid.scale, hold, theme) for runs in views]
    while True:
        moved = False
        for number, cell in enumerate(cells):
            shown = next(cell, None)
            if shown is not None:
                moved = True
                _put_in_the_middle(grid.place(number, picture), shown)
        if not moved:
            return
        yield picture.copy()


def _put_in_the_middle(place: np.ndarray, shown: np.ndarray) -> None:
    """Copy a picture into the middle of a place."""
    top, left = (len(place) - len(shown)) // 2, (place.shape[1] - shown.shape[1]) // 2
    if (top, left) != (0, 0):
        place[:] = GROUND
    place[top : top + len(shown), left : left + shown.shape[1]] = shown


def _one_after_another(runs: Iterator[WatchedRun], scale: float, hold: int, theme: Theme) -> Iterator[np.ndarray]:
    """Yield the pictures of one run after another."""
    for run in runs:
        picture = None
        for picture in run_pictures(run, scale, theme=theme):
            yield picture
        if picture is not None:
            yield from itertools.repeat(picture, hold)


def _picture(view: View, label: str) -> np.ndarray:
    return np.vstack([view.picture(), view.bar(label)])
