"""The pictures or the window of ``render()``; drawing libraries are imported on first use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from nclone_env.config import EnvironmentConfig
from nclone_env.memory_limit import check_fits

if TYPE_CHECKING:
    from nclone_env.env.batch import Batch
    from nclone_env.level import LevelSet
    from nclone_env.render import Area, Window


class Viewer:
    """Draws the worlds of a batch at the scale of the configuration."""

    __slots__ = ("_area", "_config", "_window")

    def __init__(self, config: EnvironmentConfig):
        self._config = config
        self._window: Window | None = None
        self._area: tuple[LevelSet, Area] | None = None

    def picture(self, batch: Batch, index: int = 0) -> np.ndarray:
        """Return the picture of a world, (height, width, 3) uint8; both are even, as the usual video formats need."""
        from nclone_env.render import WORLD, union, used_area_of, world_picture

        options, levels = self._config.render, batch.level_set
        if self._area is None or self._area[0] is not levels:
            self._area = levels, union(used_area_of(level.raw) for level in levels.levels) if options.crop else WORLD
        scale, area = options.picture_scale, self._area[1]
        picture = world_picture(levels.arrays, batch.worlds, index, scale, area, theme=options.theme)
        return np.ascontiguousarray(picture[: picture.shape[0] // 2 * 2, : picture.shape[1] // 2 * 2])

    def pictures(self, batch: Batch, indices: Sequence[int]) -> tuple[np.ndarray, ...]:
        """Return the pictures of some worlds, in the order of the indices.

        Raises:
            MemoryLimitError: if they need more memory than is available.
        """
        made: list[np.ndarray] = []
        for index in indices:
            made.append(self.picture(batch, index))
            if len(made) == 1:
                check_fits("render: pictures of num_envs", len(indices), made[0].nbytes)
        return tuple(made)

    def show(self, batch: Batch) -> None:
        """Show the first world in a window."""
        picture = self.picture(batch)
        if self._window is None:
            from nclone_env.render import Window

            size = (picture.shape[1], picture.shape[0])
            self._window = Window(size, frames_per_second=self._config.frames_per_second)
        self._window.show(picture)

    def close(self) -> None:
        """Close the window if there is one."""
        if self._window is not None:
            self._window.close()
            self._window = None
