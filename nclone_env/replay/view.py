"""A level while it is played, as people see it: a close-up of what it uses, and a bar that tells how the run stands."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from nclone_env.constants import CELEBRATING, DEAD, FRAMES_PER_SECOND, WORLD_HEIGHT, WORLD_WIDTH
from nclone_env.kinds import GOLD
from nclone_env.level.level import Level
from nclone_env.render import (
    BAD,
    BAR_HEIGHT,
    BRIGHT,
    DIM,
    GOOD,
    Colour,
    close_up,
    empty_bar,
    used_area_of,
    world_picture,
    write_named,
)
from nclone_env.render import GOLD as YELLOW
from nclone_env.sim.session import Session


def view_size(scale: float) -> tuple[int, int]:
    """Return width and height of a view, pixels: the world at a scale, and the bar."""
    return round(WORLD_WIDTH * scale), round(WORLD_HEIGHT * scale) + BAR_HEIGHT


class View:
    """One run on a level.

    Args:
        level: the level.
        scale: size of the picture as a multiple of 1056 x 600 pixels; a level that uses little is enlarged to it.

    Attributes:
        level: the level.
        frames: frames played until the run was over.
    """

    def __init__(self, level: Level, scale: float = 1.0):
        self.level, self.frames = level, 0
        self._session = Session(level)
        self._area, zoom = close_up(used_area_of(level.raw))
        self._scale = scale * zoom
        self._width, self._height = view_size(scale)
        self._gold = int(np.count_nonzero(self._session.entities()["type"] == GOLD))

    @property
    def over(self) -> bool:
        """Whether the ninja is dead or has won."""
        return bool(self._session.over[0])

    @property
    def state(self) -> int:
        """State of the ninja, 0..9."""
        return int(self._session.ninja["state"])

    def start(self) -> None:
        """Return to the start of the level."""
        self._session.start()
        self.frames = 0

    def tick(self, code: int) -> None:
        """Play one frame with an input byte."""
        self.frames += not self.over
        self._session.tick(code)

    def picture(self, ghosts: Iterable[np.void] = ()) -> np.ndarray:
        """Return the picture without the bar, (h, w, 3) uint8, RGB; ``ghosts`` as of ``world_picture``."""
        session = self._session
        picture = world_picture(session.levels, session.worlds, 0, self._scale, self._area, ghosts)
        height = self._height - BAR_HEIGHT
        if picture.shape[:2] == (height, self._width):
            return picture
        whole = np.zeros((height, self._width, 3), np.uint8)  # a row or column was rounded otherwise
        part = picture[:height, : self._width]
        whole[: part.shape[0], : part.shape[1]] = part
        return whole

    def bar(self, label: str = "") -> np.ndarray:
        """Return the bar: the level, the time, gold and how the run stands; (28, w, 3) uint8, RGB.

        Args:
            label: what is written instead of the name of the level.
        """
        bar = empty_bar(self._width)
        self.describe(bar, self._width - 10, label)
        return bar

    def describe(self, bar: np.ndarray, right: float, label: str = "") -> None:
        """Write what :meth:`bar` shows into a bar, left of x = ``right``."""
        write_named(bar, label or self.level.name, self._texts(), right)

    def _texts(self) -> list[tuple[str, Colour]]:
        texts = [(f"{self.frames / FRAMES_PER_SECOND:.2f} s", BRIGHT)]
        if self._gold:
            texts.append((f"gold {self._session.ninja['gold']}/{self._gold}", YELLOW))
        if self.state == DEAD:
            return [*texts, ("dead", BAD)]
        if self.state == CELEBRATING:
            return [*texts, (f"won in {self.frames} frames", GOOD)]
        return [*texts, ("playing" if self.frames else "ready", DIM)]
