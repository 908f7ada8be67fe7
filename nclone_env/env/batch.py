"""A batch of environments: the memory of all of them, and the calls that advance it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from nclone_env._jit import specialised
from nclone_env.config import EnvironmentConfig
from nclone_env.env.buffers import Buffers, kernel_view, make_buffers
from nclone_env.env.episode import EPISODE, RESULT, SAME_STEP, make_settings
from nclone_env.env.observe import NO_OBSERVATIONS, ObservationArrays
from nclone_env.env.pictures import picture_arrays
from nclone_env.env.snapshot import Rows, level_set_digest, place_rows, read_snapshot, write_snapshot
from nclone_env.env.step import reset_range, step_range
from nclone_env.env.threads import Shards
from nclone_env.errors import SnapshotError, UnknownLevelError, UnsupportedLevelError
from nclone_env.level.library import LevelSet
from nclone_env.level.load import load_levels
from nclone_env.level.records import count_exits
from nclone_env.level.shared import shared_level_set
from nclone_env.memory_tree import MemoryNode
from nclone_env.obs.spec import observation_specs
from nclone_env.render.arrays import PictureArrays
from nclone_env.sim.copy import gather_worlds
from nclone_env.sim.state import WorldArrays, make_worlds


class Batch:
    """Worlds, episodes and results of ``num_envs`` environments over one set of levels.

    A single environment is a batch of one. Everything is allocated here; a step allocates nothing.
    ``actions``, (n,) int64, are what the next step plays; ``env.actions.check_actions`` writes them.

    Args:
        config: what to build.
        num_envs: number of environments.
        autoreset: ``NEXT_STEP``, ``SAME_STEP`` or ``DISABLED``.
        num_threads: threads that share the work; by default one per core if there is enough of it.
        like: a batch of the same configuration, whose levels and pictures are shared; loaded if None.

    Raises:
        UnsupportedLevelError: if a level has no exit.
    """

    def __init__(
        self,
        config: EnvironmentConfig,
        num_envs: int,
        autoreset: int,
        num_threads: int | None = None,
        like: Batch | None = None,
    ):
        self.config = config
        self.num_envs = num_envs
        self.autoreset = autoreset
        self.specs = observation_specs(config)
        self.level_set: LevelSet = like.level_set if like else playable_levels(config)
        self.worlds = make_worlds(num_envs, self.level_set, config.max_frames)
        self._spare_worlds: WorldArrays | None = None
        self.episodes = np.zeros(num_envs, dtype=EPISODE)
        self.episodes["next_level"] = -1
        self.results = np.zeros(num_envs, dtype=RESULT)
        self.actions = np.zeros(num_envs, dtype=np.int64)
        self.pictures: PictureArrays = like.pictures if like else picture_arrays(config.observations, self.level_set)
        self.final: Buffers = make_buffers(self.specs, num_envs) if autoreset == SAME_STEP else {}
        self._final_view = kernel_view(self.final) if self.final else NO_OBSERVATIONS
        self._settings = make_settings(config, autoreset)
        self._reset_mask = np.zeros(num_envs, dtype=np.bool_)
        self._shards = Shards(num_envs, num_threads)
        self._step = specialised(step_range, *self._step_arguments(NO_OBSERVATIONS), 0, 0)
        self._reset = specialised(reset_range, *self._reset_arguments(NO_OBSERVATIONS), 0, 0)

    def seed(self, seeds: np.ndarray, mask: np.ndarray) -> None:
        """Restart the random choices of the environments in ``mask`` from ``seeds``, (n,) uint64."""
        self.episodes["seed"][mask] = seeds[mask]
        self.episodes["number"][mask] = 0

    def choose_level(self, level: Any, mask: np.ndarray) -> None:
        """Play a level of the set, by name or index, in the next episode of the environments in ``mask``.

        Raises:
            UnknownLevelError: if it is not in the set; the message lists the names.
        """
        self.episodes["next_level"][mask] = find_level(level, self.level_set.names)

    def reset(self, mask: np.ndarray, out: Buffers) -> None:
        """Begin new episodes where ``mask``, (n,) bool, is set; write the observations of all into ``out``."""
        self._reset_mask[:] = mask
        arguments = self._reset_arguments(kernel_view(out))
        self._shards.run(lambda first, last: self._reset(*arguments, first, last))

    def step(self, out: Buffers) -> None:
        """Advance every environment by one step with ``actions``; write observations into ``out`` and ``results``."""
        arguments = self._step_arguments(kernel_view(out))
        self._shards.run(lambda first, last: self._step(*arguments, first, last))

    def observe(self, index: int, out: Buffers) -> None:
        """Write the observations of one environment into its row of ``out``."""
        self._reset_mask[:] = False
        self._reset(*self._reset_arguments(kernel_view(out)), index, index + 1)

    def get_state(self, index: int) -> bytes:
        """Return the snapshot of an environment."""
        return write_snapshot(self._digest, self._rows(), index)

    def set_state(self, index: int, state: bytes) -> None:
        """Make an environment what it was when the snapshot was taken.

        Raises:
            SnapshotError: if it is none, does not fit, or its episode is over where that cannot be; nothing is
                changed then.
        """
        rows = self._read(state)
        if self.autoreset == SAME_STEP and rows["episodes"]["over"][0]:
            _refuse_ended("an episode that goes on, as episodes end and begin in the same step here")
        place_rows(rows, self._rows(), index)

    def read_start(self, state: bytes) -> Rows:
        """Return the rows of a snapshot in which an episode can begin.

        Raises:
            SnapshotError: if it is none or does not fit, or its episode is over.
        """
        rows = self._read(state)
        if rows["episodes"]["over"][0]:
            _refuse_ended("an episode that goes on")
        return rows

    def begin_at(self, rows: Rows, mask: np.ndarray) -> None:
        """Begin new episodes where ``mask``, (n,) bool, is set, in the world of a snapshot; observe nothing."""
        head, potential = rows["heads"][0], rows["episodes"]["potential"][0]
        for index in np.flatnonzero(mask).tolist():
            place_rows({name: rows[name] for name in WorldArrays._fields}, self._rows(), index)
            episode = self.episodes[index]
            episode["number"] += 1
            episode["steps"], episode["episode_return"], episode["potential"] = 0, 0.0, potential
            episode["next_level"], episode["over"] = -1, 0
            self.results[index] = np.zeros((), RESULT)
            result = self.results[index]
            result["level"], result["gold"], result["episode_frames"] = head["level"], head["gold"], head["frame"]

    def copy(self, source: int, target: int) -> None:
        """Make one environment a copy of another, in everything."""
        for array in self._rows().values():
            array[target : target + 1] = array[source : source + 1]

    def gather(self, indices: np.ndarray) -> None:
        """Make environment i a copy of what environment ``indices[i]`` is now, in everything; indices are (n,) int64.

        The first call makes a second set of worlds, which is kept.
        """
        if self._spare_worlds is None:
            self._spare_worlds = make_worlds(self.num_envs, self.level_set, self.config.max_frames)
        gather_worlds(self.worlds, indices, self._spare_worlds)
        self.worlds, self._spare_worlds = self._spare_worlds, self.worlds
        self.episodes[:] = self.episodes[indices]
        self.results[:] = self.results[indices]

    def _read(self, state: bytes) -> Rows:
        return read_snapshot(state, self._digest, self._rows(), self.level_set)

    def _rows(self) -> Rows:
        """Return the arrays with a row an environment that its future and its last result consist of."""
        return {**self.worlds._asdict(), "episodes": self.episodes, "results": self.results}

    @cached_property
    def _digest(self) -> bytes:
        return level_set_digest(self.level_set, self._rows())

    def _step_arguments(self, out: ObservationArrays) -> tuple[Any, ...]:
        own = (self.episodes, self.actions, self.results)
        return (*self._world_arguments(), *own, out, self._final_view)

    def _reset_arguments(self, out: ObservationArrays) -> tuple[Any, ...]:
        return (*self._world_arguments(), self.episodes, self._reset_mask, self.results, out)

    def _world_arguments(self) -> tuple[Any, ...]:
        return (self.level_set.arrays, self.level_set.fields, self.worlds, self.pictures, self._settings)

    def close(self) -> None:
        """End the threads."""
        self._shards.close()

    def memory(self) -> MemoryNode:
        """Return the bytes of everything the batch owns."""
        own = {"episodes": self.episodes, "results": self.results, "actions": self.actions}
        own.update({f"final {name}": array for name, array in self.final.items()})
        if self._spare_worlds is not None:
            own.update({f"spare {name}": array for name, array in self._spare_worlds._asdict().items()})
        leaves = tuple(MemoryNode(name, int(array.nbytes)) for name, array in own.items())
        parts = (self.level_set.memory(), self.pictures.memory(), self.worlds.memory(), *leaves)
        return MemoryNode("environments", children=tuple(part for part in parts if part.total_bytes))


def _refuse_ended(expected: str) -> None:
    raise SnapshotError("state", "episodes.over", expected, "one that is over; take the snapshot before its end")


def playable_levels(config: EnvironmentConfig) -> LevelSet:
    """Load the levels of a configuration; environments of the same levels share them.

    Raises:
        UnsupportedLevelError: if one has no exit.
    """
    levels = load_levels(config.levels)
    for level in levels:
        if not count_exits(level.raw.records):
            raise UnsupportedLevelError(
                f"levels: {level.name!r} has no exit, so no episode could succeed; simulate() plays such levels, "
                f"environments need at least one exit with its switch"
            )
    return shared_level_set(levels)


def find_level(level: Any, names: Sequence[str]) -> int:
    """Return the index of a level given by name or index.

    Raises:
        UnknownLevelError: if there is none; the message lists the names.
    """
    if isinstance(level, str) and level in names:
        return names.index(level)
    if isinstance(level, (int, np.integer)) and not isinstance(level, bool) and 0 <= level < len(names):
        return int(level)
    raise UnknownLevelError(
        f"options['level']: expected a name or an index below {len(names)}, got {level!r}; "
        f"levels of this environment: {', '.join(names)}"
    )
