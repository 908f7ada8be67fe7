"""Play a level with the keyboard, and watch recordings, in a window. Needs pygame-ce."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

import numpy as np

from nclone_env.constants import (
    FRAMES_PER_SECOND,
    INPUT_JUMP,
    INPUT_LEFT,
    INPUT_RIGHT,
    WORLD_HEIGHT,
    WORLD_WIDTH,
)
from nclone_env.level.load import LevelSource, load_level
from nclone_env.render.window import Window
from nclone_env.replay.recording import Recording
from nclone_env.sim.session import Session

KEYS = {
    **dict.fromkeys(("left", "a"), INPUT_LEFT),
    **dict.fromkeys(("right", "d"), INPUT_RIGHT),
    **dict.fromkeys(("space", "z", "up", "w"), INPUT_JUMP),
}
"""The input bit of each key that moves the ninja."""
RESTART, SAVE, QUIT = "r", "s", "escape"
HELP = "arrows or A D: move   space, Z, W or up: jump   R: restart   S: save the recording   Esc: quit"


def input_byte(keys: Iterable[str]) -> int:
    """Return the input byte for the names of the keys that are down."""
    code = 0
    for key in keys:
        code |= KEYS.get(key, 0)
    return code


def open_window(title: str, scale: float = 1.0) -> Window:
    """Return a window for pictures of this scale that shows 60 a second.

    Raises:
        MissingExtraError: if pygame-ce is not installed.
    """
    return Window((round(WORLD_WIDTH * scale), round(WORLD_HEIGHT * scale)), title, FRAMES_PER_SECOND)


def play(level: LevelSource, save: Callable[[Recording], object], window: Window, scale: float = 1.0) -> None:
    """Let a person play until the window is closed.

    The first key that moves the ninja starts the clock. After death or victory the ninja rests until a restart.

    Args:
        level: whatever names one level.
        save: gets the recording of the run so far whenever the person saves.
        window: where to play; it is closed in the end.
        scale: pixels of the window per pixel of the world.
    """
    from nclone_env.render.picture import world_picture  # OpenCV is only needed to draw

    loaded = load_level(level)
    session = Session(loaded)
    inputs = bytearray()
    while window.show(world_picture(session.levels, session.worlds, 0, scale)) and QUIT not in window.pressed:
        if RESTART in window.pressed:
            session.start()
            inputs.clear()
        if SAVE in window.pressed and inputs:
            save(Recording.of(loaded, bytes(inputs)))
        code = _input_of(window.held, window.pressed)
        if (code or inputs) and not session.over[0]:
            session.tick(code)
            inputs.append(code)
    window.close()


def watch(pictures: Iterable[np.ndarray], window: Window) -> int:
    """Show pictures until they end or the window is closed; return how many were shown."""
    shown = 0
    for picture in pictures:
        if not window.show(picture) or QUIT in window.pressed:
            break
        shown += 1
    window.close()
    return shown


def _input_of(held: Collection[str], pressed: Collection[str]) -> int:
    """Return the input byte; a key pressed and let go within one frame counts."""
    return input_byte({*held, *pressed})
