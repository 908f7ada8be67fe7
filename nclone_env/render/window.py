"""A window that shows pictures, for ``render_mode="human"``. Needs pygame-ce."""

import logging
import os
import time
from collections import deque
from typing import Any

import numpy as np

from nclone_env import errors
from nclone_env.errors import optional_module
from nclone_env.game import FRAMES_PER_SECOND

_INVISIBLE = ("offscreen", "dummy")  # drivers that SDL falls back on
_WITHOUT_OPENGL = ("x11", *_INVISIBLE)
"""Drivers that can show pictures without OpenGL. Mesa's brings LLVM, whose functions all later libraries find: triton,
which PyTorch's optimizers import, takes them for its own, and a segmentation fault ends the process."""
_MEASURED = 40  # pictures over which the rate is measured


class Window:
    """A window of a fixed size; only the display is started, no sound.

    Args:
        size: width and height in pixels.
        frames_per_second: limit on the rate of pictures, for which ``show`` waits; 0 does not wait.
        closing_key: name of a key that closes the window like its button.
        must_be_seen: refuse to draw where there is no screen; otherwise a line of the log says so.

    Attributes:
        rate: pictures per second of late; 0 while it is not known.
        pressed: names of the keys pressed between the last two calls of ``show``, such as ``left`` or ``space``.
        held: names of the keys that are down.
    """

    def __init__(
        self,
        size: tuple[int, int],
        title: str = "nclone_env",
        frames_per_second: float = FRAMES_PER_SECOND,
        closing_key: str = "",
        must_be_seen: bool = True,
    ):
        self._pygame = _started_pygame(must_be_seen)
        self.set_title(title)
        self._surface = self._pygame.display.set_mode(size)
        self._due = 0.0
        self._times: deque[float] = deque(maxlen=_MEASURED)
        self._frames_per_second = frames_per_second
        self._closing_key = closing_key
        self.size = size
        self.is_open = True
        self.rate = 0.0
        self.pressed: set[str] = set()
        self.held: set[str] = set()

    def show(self, picture: np.ndarray) -> bool:
        """Show a picture, (height, width, 3) uint8, RGB, and process the user's events; return whether this is open.

        A closed window stays closed.
        """
        if not self.is_open:
            raise errors.ClosedError(
                "window: it was closed; make a new Window, or a new environment, to show pictures again"
            )
        expected = (self.size[1], self.size[0], 3)
        if picture.shape != expected or picture.dtype != np.uint8:
            raise errors.BufferError(
                f"picture: expected shape {expected} uint8, got {picture.shape} {picture.dtype}; "
                "make the window of the picture's size"
            )
        if self._user_closes():
            self.close()
            return False
        self._pygame.surfarray.blit_array(self._surface, picture.transpose(1, 0, 2))
        self._pygame.display.flip()
        if self._frames_per_second:
            self._wait()
        return True

    def _wait(self) -> None:
        """Wait until a picture is due after the one before, and measure the rate; pygame's clock counts whole ms."""
        now = time.perf_counter()
        self._due = max(self._due + 1.0 / self._frames_per_second, now)  # what was late stays late
        time.sleep(self._due - now)
        self._times.append(time.perf_counter())
        if len(self._times) == _MEASURED:
            self.rate = (_MEASURED - 1) / (self._times[-1] - self._times[0])

    def set_title(self, title: str) -> None:
        """Change the text of the title bar."""
        self._pygame.display.set_caption(title)

    def _user_closes(self) -> bool:
        """Process the user's events; return whether one closes the window."""
        self.pressed.clear()
        for event in self._pygame.event.get():
            if event.type == self._pygame.QUIT:
                return True
            if event.type == self._pygame.KEYDOWN:
                name = self._pygame.key.name(event.key)
                self.pressed.add(name)
                self.held.add(name)
                if name == self._closing_key:
                    return True
            elif event.type == self._pygame.KEYUP:
                self.held.discard(self._pygame.key.name(event.key))
            elif event.type == self._pygame.WINDOWFOCUSLOST:  # keys released now are never reported
                self.held.clear()
        return False

    @staticmethod
    def check() -> None:
        """Check that windows can be opened; errors as of the class."""
        _started_pygame().display.quit()

    def close(self) -> None:
        """Close the window; closing twice does nothing."""
        if self.is_open:
            self.is_open = False
            self._pygame.display.quit()


def _started_pygame(must_be_seen: bool = True) -> Any:
    """Return the module with its display started, which may be invisible unless it ``must_be_seen``."""
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    pygame = optional_module("pygame", "human")
    fix = "set DISPLAY or WAYLAND_DISPLAY, or write pictures or a video instead"
    try:
        pygame.display.init()
    except pygame.error as error:
        raise errors.DisplayError(f"window: expected a screen, got none ({error}); {fix}") from error
    if pygame.display.get_driver() in _WITHOUT_OPENGL:
        os.environ.setdefault("SDL_FRAMEBUFFER_ACCELERATION", "0")
    if pygame.display.get_driver() in _INVISIBLE and "SDL_VIDEODRIVER" not in os.environ:
        if not must_be_seen:
            logging.getLogger(__name__).warning("window: there is no screen, so that it is invisible; %s", fix)
            return pygame
        pygame.display.quit()
        raise errors.DisplayError(f"window: expected a screen, got none; {fix}")
    return pygame
