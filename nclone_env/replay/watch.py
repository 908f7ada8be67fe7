"""Runs as moving pictures: one, or several at once in a grid; and a window for them, which requires pygame-ce."""

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from typing import Annotated, NamedTuple

import numpy as np

from nclone_env.config import Theme
from nclone_env.errors import Within, check_value, checked
from nclone_env.game import WORLD_HEIGHT, WORLD_WIDTH
from nclone_env.level import Level
from nclone_env.render import Window
from nclone_env.replay.recording import Recording, WatchedRun, named_level
from nclone_env.replay.text import GROUND, bar_height, draw_message, draw_table
from nclone_env.replay.view import View, natural_size

HELP_KEY, PAUSE, STEP, QUIT = "h", "return", ".", "escape"
WATCH_PAUSE = frozenset({"space", PAUSE})
WATCH_HELP = (
    ("space or Enter", "pause; again: go on"),
    (".", "one frame, while paused"),
    ("H", "show or hide these keys"),
    ("Esc", "quit"),
)
"""Keys and what they do while pictures are watched."""
_GAP = 4  # pixels between views
_LEAST_WIDTH = 112  # pixels of the room of a view at scale 1, so that the names of built-in levels can be read
_WIDTHS = [share / 20 for share in range(8, 21)]  # of rows that are tried, by that of the room
_ROUNDED = 0.49  # pixels, so that a size that was rounded up fits
_ROOM = WORLD_WIDTH, WORLD_HEIGHT + 120  # pixels for a grid at scale 1: the world and some bars


class Room(NamedTuple):
    """The room of a view in a grid, pixels: for a picture, and the bar below it."""

    left: int
    top: int
    width: int
    height: int
    most: float
    """Largest scale of a view."""

    def of(self, picture: np.ndarray) -> np.ndarray:
        """Return the room in a picture of the grid."""
        return picture[self.top : self.top + self.height, self.left : self.left + self.width]

    def scale_of(self, level: Level) -> float:
        """Return the largest scale, as of ``View``, with which a level fits."""
        width, height = natural_size(level)
        room = self.height - bar_height(self.width)
        return min(self.most, (self.width + _ROUNDED) / width, (room + _ROUNDED) / height)


class Grid(NamedTuple):
    """How several views are arranged: rows that are as wide as the picture, each with views of one height.

    Attributes:
        size: width and height of the pictures, pixels.
        places: that of each view.
        use: how good it is: square of the sum of the sides of views as squares, times their share; below 0: too wide.
    """

    size: tuple[int, int]
    places: tuple[Room, ...]
    use: float


class _Shape(NamedTuple):
    """Width by height of a view, and its height at scale 1."""

    aspect: float
    height: float


def run_pictures(run: WatchedRun, scale: float = 1.0, theme: Theme = "light", width: int = 0) -> Iterator[np.ndarray]:
    """Play a run and yield its pictures, (h, w, 3) uint8 RGB, from the initial state to the last frame.

    They show the part of the world that the level uses, and a bar, in the size of ``view_size([run.level], scale)``, or
    ``width`` pixels wide if that is wider.
    """
    view = View(run.level, scale, theme)
    yield _picture(view, run.label, width)
    for code in run.inputs:
        view.tick(code)
        yield _picture(view, run.label, width)


@checked()
def recording_pictures(recording: Recording, scale: float = 1.0, theme: Theme = "light") -> Iterator[np.ndarray]:
    """Replay a recording and yield its pictures, from the initial state to the last frame.

    Args:
        recording: the recording.
        scale: size of the pictures: at 1 the whole world is 1056 x 600 pixels, and a level that uses a part of it is
            enlarged, at most twice, to this width or height.
        theme: the colours.

    Yields:
        (h, w, 3) uint8, RGB: the part of the world that the level uses, and below it a bar that tells level, time, gold
        and the keys held.
    """
    check_value("scale", Annotated[float, Within(0.05, 16)], scale)
    return run_pictures(WatchedRun(named_level(recording), recording.inputs), scale, theme)


