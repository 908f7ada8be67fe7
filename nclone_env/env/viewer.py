"""The picture or window of ``render()``; drawing libraries are imported on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nclone_env.config import EnvironmentConfig

if TYPE_CHECKING:
    from nclone_env.env.batch import Batch
    from nclone_env.render.window import Window


class Viewer:
    """Draws the first world of a batch in the mode of the configuration."""

    __slots__ = ("_config", "_window")

    def __init__(self, config: EnvironmentConfig):
        self._config = config
        self._window: Window | None = None

    def render(self, batch: Batch) -> np.ndarray | None:
        """Return the picture in ``rgb_array`` mode; show it and return None in ``human`` mode."""
        from nclone_env.render.picture import world_picture

        picture = world_picture(batch.level_set.arrays, batch.worlds, 0, self._config.render.picture_scale)
        if self._config.render_mode != "human":
            return picture
        if self._window is None:
            from nclone_env.render.window import Window

            size = (picture.shape[1], picture.shape[0])
            self._window = Window(size, frames_per_second=self._config.frames_per_second)
        self._window.show(picture)
        return None

    def close(self) -> None:
        """Close the window if there is one."""
        if self._window is not None:
            self._window.close()
            self._window = None
