"""A batch of environments: the memory of all of them, and the calls that advance it."""

from __future__ import annotations

from functools import cached_property, partial
from typing import Any

import numpy as np

from nclone_env.config import EnvironmentConfig
from nclone_env.env.arrays.buffers import Buffers
from nclone_env.env.arrays.frame_stack import FrameStack
from nclone_env.env.compiled.action_mask import MASK_AT_END, ActionMasks
from nclone_env.env.compiled.observe import ObservationArrays, kernel_view, make_scratch
from nclone_env.env.compiled.records import EPISODE, EVENT, RESULT, SAME_STEP, make_settings
from nclone_env.env.compiled.reward_function import RewardFunction, RewardPass
from nclone_env.env.compiled.step import reset_range, step_range
from nclone_env.env.curriculum import find_level, level_thresholds
from nclone_env.env.reachability.answer import Reachability
from nclone_env.env.reachability.cache import CacheCounts, shared_cache
from nclone_env.env.snapshot import Rows, level_set_digest, place_rows, read_snapshot, write_snapshot
from nclone_env.env.threads import OWN_SEAT, Task, Workers
from nclone_env.errors import SnapshotError, UnsupportedLevelError
from nclone_env.jit import specialised
from nclone_env.level.level_set import LevelSet
from nclone_env.level.library import shared_level_set
from nclone_env.level.load import load_levels
from nclone_env.level.records import count_exits
from nclone_env.level.routes.graph import Graphs, level_graphs
from nclone_env.memory_tree import MemoryNode
from nclone_env.obs.graph import NO_LATTICE
from nclone_env.obs.reachability import NO_QUERIES
from nclone_env.obs.spec import frame_specs, observation_specs
from nclone_env.render.arrays import PictureArrays
from nclone_env.render.pictures import picture_arrays
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
        reward_function: replaces the reward; None: that of the configuration.
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
        reward_function: RewardFunction | None = None,
        like: Batch | None = None,
    ):
        self.config = config
        self.num_envs = num_envs
        self.autoreset = autoreset
        self.level_set: LevelSet = like.level_set if like else playable_levels(config)
        self.specs = observation_specs(config, self.level_set)
        self.worlds = make_worlds(num_envs, self.level_set, config.max_frames)
        self._spare_worlds: WorldArrays | None = None
        self.episodes = np.zeros(num_envs, dtype=EPISODE)
        self.episodes["next_level"] = self.episodes["own_level"] = -1
        self.results = np.zeros(num_envs, dtype=RESULT)
        self.actions = np.zeros(num_envs, dtype=np.int64)
        arrays = self.level_set.arrays
        self.pictures: PictureArrays = like.pictures if like else picture_arrays(config, arrays, self.level_set)
        self.thresholds = level_thresholds(np.ones(len(self.level_set.levels)))
        self._events = np.zeros(num_envs if reward_function else 0, dtype=EVENT)
        self._settings = make_settings(config, autoreset)
        self._reset_mask = np.zeros(num_envs, dtype=np.bool_)
        self.workers = Workers(num_envs, num_threads)
        moment, depth = frame_specs(config, self.level_set), config.observation.frame_stack
        self._stack = FrameStack(moment, num_envs, depth, autoreset == SAME_STEP) if depth > 1 else None
        self._scratch = make_scratch(moment, self.workers.seats)
        self._masks: ActionMasks | None = None
        if "action_mask" in config.observations:
            self._masks = ActionMasks(self.level_set, self._settings, self.episodes, self.workers.seats, self.worlds)
        self._reach: Reachability | None = None
        if "reachability" in config.observations:
            cache = shared_cache(self.level_set, config.observation.reachability_slots)
            dtype, with_final = np.dtype(config.observation.dtype), autoreset == SAME_STEP
            self._reach = Reachability(self.level_set, cache, num_envs, self.workers.seats, dtype, with_final)
        self._lattice = self.graphs.lattice if "graph" in config.observations else NO_LATTICE
        self._step = specialised(step_range, *self._step_arguments({}, {}, 0), 0, 0, 0)
        self._reset = specialised(reset_range, *self._reset_arguments({}, 0), 0, 0, 0)
        self._reward: RewardPass | None = None
        if reward_function:
            self._reward = RewardPass(reward_function, self._events, self.episodes, self.results, autoreset)

    def seed(self, seeds: np.ndarray, mask: np.ndarray) -> None:
        """Restart the random choices of the environments in ``mask`` from ``seeds``, (n,) uint64."""
        self.episodes["seed"][mask] = seeds[mask]
        self.episodes["number"][mask] = 0

    def choose_level(self, level: Any, mask: np.ndarray) -> None:
        """Play a level of the set, by name or index, in the next episode of the environments in ``mask``.

        Raises:
            UnknownLevelError: if it is not in the set; the message lists the names.
        """
        self.episodes["next_level"][mask] = find_level(level, self.level_set.names, "options['level']")

    def set_weights(self, weights: np.ndarray) -> None:
        """Draw levels by these weights, (L,), from the next episodes on."""
        self.thresholds[:] = level_thresholds(weights)

    def reset_task(self, mask: np.ndarray, out: Buffers, base: int) -> Task:
        """Return what begins new episodes where ``mask``, (n,) bool, is set, and observes all.

        Call :meth:`finish` when it is done.

        Args:
            mask: for all environments of the batch.
            out: observations are written here.
            base: environment whose row is the first of ``out``.
        """
        self._reset_mask[:] = mask
        return self._observing_task(out, base)

    def step_task(self, out: Buffers, final: Buffers, base: int) -> Task:
        """Return what advances environments by one step with ``actions`` and writes their ``results``.

        Call :meth:`finish` when it is done.

        Args:
            out: observations are written here, and in same-step mode into ``final`` those of episodes that ended.
            final: as ``out``; empty in the other modes.
            base: environment whose row is the first of both.
        """
        moment, last_moment = (self._stack.advance(), self._stack.final) if self._stack else (out, final)
        step = partial(self._step, *self._step_arguments(moment, last_moment, base))
        return self._reached(self._masked(self._rewarded(step), moment, base), moment, last_moment, base)

    def finish(self, out: Buffers, final: Buffers) -> None:
        """Complete the observations of a step or reset: those that kernels do not write."""
        if self._stack:
            if final:
                self._stack.read_final(final, self.results["terminated"] | self.results["truncated"])
            self._stack.fill(self.episodes["steps"] == 0)
            self._stack.read(out)
        if "action_mask" in final:
            final["action_mask"][:] = MASK_AT_END

    def observe(self, index: int, out: Buffers) -> None:
        """Write the observations of one environment into the first row of ``out``."""
        self._reset_mask[:] = False
        self._observing_task(out, 0 if self._stack else index)(OWN_SEAT, index, index + 1)
        if self._stack:
            self._stack.fill(self.episodes["steps"] == 0)
            self._stack.read(out, slice(index, index + 1), slice(0, 1))

    def _observing_task(self, out: Buffers, base: int) -> Task:
        moment = self._stack.newest if self._stack else out
        reset = self._masked(partial(self._reset, *self._reset_arguments(moment, base)), moment, base)
        return self._reached(reset, moment, {}, base)

    def _rewarded(self, step: Task) -> Task:
        """Return a task that also replaces the rewards if there is a function for that."""
        reward = self._reward
        if reward is None:
            return step

        def both(seat: int, first: int, last: int) -> None:
            step(seat, first, last)
            reward(first, last)

        return both

    def _masked(self, task: Task, out: Buffers, base: int) -> Task:
        """Return a task that also writes the action masks if they are asked for."""
        masks = self._masks
        if masks is None:
            return task

        def both(seat: int, first: int, last: int) -> None:
            task(seat, first, last)
            masks.write(self.worlds, out["action_mask"], base, seat, first, last)

        return both

    def _reached(self, task: Task, out: Buffers, final: Buffers, base: int) -> Task:
        """Return a task that also writes what can be reached if that is asked for."""
        reach = self._reach
        if reach is None:
            return task

        def both(seat: int, first: int, last: int) -> None:
            task(seat, first, last)
            reach.answer(out, final, base, seat, first, last)

        return both

    @cached_property
    def graphs(self) -> Graphs:
        """The graphs of the levels, made on first use."""
        return level_graphs(self.level_set)

    @property
    def reachability_counts(self) -> CacheCounts | None:
        """How the cache of fields is used; None if nobody asks what can be reached."""
        return self._reach.cache.counts() if self._reach else None

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
        if self._stack:
            self._stack.restart(index)

    def read_start(self, state: bytes) -> Rows:
        """Return the rows of a snapshot in which an episode can begin.

        Raises:
            SnapshotError: if it is none or does not fit, or its episode is over.
        """
        rows = self._read(state)
        if rows["episodes"]["over"][0]:
            _refuse_ended("an episode that goes on")
        return rows

    def begin_at(self, rows: Rows, index: int) -> None:
        """Begin a new episode of an environment in the world of a snapshot; observe nothing."""
        place_rows({name: rows[name] for name in WorldArrays._fields}, self._rows(), index)
        ninja, episode, result = rows["ninjas"][0], self.episodes[index], self.results[index]
        episode["number"] += 1
        episode["steps"], episode["episode_return"] = 0, 0.0
        episode["potential"] = rows["episodes"]["potential"][0]
        episode["next_level"], episode["over"] = -1, 0
        self.results[index] = np.zeros((), RESULT)
        result["level"], result["gold"], result["episode_frames"] = ninja["level"], ninja["gold"], ninja["frame"]

    def copy(self, source: int, target: int) -> None:
        """Make one environment a copy of another, in everything."""
        for array in self._rows().values():
            array[target : target + 1] = array[source : source + 1]
        if self._stack:
            self._stack.copy_rows(self._stack, source, target)

    def copy_stack(self, other: Batch) -> None:
        """Take over the stacked observations of a batch of the same configuration."""
        if self._stack and other._stack:
            self._stack.copy_rows(other._stack, slice(None))

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
        if self._stack:
            self._stack.copy_rows(self._stack, indices)

    def _read(self, state: bytes) -> Rows:
        return read_snapshot(state, self._digest, self._rows(), self.level_set)

    def _rows(self) -> Rows:
        """Return the arrays with a row an environment that its future and its last result consist of."""
        return {**self.worlds._asdict(), "episodes": self.episodes, "results": self.results}

    @cached_property
    def _digest(self) -> bytes:
        return level_set_digest(self.level_set, self._rows())

    def _step_arguments(self, out: Buffers, final: Buffers, base: int) -> tuple[Any, ...]:
        levels, worlds, own = self.level_set, self.worlds, (self.episodes, self.actions, self.results, self._events)
        common = (levels.arrays, levels.fields, worlds, self.pictures, self._settings, self.thresholds)
        return (*common, *own, self._view(out), self._view(final, True), base)

    def _reset_arguments(self, out: Buffers, base: int) -> tuple[Any, ...]:
        levels, worlds, own = self.level_set, self.worlds, (self.episodes, self._reset_mask, self.results)
        common = (levels.arrays, levels.fields, worlds, self.pictures, self._settings, self.thresholds)
        return (*common, *own, self._view(out), base)

    def _view(self, buffers: Buffers, is_final: bool = False) -> ObservationArrays:
        queries = NO_QUERIES
        if self._reach is not None:
            queries = self._reach.final_queries if is_final else self._reach.queries
        return kernel_view(buffers, self._scratch, queries, self._lattice)

    def close(self) -> None:
        """End the threads."""
        self.workers.close()

    def memory(self) -> MemoryNode:
        """Return the bytes of everything the batch owns."""
        own = {"episodes": self.episodes, "results": self.results, "actions": self.actions, "events": self._events}
        if self._spare_worlds is not None:
            own.update({f"spare {name}": array for name, array in self._spare_worlds._asdict().items()})
        leaves = tuple(MemoryNode(name, int(array.nbytes)) for name, array in own.items())
        graphs = self.graphs if "graphs" in self.__dict__ else None
        owners = (self._scratch, self._masks, self._reach, graphs, self._stack)
        optional = tuple(owner.memory() for owner in owners if owner is not None)
        parts = (self.level_set.memory(), self.pictures.memory(), self.worlds.memory(), *leaves, *optional)
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