def arranged(views: Sequence[Sequence[Level]], scale: float = 1.0, step: int = 1) -> Grid:
    """Return the arrangement in which views are large and leave little room between them.

    Args:
        views: the levels that each view may show, at least one.
        scale: 1 fills about 1056 x 720 pixels.
        step: the number of views in a row is a multiple of it, unless there are fewer views.
    """
    step = step if step <= len(views) else 1
    sizes = [np.mean([natural_size(level) for level in levels], axis=0).tolist() for levels in views]
    shapes = [_Shape(width / height, height) for width, height in sizes]
    groups = -(-len(views) // step)
    grids = []
    # The last or the first rows have one more; all rows are equally high or not.
    for count, more, across, even in itertools.product(range(1, groups + 1), (0, 1), _WIDTHS, (True, False)):
        ends = [min(step * ((groups * row + more * (count - 1)) // count), len(views)) for row in range(count + 1)]
        grids.append(_grid([shapes[first:end] for first, end in itertools.pairwise(ends)], across, even, scale))
    return max(grids, key=lambda grid: grid.use)


def _grid(rows: Sequence[Sequence[_Shape]], across: float, even: bool, scale: float) -> Grid:
    """Return the largest arrangement of views in rows, no wider than ``across`` times the room where names allow it.

    ``even`` rows are equally high.
    """
    room = scale * _ROOM[0]
    tall = []
    for row in rows:
        full = (across * room - _GAP * (len(row) - 1)) / sum(shape.aspect for shape in row)
        tall.append(min(full, *(scale * shape.height for shape in row)))
    if even:
        tall = [min(tall)] * len(tall)
    bars = [max(bar_height(round(height * shape.aspect)) for shape in row) for height, row in zip(tall, rows)]
    shrunk = min(1.0, max(0.05, (scale * _ROOM[1] - sum(bars) - _GAP * (len(rows) - 1)) / sum(tall)))
    heights = [height * shrunk for height in tall]
    least = round(scale * _LEAST_WIDTH)
    widths = [[max(round(height * shape.aspect), least) for shape in row] for height, row in zip(heights, rows)]
    width = max(sum(each) + _GAP * (len(each) - 1) for each in widths)
    places: list[Room] = []
    top = 0
    for height, each in zip(heights, widths):
        whole = round(height) + max(map(bar_height, each))
        left = (width - sum(each) - _GAP * (len(each) - 1)) // 2
        for one in each:
            places.append(Room(left, top, one, whole, scale))
            left += one + _GAP
        top += whole + _GAP
    sides = [height * math.sqrt(shape.aspect) for height, row in zip(heights, rows) for shape in row]
    use = sum(sides) ** 2 * sum(side * side for side in sides) / (width * (top - _GAP))
    return Grid((width, top - _GAP), tuple(places), use if width <= room + _GAP else -float(width))


def grid_pictures(
    views: Sequence[Iterator[WatchedRun]], grid: Grid, hold: int = 0, theme: Theme = "light"
) -> Iterator[np.ndarray]:
    """Yield pictures of several runs at once, each of which makes room for the next one when it has ended.

    Args:
        views: the runs that each view shows one after another; may be endless, and one iterator for several views.
        hold: frames for which the last picture of a run stays.

    Yields:
        (h, w, 3) uint8, RGB, of the size of the grid; until all runs have ended.
    """
    width, height = grid.size
    picture = np.full((height, width, 3), GROUND, np.uint8)
    cells = [_one_after_another(runs, place, hold, theme) for runs, place in zip(views, grid.places)]
    while True:
        moved = False
        for place, cell in zip(grid.places, cells):
            shown = next(cell, None)
            if shown is not None:
                moved = True
                _put_in_the_middle(place.of(picture), shown)
        if not moved:
            return
        yield picture.copy()


def _put_in_the_middle(place: np.ndarray, shown: np.ndarray) -> None:
    """Copy a picture into the middle of a place that is as wide."""
    top = (len(place) - len(shown)) // 2
    if top:
        place[:] = GROUND
    place[top : top + len(shown)] = shown


def _one_after_another(runs: Iterator[WatchedRun], place: Room, hold: int, theme: Theme) -> Iterator[np.ndarray]:
    """Yield the pictures of one run after another, each as large as fits."""
    for run in runs:
        picture = None
        for picture in run_pictures(run, place.scale_of(run.level), theme=theme, width=place.width):
            yield picture
        if picture is not None:
            yield from itertools.repeat(picture, hold)


def _picture(view: View, label: str, width: int) -> np.ndarray:
    width = max(width, view.width)
    shown, bar = view.picture(), view.bar(label, width=width)
    picture = np.full((len(shown), width, 3), GROUND, np.uint8)
    left = (width - view.width) // 2
    picture[:, left : left + view.width] = shown
    return np.vstack([picture, bar])


def show(pictures: Iterable[np.ndarray], title: str, size: tuple[int, int]) -> int:
    """Open a window of a size and show pictures in it, (height, width, 3) uint8 RGB, as :func:`watch`."""
    Window.check()
    iterator = iter(pictures)
    ready = list(itertools.islice(iterator, 2))  # compiles the kernels while there is no window that would not answer
    window = Window(size, f"{title} - space: pause, H: keys", closing_key=QUIT)
    return watch(itertools.chain(ready, iterator), window)


def watch(pictures: Iterable[np.ndarray], window: Window) -> int:
    """Show pictures until they end or the window is closed; return the number of pictures shown.

    The keys of ``WATCH_HELP`` pause them.
    """
    shown, paused, shows_help = 0, False, False
    with closing(window):
        for picture in pictures:
            is_open, goes_on = window.show(_with_note(picture, paused, shows_help)), False
            shown += is_open
            while is_open and not goes_on:
                paused ^= not WATCH_PAUSE.isdisjoint(window.pressed)
                shows_help ^= HELP_KEY in window.pressed
                goes_on = not shows_help and (not paused or STEP in window.pressed)
                if not goes_on:
                    is_open = window.show(_with_note(picture, paused, shows_help))
            if not is_open:
                break
    return shown


def _with_note(picture: np.ndarray, paused: bool, shows_help: bool) -> np.ndarray:
    """Return a picture with the keys, or that it stands still, written over it."""
    if not (paused or shows_help):
        return picture
    picture = picture.copy()
    if shows_help:
        draw_table(picture, WATCH_HELP)
    else:
        draw_message(picture[: -bar_height(picture.shape[1])], "paused    space: go on    H: all keys")
    return picture
