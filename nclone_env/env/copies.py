"""Snapshots of the environments of a vector environment, and copies between them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from nclone_env.env.arguments import check_indices
from nclone_env.env.arrays.buffers import alone, make_buffers
from nclone_env.env.arrays.infos import single_info
from nclone_env.env.arrays.outputs import COLUMNS, Outputs
from nclone_env.env.base import BaseEnvironment
from nclone_env.env.group import Group
from nclone_env.env.lifecycle import AFTER_RESET, Phase
from nclone_env.options import check_integer


class Copies(BaseEnvironment):
    """The part of the vector environment that saves, restores and copies the state of single environments."""

    num_envs: int
    gymnasium_infos: bool
    _all: Group
    _all_mask: np.ndarray

    def _check(self, call: str, allowed: tuple[Phase, ...]) -> None:
        raise NotImplementedError

    def _returned(self, group: Group, outputs: Outputs) -> tuple[Any, dict[str, Any]]:
        raise NotImplementedError

    def get_state(self, index: int) -> bytes:
        """Return a snapshot of one environment, as bytes that can be stored.

        Raises:
            ConfigError: if there is no such environment.
            ResetNeededError: before the first ``reset``.
            ClosedError: after ``close``.
        """
        self._check_index("get_state", "index", index)
        return self._batch.get_state(index)

    def set_state(self, index: int, state: bytes) -> tuple[Any, dict[str, Any]]:
        """Restore one environment from a snapshot; the same actions then have the same results.

        Args:
            index: environment.
            state: from ``get_state`` of a single or vector environment with the same levels.

        Returns:
            Its observation and the values of the ``info`` columns.

        Raises:
            SnapshotError: if it is malformed, damaged, of other levels or another version, or if its episode is over in
                same-step mode; nothing is changed.
            ConfigError, ResetNeededError, ClosedError: as ``get_state``.
        """
        self._check_index("set_state", "index", index)
        self._batch.set_state(index, state)
        return self._observed(index)

    def copy_world(self, source: int, target: int) -> tuple[Any, dict[str, Any]]:
        """Copy the whole state of one environment to another: world, episode and random state.

        Returns:
            Observation of the copy and the values of the ``info`` columns.

        Raises:
            ConfigError, ResetNeededError, ClosedError: as ``get_state``.
        """
        self._check_index("copy_world", "source", source)
        self._check_index("copy_world", "target", target)
        self._batch.copy(source, target)
        return self._observed(target)

    def gather(self, indices: Any, *, out: Mapping[str, np.ndarray] | None = None) -> tuple[Any, dict[str, Any]]:
        """Copy the whole state of environment ``indices[i]`` to environment i, for all i, as population methods do.

        Args:
            indices: (n,) integers, with repetitions.
            out: as in ``reset``.

        Returns:
            Observations and info of all environments, as ``reset``.

        Raises:
            ConfigError: if the indices have the wrong dtype, shape or range; nothing is changed.
            BufferError: if ``out`` does not fit.
            ResetNeededError, ClosedError: as ``get_state``.
        """
        self._check("gather", AFTER_RESET)
        chosen = check_indices(indices, self.num_envs)
        outputs = self._all.take(out)
        with self._lifecycle:
            self._batch.gather(chosen)
            self._all.reset(~self._all_mask, outputs)
        return self._returned(self._all, outputs)

    def _check_index(self, call: str, name: str, index: int) -> None:
        self._check(call, AFTER_RESET)
        check_integer(name, index, low=0, high=self.num_envs - 1)

    def _observed(self, index: int) -> tuple[Any, dict[str, Any]]:
        """Return copies of one environment's observation and ``info`` columns."""
        buffers = make_buffers(self._batch.specs, 1)
        self._batch.observe(index, buffers)
        row = alone({name: array[0] for name, array in buffers.items()}, self.config.only_observation)
        result = self._batch.results[index]
        if self.gymnasium_infos:
            return row, single_info(result, self.level_names)
        return row, {name: result[name].item() for name in COLUMNS}
