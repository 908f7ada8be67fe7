"""The common base of the single and the vector environment: a batch, a life cycle, the levels, and ``render()``."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from nclone_env.config import EnvironmentConfig
from nclone_env.env.batch import Batch
from nclone_env.env.lifecycle import Lifecycle
from nclone_env.level import Graphs, Level, LevelSet, levels_as_text
from nclone_env.machine import check_fits
from nclone_env.sim import WorldArrays

if TYPE_CHECKING:  # drawing libraries are imported on first use
    from nclone_env.render import Area, Window


class BaseEnvironment:
    """Attributes and level-related properties shared by all environments."""

    config: EnvironmentConfig
    _batch: Batch
    _lifecycle: Lifecycle

    _spec: Any = None

    @property
    def spec(self) -> Any:
        """Gymnasium's specification, None without ``make``. Levels in it are text, so that it can become JSON."""
        return self._spec

    @spec.setter
    def spec(self, spec: Any) -> None:
        if spec is not None and "levels" in spec.kwargs:
            spec.kwargs = {**spec.kwargs, "levels": levels_as_text(spec.kwargs["levels"])}
        self._spec = spec

    @cached_property
    def _viewer(self) -> Viewer:
        """What draws for ``render()``."""
        return Viewer(self.config)

    def _close_viewer(self) -> None:
        """Close the window if there is one."""
        viewer = self.__dict__.pop("_viewer", None)
        if viewer is not None:
            viewer.close()

    @property
    def level_names(self) -> tuple[str, ...]:
        """Names of the levels that episodes play."""
        return self._batch.level_set.names

    @property
    def levels(self) -> tuple[Level, ...]:
        """The levels, in the order of ``level_names``."""
        return self._batch.level_set.levels

    @property
    def level_set(self) -> LevelSet:
        """The packed levels; kernels of your own take its ``arrays``, read-only (docs/environments/snapshots.md)."""
        return self._batch.level_set

    @property
    def worlds(self) -> WorldArrays:
        """The worlds, one row for each environment, for kernels of your own to read or copy between two steps.

        Ask for them again after ``gather``, which exchanges the arrays.
        """
        return self._batch.worlds

    @property
    def graphs(self) -> Graphs:
        """The graphs of the levels, in the same order; made on first use and shared by all environments."""
        return self._batch.graphs


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
