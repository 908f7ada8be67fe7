"""One world, stepped frame by frame from Python."""

from __future__ import annotations

import numpy as np

from nclone_env.constants import CELEBRATING, DEAD
from nclone_env.level.level_set import pack
from nclone_env.level.load import LevelSource, load_level
from nclone_env.sim.state import make_worlds
from nclone_env.sim.tick import start, tick


class Session:
    """A level being played; any level, also one that no environment takes.

    Attributes:
        level: the compiled level.
    """

    def __init__(self, level: LevelSource):
        self.level = load_level(level)
        levels = pack([self.level])
        self._levels = levels.arrays
        self._worlds = make_worlds(1, levels)
        self.restart()

    @property
    def over(self) -> bool:
        """Whether the ninja is dead or has won."""
        return self._worlds.ninjas[0]["state"] in (DEAD, CELEBRATING)

    def restart(self) -> None:
        """Go back to the start of the level."""
        start(self._levels, self._worlds, 0, 0)

    def advance(self, inputs: int) -> None:
        """Simulate one frame.

        Args:
            inputs: input byte 0..15: jump 1, right 2, left 4, suicide 8.
        """
        tick(self._levels, self._worlds, 0, np.uint8(inputs))

    def picture(self, scale: float = 1.0) -> np.ndarray:
        """Return a picture, (round(600 * scale), round(1056 * scale), 3) uint8, RGB."""
        from nclone_env.render.picture import world_picture  # OpenCV is only needed to draw

        return world_picture(self._levels, self._worlds, 0, scale)
