"""A batch of environments: their memory, and the calls that advance it."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from nclone_env.config import EnvironmentConfig
from nclone_env.env.arrays.buffers import Buffers, check_apart, check_buffers
from nclone_env.env.arrays.final import FinalRows, FrameStack
from nclone_env.env.compiled.masks import MASK_AT_END, ActionMasks
from nclone_env.env.compiled.passes import (
    NO_RESET,
    Call,
    ObservationFunction,
    OwnPass,
    Pass,
    ResetPass,
    RewardFunction,
    RewardPass,
    StepPass,
)
from nclone_env.env.compiled.records import RESULT, SAME_STEP
from nclone_env.env.compiled.rooms import fit_alike, fit_copies, make_room, unsettle_all, with_room
from nclone_env.env.compiled.starts import PackedStarts, pack_starts, set_shares
from nclone_env.env.compiled.step import REFUSED, KernelSteps, step_range
from nclone_env.env.compiled.step_arrays import (
    FinalArrays,
    exchange,
    level_thresholds,
    make_step_arrays,
    no_final,
    playable_levels,
)
from nclone_env.env.snapshot import Snapshot, level_set_digest, read_snapshot, write_snapshot
from nclone_env.env.threads import CALLING_THREAD, Workers
from nclone_env.errors import ActionError, ConfigError, SnapshotError, shortened
from nclone_env.jit import address_of, specialised
from nclone_env.level import Graphs, LevelSet, content_digest, level_graphs
from nclone_env.machine import check_fits
from nclone_env.memory import MemoryNode, array_node
from nclone_env.obs import (
    NO_LATTICE,
    NO_QUERIES,
    ActionOutcomes,
    ObservationSpec,
    Reachability,
    frame_specs,
    kernel_view,
    no_observations,
    observation_specs,
)
from nclone_env.render import PictureArrays
from nclone_env.sim import (
    MOST_ENTRIES,
    SETTLED,
    World,
    WorldArrays,
    copy_world,
    expected_bytes,
    fit_world,
    gather_worlds,
    lacks_space,
    make_growing_worlds,
    place_world,
    renumber_entries,
    with_space,
    world_at,
)


class Batch:
    """Worlds, episodes and results of ``num_envs`` environments over one set of levels.

    A single environment is a batch of one. Everything is allocated in the constructor; a step allocates no arrays. The
    next step plays ``actions``, (n,) int64, which ``env.spaces.check_actions`` writes. Levels and pictures are those of
    ``like``, a batch of the same configuration, or loaded.
    """

    def __init__(
        self,
        config: EnvironmentConfig,
        num_envs: int,
        autoreset: int,
        num_threads: int | None = None,
        reward_function: RewardFunction | None = None,
        like: Batch | None = None,
        observation_function: ObservationFunction | None = None,
    ):
        self.config = config
        self.num_envs = num_envs
        self.autoreset = autoreset
        self.level_set: LevelSet = like.level_set if like else playable_levels(config)
        self._num_drawn = len(self.level_set.levels)
        self._function = observation_function
        depth, same_step = config.observation.frame_stack, autoreset == SAME_STEP
        self.specs = (*observation_specs(config, self.level_set), *self._own_specs(depth))
        if num_envs > 1:
            own = sum(math.prod(spec.shape) * spec.dtype.itemsize for spec in self.specs)  # of one observation
            check_fits("num_envs", num_envs, expected_bytes(self.level_set) + own)
        self.workers = Workers(num_envs, num_threads)
        arrays = make_step_arrays(
            config,
            self.level_set,
            num_envs,
            autoreset,
            self.workers.count,
            pictures=like.pictures if like else None,
            with_events=reward_function is not None,
        )
        self._arrays = arrays
        self._spare: WorldArrays | None = None  # for gather
        self._asked: KernelSteps | None = None  # by kernel_steps
        self.episodes, self.actions, self.results = arrays.episodes, arrays.actions, arrays.results
        stacked = (*frame_specs(config, self.level_set), *self._own_specs(1))
        self._stack = FrameStack(stacked, num_envs, depth, same_step) if depth > 1 else None
        self._rewards = RewardPass(reward_function, arrays) if reward_function is not None else None
        self._make_observers()
        self._make_passes()

    def _own_specs(self, depth: int) -> tuple[ObservationSpec, ...]:
        """Return the row of the observation of the user's function, if there is one."""
        if self._function is None:
            return ()
        if not isinstance(self._function, ObservationFunction):
            raise ConfigError(f"observation_function: expected an ObservationFunction, got {shortened(self._function)}")
        if not self.config.dict_observations:
            raise ConfigError("observation_function: expected dict_observations=True beside it, as it adds an array")
        return (self._function.spec(depth),)

    def _make_observers(self) -> None:
        config, slots, same_step = self.config, self.workers.count, self.autoreset == SAME_STEP
        lattice = self.graphs.lattice if "graph" in config.observations else NO_LATTICE
        self._unobserved = no_observations(frame_specs(config, self.level_set), lattice)
        self._masks: ActionMasks | None = None
        if "action_mask" in config.observations:
            self._masks = ActionMasks(self.level_set, self._arrays, slots)
        self._outcomes: ActionOutcomes | None = None
        if "action_outcomes" in config.observations:
            self._outcomes = ActionOutcomes(config, self.level_set, self._arrays, slots, same_step)
        self._reach: Reachability | None = None
        if "reachability" in config.observations:
            self._reach = Reachability(config, self.level_set, self.num_envs, same_step)
        self._own: OwnPass | None = None
        if self._function is not None:
            count = self.num_envs if same_step and self._outcomes is None else 0
            ended = make_growing_worlds(count, self.level_set, config.max_frames, config.frame_skip)
            self._own = OwnPass(self._function, self._arrays, ended)
        self._no_final = no_final(self._unobserved)
        self._final_views: dict[FinalRows, FinalArrays] | None = None

    def _make_passes(self) -> None:
        """List the passes of a step and of a reset, in order, compiled for this configuration."""
        arrays, view = self._arrays, self._unobserved
        self._settle = specialised(make_room, arrays)
        observers = self._masks, self._outcomes, self._reach, self._own
        reset, step = ResetPass(arrays, NO_RESET, view), StepPass(arrays, view, self._no_final)
        self._reset_passes: tuple[Pass, ...] = tuple(filter(None, (reset, *observers)))
        self._step_passes: tuple[Pass, ...] = tuple(filter(None, (step, self._rewards, *observers)))
        self._enters_often = self.config.max_frames * self.level_set.max_movers > MOST_ENTRIES

    @property
    def worlds(self) -> WorldArrays:
        """The worlds of the environments."""
        return self._arrays.worlds

    @property
    def _ended_worlds(self) -> WorldArrays:
        """Those that steps copy worlds to when their episodes end."""
        keeper = self._outcomes or self._own
        return keeper.ended if keeper else self._no_final.worlds

    @property
    def taken_actions(self) -> np.ndarray:
        """Numbers of the actions that the last step took, (n,) int64; undefined where an episode was over."""
        if self.config.action_repeat_probability > 0.0:
            return self.episodes["action"].astype(np.int64)
        return self.actions.copy()

    @property
    def pictures(self) -> PictureArrays:
        """The source arrays of the pictures of the levels."""
        return self._arrays.pictures

    @property
    def drawn_names(self) -> tuple[str, ...]:
        """Names of the levels that episodes begin on: without those that an exchange kept for episodes under way."""
        return self.level_set.names[: self._num_drawn]

    def exchange_levels(self, levels: Any) -> None:
        """Play other levels in future episodes; see ``NPlusPlusVectorEnv.exchange_levels``."""
        if "graph" in self.config.observations:
            raise ConfigError("exchange_levels: the space of 'graph' depends on the levels; leave this observation out")
        config = self.config.replace(levels=levels)
        other = copy.copy(self)  # replaces this one when it is complete: a fault or Ctrl-C before changes nothing
        other.config, other._spare = config, None
        other.level_set, other._arrays, other._num_drawn = exchange(config, self.level_set, self._arrays)
        other.episodes, other.results = other._arrays.episodes, other._arrays.results
        for cached in ("_digest", "graphs"):
            other.__dict__.pop(cached, None)
        other._make_observers()
        other._make_passes()
        self.__dict__ = other.__dict__

    def seed(self, seeds: np.ndarray, mask: np.ndarray) -> None:
        """Seed the random levels of the environments in ``mask`` with ``seeds``, (n,) uint64."""
        self.episodes["seed"][mask] = seeds[mask]
        self.episodes["number"][mask] = 0
        unsettle_all(self.worlds, mask)

    def set_weights(self, weights: np.ndarray) -> None:
        """Draw levels by these weights, one for each of ``drawn_names``, from the next episodes on."""
        kept = len(self.level_set.levels) - self._num_drawn
        self._replace_arrays(thresholds=level_thresholds(np.pad(weights, (0, kept))))

    def set_starts(self, states: Iterable[bytes] | PackedStarts, share: Any) -> None:
        """Begin future episodes in start states or snapshots, with the probabilities of :meth:`set_start_shares`."""
        if isinstance(states, PackedStarts):
            self._check_starts(states)
        elif isinstance(states, Iterable) and getattr(states, "shape", None) != ():
            states = pack_starts(self.level_set, (self._start_of(*item) for item in enumerate(states)))
        else:
            raise ConfigError(f"states: expected snapshots, got {shortened(states)}")
        arrays = states.arrays
        starts = arrays._replace(starts=arrays.starts.copy())  # shares are those of these environments
        set_shares(starts, share)
        self._replace_arrays(starts=starts)

    def set_start_shares(self, share: Any) -> None:
        """Set the probabilities of the start states: one per state, or one per level, divided among its states."""
        set_shares(self._arrays.starts, share)
        unsettle_all(self.worlds)

    def assign_levels(self, levels: np.ndarray) -> None:
        """Begin all future episodes of each environment on its level, (n,), -1: on a random one."""
        self.episodes["own_level"] = levels
        unsettle_all(self.worlds)

    def request_levels(self, levels: np.ndarray, mask: np.ndarray) -> None:
        """Begin the next episodes of the environments in ``mask`` on a level each, (n,), -1: on any."""
        self.episodes["next_level"][mask] = levels[mask]

    def _replace_arrays(self, changed: slice | int = slice(None), **arrays: Any) -> None:
        """Replace arrays that say where episodes of the ``changed`` environments begin, or the worlds."""
        self._arrays = self._arrays._replace(**arrays)
        unsettle_all(self.worlds, changed)

    def _make_room(self) -> None:
        """Give the worlds room for all that the next step or reset can bring."""
        if self.worlds.rooms["settled"][-1] == SETTLED:
            return
        while not self._settle(self._arrays):
            self._arrays = self._arrays._replace(worlds=with_space(self.worlds))
        keeper = self._outcomes or self._own
        if keeper is not None and len(keeper.ended.ninjas):
            keeper.ended = with_room(keeper.ended, lambda worlds: fit_alike(worlds, self.worlds))
            self._final_views = None

    def _check_starts(self, states: PackedStarts) -> None:
        """Reject start states that would not fit: those of other levels, and those without a frame left."""
        if states.digest != content_digest(self.level_set.levels):
            raise SnapshotError("states", "levels", "those of this environment, in this order", "others")
        latest, limit = int(states.arrays.ninjas["frame"].max(initial=0)), self.config.max_frames
        longest = int(states.arrays.starts["trail_count"].max(initial=0))
        if latest >= limit or longest > self.worlds.rooms["trail"]["used"][-1]:
            raise SnapshotError("states", "ninjas.frame", f"less than max_frames, {limit}", str(latest))

    def _start_of(self, number: int, state: bytes) -> World:
        try:
            return self.read_start(state).world
        except SnapshotError as error:
            raise SnapshotError(f"states[{number}]", error.where, error.expected, error.got) from error

    def reset_call(self, mask: np.ndarray, out: Buffers) -> Call:
        """Return the call that begins new episodes where ``mask``, (n,) bool, is set, and observes all environments.

        Run it over the environments, then call :meth:`finish`.
        """
        unsettle_all(self.worlds, mask)
        self._make_room()
        return self._call(self._reset_passes, self._stack.newest if self._stack else out, None, mask)

    def step_call(self, out: Buffers, final: FinalRows | None) -> Call:
        """Return the call that steps environments with ``actions`` and writes their ``results``.

        Run it over the environments, then call :meth:`finish`. It writes ``out`` and, in same-step mode, the last
        observations of episodes that end, ``final``.
        """
        self._make_room()
        if self._stack:
            return self._call(self._step_passes, self._stack.advance(), self._stack.final)
        return self._call(self._step_passes, out, final)

    def kernel_steps(self, out: Buffers, final: Buffers) -> KernelSteps | None:
        """Return what a kernel needs to step the environments; see ``NPlusPlusVectorEnv.kernel_steps``."""
        if len(self._step_passes) > 1 or self._stack or self._enters_often:
            return None
        if self._asked is not None and self._asked.final.used[0] == REFUSED:
            self._asked = None
            raise ActionError(
                "step_all: expected actions from 0 to 5, and num_envs rows of out from row on, got others"
            )
        self._make_room()
        arrays = out.values() if isinstance(out, Mapping) else ()
        rows = max((len(array) for array in arrays if isinstance(array, np.ndarray) and array.ndim), default=0)
        check_buffers(out, self.specs, (), max(rows, self.num_envs))
        check_buffers(final, self.specs, (), self.num_envs, given="final")
        check_apart(out, final)
        observations, last = (kernel_view(buffers, self._unobserved) for buffers in (out, final))
        places = np.zeros(1, np.int64), np.zeros(self.num_envs, np.int32)
        finals = FinalArrays(last, *places, self._ended_worlds)
        self._asked = KernelSteps(self._step_address, self._arrays, observations, finals, rows)
        return self._asked

    @cached_property
    def _step_address(self) -> Any:
        """The address of the compiled step; found on first use, as few environments need it."""
        return address_of(step_range, self._arrays, self._unobserved, self._no_final, 0, 0, 0, 0)

    def finish(self, out: Buffers) -> None:
        """Complete the observations of a step or reset after all passes, and after :meth:`finish_final`."""
        if self._enters_often:
            renumber_entries(self.worlds, self.level_set)
        if self._stack:
            self._stack.fill(self.episodes["steps"] == 0)
            self._stack.read(out)

    def finish_final(self, final: FinalRows, ended: np.ndarray) -> None:
        """Complete ``final`` of :meth:`step_call` after all passes; ``ended``, (n,) bool, tells whose episode ended."""
        if self._stack:
            self._stack.read_final(final, ended)
        else:
            final.sort(ended)
        if "action_mask" in final.arrays:
            final.view("action_mask")[:] = MASK_AT_END

    def observe(self, index: int, out: Buffers) -> None:
        """Write the observations of one environment into the first row of ``out``."""
        call = self.reset_call(np.zeros(self.num_envs, dtype=np.bool_), out)
        call.base = 0 if self._stack else index
        call(CALLING_THREAD, index, index + 1)
        if self._stack:
            self._stack.fill(self.episodes["steps"] == 0)
            self._stack.read(out, slice(index, index + 1), slice(0, 1))

    def _call(
        self, passes: tuple[Pass, ...], out: Buffers, final: FinalRows | None, reset: np.ndarray = NO_RESET
    ) -> Call:
        reach, final_view = self._reach, self._no_final
        out_view = kernel_view(out, self._unobserved, reach.queries if reach else NO_QUERIES)
        if final is not None:
            if self._final_views is None:
                self._final_views = {}
            if final not in self._final_views:  # once: what a step allocates stays below a kilobyte
                queries = reach.final_queries if reach else NO_QUERIES
                observations = kernel_view(final.kernel_arrays, self._unobserved, queries)
                self._final_views[final] = FinalArrays(observations, final.used, final.places, self._ended_worlds)
            final_view = self._final_views[final]
        return Call(passes, self._arrays, out, final, out_view, final_view, reset)

    @cached_property
    def graphs(self) -> Graphs:
        """The graphs of the levels; made on first use."""
        return level_graphs(self.level_set)

    def get_state(self, index: int) -> bytes:
        """Return the snapshot of an environment."""
        return write_snapshot(self._digest, world_at(self.worlds, index), self.episodes[index], self.results[index])

    def set_state(self, index: int, state: bytes) -> None:
        """Restore an environment from a snapshot."""
        snapshot = self._read(state)
        if self.autoreset == SAME_STEP and snapshot.episode["over"][0]:
            _reject_ended("an episode in progress, as episodes end and begin in the same step here")
        self._place(snapshot.world, index)
        self.episodes[index : index + 1], self.results[index : index + 1] = snapshot.episode, snapshot.result
        if self._stack:
            self._stack.restart(index)

    def read_start(self, state: bytes) -> Snapshot:
        """Return the contents of a snapshot as the start of an episode."""
        snapshot = self._read(state)
        if snapshot.episode["over"][0]:
            _reject_ended("an episode in progress")
        frame, limit = int(snapshot.world.ninja["frame"]), self.config.max_frames
        if frame >= limit:
            got = f"{frame}; take the snapshot earlier, or raise max_frames"
            raise SnapshotError("state", "ninjas.frame", f"less than max_frames, {limit}", got)
        return snapshot

    def begin_at(self, snapshot: Snapshot, index: int) -> None:
        """Begin a new episode of an environment in the world of a snapshot, without observing it."""
        self._place(snapshot.world, index)
        ninja, episode, result = snapshot.world.ninja, self.episodes[index], self.results[index]
        self.episodes["number"][index : index + 1] += 1  # of an array: it wraps without a warning, as in kernels
        episode["steps"], episode["episode_return"] = 0, 0.0
        episode["potential"] = snapshot.episode["potential"][0]
        episode["next_level"], episode["over"] = -1, 0
        self.results[index] = np.zeros((), RESULT)
        result["level"], result["gold"], result["episode_frames"] = ninja["level"], ninja["gold"], ninja["frame"]
        episode["start"] = result["start"] = -1

    def copy(self, source: int, target: int) -> None:
        """Copy the whole state of one environment to another."""
        sources = np.full(self.num_envs, -1)
        sources[target] = source
        self._replace_arrays(target, worlds=with_room(self.worlds, lambda worlds: fit_copies(worlds, worlds, sources)))
        copy_world(self.worlds, source, self.worlds, target)
        for array in (self.episodes, self.results):
            array[target : target + 1] = array[source : source + 1]
        if self._stack:
            self._stack.copy_rows(self._stack, source, target)

    def copy_stack(self, other: Batch) -> None:
        """Copy the stacked observations of a batch of the same configuration."""
        if self._stack and other._stack:
            self._stack.copy_rows(other._stack, slice(None))

    def gather(self, indices: np.ndarray) -> None:
        """Copy the whole state of environment ``indices[i]`` to environment i, for all i; indices are (n,) int64.

        The first call allocates a second set of worlds, which is kept.
        """
        worlds = self._spare
        if worlds is None:
            config = self.config
            worlds = make_growing_worlds(self.num_envs, self.level_set, config.max_frames, config.frame_skip)
        worlds = with_room(worlds, lambda worlds: fit_copies(worlds, self.worlds, indices))
        gather_worlds(self.worlds, indices, worlds)
        self._spare = self.worlds
        self._replace_arrays(worlds=worlds)
        self.episodes[:] = self.episodes[indices]
        self.results[:] = self.results[indices]
        if self._stack:
            self._stack.copy_rows(self._stack, indices)

    def _read(self, state: bytes) -> Snapshot:
        return read_snapshot(state, self._digest, self.level_set, int(self.worlds.rooms["trail"]["used"][-1]))

    def _place(self, world: World, index: int) -> None:
        """Write a world to an environment."""
        sizes = [len(part) for part in world[1:]]

        def fit(worlds: WorldArrays) -> bool:
            fit_world(worlds, index, *sizes)
            return not lacks_space(worlds)

        self._replace_arrays(index, worlds=with_room(self.worlds, fit))
        place_world(self.level_set.arrays, self.worlds, index, world)

    @cached_property
    def _digest(self) -> bytes:
        return level_set_digest(self.level_set)

    def close(self) -> None:
        """End the threads."""
        self.workers.close()

    def memory(self) -> MemoryNode:
        """Return the bytes of everything that the batch owns."""
        names = ("episodes", "results", "actions", "events")
        own: dict[str, np.ndarray] = {name: getattr(self._arrays, name) for name in names}
        if self._spare is not None:
            own.update({f"spare {name}": array for name, array in self._spare._asdict().items()})
        leaves = tuple(array_node(name, array, shared=False) for name, array in own.items())
        graphs = self.graphs if "graphs" in self.__dict__ else None
        owners = (self._arrays.canvas, self._masks, self._outcomes, self._reach, self._own, graphs, self._stack)
        optional = tuple(owner.memory() for owner in owners if owner is not None)
        of_levels = (self.level_set, self._arrays.paths, self.pictures, self._arrays.starts)
        shared = tuple(part.memory() for part in of_levels)
        parts = (*shared, self.worlds.memory(), *leaves, *optional)
        return MemoryNode("environments", children=tuple(part for part in parts if part.total_bytes))


def _reject_ended(expected: str) -> None:
    raise SnapshotError("state", "episodes.over", expected, "one that is over; take the snapshot before its end")
