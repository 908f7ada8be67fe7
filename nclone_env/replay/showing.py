"""Watch moving pictures in a window. Requires pygame-ce."""

import itertools
from collections.abc import Collection, Iterable
from contextlib import closing

import numpy as np

from nclone_env.render import Window, check_display
from nclone_env.replay.play import HELP_KEY, PAUSE, STEP, open_window

WATCH_PAUSE = frozenset({"space", PAUSE})
WATCH_HELP = (
    ("space or Enter", "pause; again: go on"),
    (".", "one frame, while paused"),
    ("H", "show or hide these keys"),
    ("Esc", "quit"),
)
"""Keys and what they do while pictures are watched."""


def show(pictures: Iterable[np.ndarray], title: str, size: tuple[int, int]) -> int:
    """Open a window and show pictures in it as :func:`watch`.

    Args:
        pictures: (height, width, 3) uint8, RGB.
        size: width and height of the pictures, pixels.

    Raises:
        DisplayError: if there is no screen.
        MissingExtraError: if pygame-ce is not installed.
    """
    check_display()
    iterator = iter(pictures)
    ready = list(itertools.islice(iterator, 2))  # compiles the kernels while there is no window that would not answer
    return watch(itertools.chain(ready, iterator), open_window(f"{title} - space: pause, H: keys", size))


def watch(pictures: Iterable[np.ndarray], window: Window) -> int:
    """Show pictures until they end or the window is closed; return the number of pictures shown.

    The keys of ``WATCH_HELP`` pause them.
    """
    shown, keys = 0, _WatchKeys()
    with closing(window):
        for picture in pictures:
            is_open = window.show(keys.over(picture))
            shown += is_open
            while is_open and not keys.go_on(window.pressed):
                is_open = window.show(keys.over(picture))
            if not is_open:
                break
    return shown


class _WatchKeys:
    """What the keys have set while pictures are watched."""

    def __init__(self) -> None:
        self._paused = self._shows_help = False

    def go_on(self, pressed: Collection[str]) -> bool:
        """Do what the keys pressed since the last picture ask for; return whether the next picture is shown."""
        self._paused ^= not WATCH_PAUSE.isdisjoint(pressed)
        self._shows_help ^= HELP_KEY in pressed
        return not self._shows_help and (not self._paused or STEP in pressed)

    def over(self, picture: np.ndarray) -> np.ndarray:
        """Return a picture with the keys, or that it stands still, written over it."""
        if not (self._paused or self._shows_help):
            return picture
        from nclone_env.render import bar_height, draw_message, draw_table  # OpenCV is only needed to draw

        picture = picture.copy()
        if self._shows_help:
            draw_table(picture, WATCH_HELP)
        else:
            draw_message(picture[: -bar_height(picture.shape[1])], "paused    space: go on    H: all keys")
        return picture
