"""The common base of the single and the vector environment: a batch, a life cycle, and the levels."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from nclone_env.config import EnvironmentConfig
from nclone_env.env.batch import Batch
from nclone_env.env.lifecycle import Lifecycle
from nclone_env.env.reachability.cache import FieldCounts
from nclone_env.env.viewer import Viewer
from nclone_env.level import Level, LevelSet, levels_as_text
from nclone_env.level.routes import Graphs
from nclone_env.sim.state import WorldArrays


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

    @property
    def reachability_counts(self) -> FieldCounts | None:
        """Usage of the cache of ``reachability`` fields; None without that observation."""
        return self._batch.reachability_counts
