"""What every environment tells about its levels."""

from __future__ import annotations

from nclone_env.env.batch import Batch
from nclone_env.env.reachability.cache import CacheCounts
from nclone_env.level.level import Level
from nclone_env.level.routes.graph import Graphs


class LevelAccess:
    """Properties of an environment, single or of a vector."""

    _batch: Batch

    @property
    def level_names(self) -> tuple[str, ...]:
        """Names of the levels an episode can play."""
        return self._batch.level_set.names

    @property
    def levels(self) -> tuple[Level, ...]:
        """The levels themselves, in the same order."""
        return self._batch.level_set.levels

    @property
    def graphs(self) -> Graphs:
        """The graphs of the levels, in the same order, made on first use and shared by all environments."""
        return self._batch.graphs

    @property
    def reachability_counts(self) -> CacheCounts | None:
        """How the cache of fields of ``reachability`` is used; None without that observation."""
        return self._batch.reachability_counts
