"""The vector environment: many environments in one process, advanced by one compiled call per chunk."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from nclone_env.config import EnvironmentConfig, config_from
from nclone_env.env.arguments import (
    check_assignment,
    check_indices,
    check_mask,
    check_options,
    check_seeds,
    check_weights,
    find_level,
    per_environment,
    seed_of,
)
from nclone_env.env.arrays.buffers import Buffers, alone, make_buffers
from nclone_env.env.arrays.outputs import COLUMNS, OutputMemory, Outputs, gathered_info, single_result
from nclone_env.env.base import AFTER_RESET, BROKEN, NOT_CLOSED, RUNNING, BaseEnvironment, Lifecycle, Phase
from nclone_env.env.batch import Batch
from nclone_env.env.compiled import records
from nclone_env.env.compiled.passes import ObservationFunction, RewardFunction
from nclone_env.env.compiled.starts import PackedStarts
from nclone_env.env.compiled.step import KernelSteps
from nclone_env.env.spaces import action_space, check_actions, observation_space
from nclone_env.errors import ConfigError, check_integer, check_value, checked, scalar, shortened
from nclone_env.machine import check_fits
from nclone_env.memory import MemoryNode
from nclone_env.options import is_several, several

_MAX_ENVS, _MAX_THREADS = 1 << 24, 1024
Step = tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]
AUTORESET_CODES = {
    AutoresetMode.NEXT_STEP: records.NEXT_STEP,
    AutoresetMode.SAME_STEP: records.SAME_STEP,
    AutoresetMode.DISABLED: records.DISABLED,
}


class NPlusPlusVectorEnv(BaseEnvironment, gymnasium.vector.VectorEnv[Any, np.ndarray, np.ndarray]):
    """``num_envs`` environments in one process, stepped by compiled code on several threads.

    Observations are a dict of arrays (num_envs, ...), or one array with ``dict_observations=False``. Everything
    returned is safe to keep: a buffer is reused only once all references to it are gone. With ``out`` observations are
    written into arrays of the caller instead (docs/environments/memory.md).

    ``info`` has the columns ``level`` (index in ``level_names``), ``start`` (number of the start state, -1: none),
    ``frames``, ``outcome`` (code, see ``env.compiled.records.OUTCOMES``), ``gold``, ``episode_frames``,
    ``episode_steps`` and ``episode_return`` as arrays (num_envs,) about the step just made, each with its ``_name``
    mask. In same-step mode ``final_obs`` holds the last observations of the k episodes that ended as arrays (k, ...),
    in the order of ``np.flatnonzero(info["_final_obs"])``, and ``final_info`` their columns as arrays (num_envs,) whose
    other rows are undefined.

    The rows of one environment around the end of an episode, with actions ``a`` and observations ``obs``::

        next-step   obs[t] --a[t]--> last obs, reward, done --a ignored--> first obs, reward 0, frames 0 --a-->
        same-step   obs[t] --a[t]--> first obs, reward, done, last obs in final_obs --a-->
        disabled    obs[t] --a[t]--> last obs, reward, done --a ignored--> last obs, reward 0, done --reset--> first obs

    Args:
        config: configuration; the defaults of :class:`EnvironmentConfig` if None.
        num_envs: number of environments.
        autoreset_mode: when the next episode begins (Gymnasium's ``AutoresetMode`` or its value).
        num_threads: number of threads; by default one per core, fewer for small batches.
        gymnasium_infos: return ``info`` as Gymnasium's ``SyncVectorEnv`` does: ``level`` and ``outcome`` as names,
            ``final_obs`` as an array of objects, all arrays new (``env.arrays.outputs``). Costs time in every step.
        reward_function: takes an ``EVENT`` record (``env.compiled.records``) and returns the reward of the step, which
            replaces the configured one. Numba compiles it unless it is compiled already.
        observation_function: a further observation by a function of the world.
        max_episode_steps: steps after which an episode is truncated, as ``gymnasium.make_vec`` passes them: lowers
            ``max_frames`` to so many steps of ``frame_skip`` frames.
        **fields: fields of :class:`EnvironmentConfig`, which replace those of ``config``.

    Raises:
        ConfigError, UnknownLevelError, LevelFormatError, UnsupportedLevelError: as the single environment.
        MemoryLimitError: if so many environments need more memory than is available; it names the number that fits.
    """

    def __init__(
        self,
        config: EnvironmentConfig | None = None,
        num_envs: int = 1,
        *,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        num_threads: int | None = None,
        gymnasium_infos: bool = False,
        reward_function: RewardFunction | None = None,
        observation_function: ObservationFunction | None = None,
        max_episode_steps: int | None = None,
        **fields: Any,
    ):
        self.closed = True  # for now: Gymnasium's __del__ closes environments that are not, even half-built ones
        self.config = config_from(config, fields)
        if max_episode_steps is not None:
            steps = check_integer("max_episode_steps", max_episode_steps, low=1)
            frames = min(self.config.max_frames, steps * self.config.frame_skip)
            self.config = self.config.replace(max_frames=frames)
        self.num_envs = num_envs = check_integer("num_envs", num_envs, low=1, high=_MAX_ENVS)
        if num_threads is not None:
            num_threads = check_integer("num_threads", num_threads, low=1, high=_MAX_THREADS)
        check_value("gymnasium_infos", bool, gymnasium_infos)
        self.gymnasium_infos = bool(gymnasium_infos)
        mode = autoreset_mode_of(autoreset_mode)
        codes = AUTORESET_CODES[mode]
        self._batch = Batch(
            self.config, num_envs, codes, num_threads, reward_function, observation_function=observation_function
        )
        self._only = only = self.config.only_observation
        self._outputs = OutputMemory(self._batch.specs, num_envs, mode is AutoresetMode.SAME_STEP, only)
        self._all_mask = np.ones(num_envs, dtype=np.bool_)
        self._all_mask.flags.writeable = False
        self._lifecycle = Lifecycle()
        self.autoreset_mode = mode
        self.metadata = {
            "render_modes": ["rgb_array", "human"],
            "render_fps": self.config.frames_per_second,
            "autoreset_mode": mode,
        }
        self.render_mode = self.config.render_mode
        self.single_observation_space = observation_space(self._batch.specs, only)
        self.single_action_space = action_space(self.config.action_space)
        self.observation_space = observation_space(self._batch.specs, only, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.closed = False

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
        out: Mapping[str, np.ndarray] | None = None,
    ) -> tuple[Any, dict[str, Any]]:
        """Begin new episodes.

        Args:
            seed: environment i gets ``seed + i``, or the i-th of a list; None continues the random sequence. Seeds
                that differ by a multiple of 2**64 are the same.
            options: ``{"level": name or index}`` plays that level; ``{"state": snapshot}`` begins in the world of the
                snapshot; either may be several, one item per environment; ``{"reset_mask": (n,) bool}`` resets
                only those.
            out: arrays to write, by name: all observations, and any of rewards (float64 or float32), terminations,
                truncations and the columns of ``info``.

        Returns:
            Observations and info.

        Raises:
            ConfigError: if an option is unknown, the mask has the wrong shape or dtype, or a seed is not a whole
                number of at least 0.
            UnknownLevelError: if no episodes begin on the level.
            SnapshotError: if the snapshot is malformed, of other levels, over, or has no frame left.
            BufferError: if ``out`` does not fit; nothing is changed in any of these cases.
            StepOrderError: while another thread is in a call.
            ClosedError: after ``close``.
        """
        self._lifecycle.check("reset", NOT_CLOSED)
        seed = several(seed) if is_several(seed) else scalar(seed)
        chosen = check_options(options, ("level", "state", "reset_mask"))
        states = per_environment("options['state']", chosen["state"], self.num_envs) if "state" in chosen else {}
        starts = {index: self._batch.read_start(state) for index, state in states.items()}
        whole = self._lifecycle.phase in (Phase.NEW, Phase.BROKEN)
        mask = self._all_mask if whole else check_mask(chosen.get("reset_mask"), self.num_envs)
        levels = self._requested_levels(chosen.get("level"))
        seeds, seeded = self._seeds(seed)
        outputs = self._outputs.take(out)
        if "level" in chosen:
            self._batch.workers.begin_slowly()
        with self._lifecycle:
            if seed is not None:
                self._np_random, self._np_random_seed = None, seed_of(seed)
            self._batch.request_levels(levels, mask)
            self._batch.seed(seeds, seeded & mask)
            for index, start in starts.items():
                if mask[index]:
                    self._batch.begin_at(start, index)
            from_start = mask.copy()
            from_start[list(starts)] = False
            self._begin(from_start, outputs)
        return self._returned(outputs, mask)

    def step(self, actions: Any, *, out: Mapping[str, np.ndarray] | None = None) -> Step:
        """Advance every environment by one step.

        Args:
            actions: (n,) integers 0..5, or (n, 2) for ``multi_discrete``.
            out: as in ``reset``.

        Returns:
            Observations, rewards (n,) float64, terminations (n,) bool, truncations (n,) bool, info.

        Raises:
            ActionError: if the actions have the wrong dtype, shape or range; no environment is stepped then.
            BufferError: if ``out`` does not fit.
            ResetNeededError: before the first ``reset``.
            StepOrderError: while another thread is in a call.
            ClosedError: after ``close``.

        An error in the step itself, such as one that the reward function raises, and Ctrl-C leave some environments
        stepped and others not: the next call must be ``reset`` or ``close``.
        """
        lifecycle, batch = self._lifecycle, self._batch
        lifecycle.check("step", AFTER_RESET)
        outputs = self._outputs.take(out)
        check_actions(actions, self.config.action_space, batch.actions)
        with lifecycle.changing:  # what ``with lifecycle`` does, in half a microsecond less
            lifecycle.phase = BROKEN
            outputs.final = self._outputs.take_final()
            call = batch.step_call(outputs.observations, outputs.final)
            batch.workers.run(call, 0, self.num_envs)
            del call  # before the results are made: what a step allocates stays below a kilobyte
            self._complete(outputs)
            lifecycle.phase = RUNNING
        columns = outputs.columns
        observations, info = self._returned(outputs)
        return observations, columns["rewards"], columns["terminations"], columns["truncations"], info

    def close_extras(self, **kwargs: Any) -> None:
        """End the threads and close the window; called once by ``close``."""
        self._close_window()
        self._batch.close()
        self._lifecycle.phase = Phase.CLOSED

    def render(self) -> tuple[np.ndarray, ...] | None:
        """Return the pictures of all environments in ``rgb_array`` mode; show the first one in ``human`` mode.

        Returns:
            A tuple of n arrays (600, 1056, 3) uint8 at ``picture_scale`` 1, each drawn in this call; None in
            ``human`` mode and without a mode.

        Raises:
            MemoryLimitError: if the pictures need more memory than is available.
            ResetNeededError, ClosedError: as ``step``.
        """
        self._lifecycle.check("render", AFTER_RESET)
        if self.render_mode is None:
            return None
        if self.render_mode == "human":
            self._show_first()
            return None
        return self.pictures(range(self.num_envs))

    @checked()
    def pictures(self, indices: Sequence[int]) -> tuple[np.ndarray, ...]:
        """Return the pictures of some environments, in any render mode.

        Args:
            indices: k environments.

        Returns:
            A tuple of k pictures as of ``render``, in the order of the indices.

        Raises:
            ConfigError: if there is no such environment.
            MemoryLimitError, ResetNeededError, ClosedError: as ``render``.
        """
        self._lifecycle.check("pictures", AFTER_RESET)
        chosen = [self._checked_index("indices", index) for index in indices]
        made: list[np.ndarray] = []
        for index in chosen:
            made.append(self._picture(index))
            if len(made) == 1:
                check_fits("render: pictures of num_envs", len(chosen), made[0].nbytes)
        return tuple(made)

    def memory(self) -> MemoryNode:
        """Return the tree of all bytes that this environment owns."""
        parts = self._batch.memory(), self._outputs.memory()
        return MemoryNode("vector environment", children=tuple(part for part in parts if part.total_bytes))

    def get_state(self, index: int) -> bytes:
        """Return a snapshot of one environment, as bytes that can be stored.

        Raises:
            ConfigError: if there is no such environment.
            ResetNeededError: before the first ``reset``.
            ClosedError: after ``close``.
        """
        self._lifecycle.check("get_state", AFTER_RESET)
        return self._batch.get_state(self._checked_index("index", index))

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
        self._lifecycle.check("set_state", AFTER_RESET)
        index = self._checked_index("index", index)
        self._batch.set_state(index, state)
        return self._observed(index)

    def copy_world(self, source: int, target: int) -> tuple[Any, dict[str, Any]]:
        """Copy the whole state of one environment to another: world, episode and random state.

        Returns:
            Observation of the copy and the values of the ``info`` columns.

        Raises:
            ConfigError, ResetNeededError, ClosedError: as ``get_state``.
        """
        self._lifecycle.check("copy_world", AFTER_RESET)
        source, target = self._checked_index("source", source), self._checked_index("target", target)
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
        self._lifecycle.check("gather", AFTER_RESET)
        chosen = check_indices(indices, self.num_envs)
        outputs = self._outputs.take(out)
        with self._lifecycle:
            self._batch.gather(chosen)
            self._begin(~self._all_mask, outputs)
        return self._returned(outputs)

    def reseed(self, seed: int | Sequence[int | None]) -> None:
        """Draw what follows from another seed, in running episodes too: which steps repeat an action, later levels.

        Copies and restored snapshots draw what their source will draw. A search that plays ahead in them therefore
        foresees which of its steps repeat an action, unless it gives them another seed.

        Args:
            seed: as in ``reset``; None keeps that of an environment.

        Raises:
            ConfigError: if there are not n seeds, or one is no whole number of at least 0.
            ResetNeededError, ClosedError: as ``get_state``.
        """
        self._lifecycle.check("reseed", AFTER_RESET)
        self._batch.seed(*check_seeds(seed, self.num_envs))

    def kernel_steps(self, out: Buffers, final: Buffers) -> KernelSteps | None:
        """Return what a kernel of your own needs to step these environments by ``env.step_all``.

        Ask again after calls that change levels, weights or start states, and after ``gather``.

        Args:
            out: arrays of observations by name, (r, ...) for any r of at least num_envs.
            final: arrays of last observations by name, (num_envs, ...), apart from those of ``out``.

        Returns:
            None if a step needs more than that: masks, look-ahead, reachability, stacks or a reward function.

        Raises:
            BufferError: if an array is not a writable C-contiguous array of the right dtype and shape, or shares memory
                with another.
            ActionError: if ``step_all`` was last given an action that is not 0 to 5, or rows that ``out`` lacks.
            ResetNeededError, StepOrderError, ClosedError: as ``step``.
        """
        self._lifecycle.check("kernel_steps", AFTER_RESET)
        return self._batch.kernel_steps(out, final)

    def exchange_levels(self, levels: Any) -> None:
        """Play other levels in future episodes, without stopping those under way.

        Running episodes end on their levels. These stay in ``level_names``, behind the new ones, until the next
        exchange; no further episode begins on them. ``info["level"]`` indexes the new ``level_names``; for an episode
        that ended in the last step, on a removed level, it gives the level of the next episode. Weights become equal;
        assignments, requested levels and start states are dropped. Earlier snapshots no longer fit, and ``worlds`` and
        ``level_set`` are replaced.

        Args:
            levels: as ``EnvironmentConfig.levels``: names, files, packs, map bytes or loaded levels.

        Raises:
            UnknownLevelError, LevelFormatError, UnsupportedLevelError: if a level cannot be used.
            ConfigError: if there are no levels, or ``graph`` is among the observations, as its space depends on the
                levels.
            StepOrderError: while another thread is in a call.
            ClosedError: after ``close``.

        Nothing is changed by a call that raises an error or is interrupted.
        """
        self._lifecycle.check("exchange_levels", NOT_CLOSED)
        self._batch.exchange_levels(levels)
        self.config = self._batch.config

    def set_level_weights(self, weights: Any = None) -> None:
        """Draw the levels of future episodes with probabilities proportional to weights.

        Args:
            weights: one number of at least 0 for each of ``level_names``, or some by name (the others get 0); None:
                equal weights. Those of levels that ``exchange_levels`` kept for episodes under way, which come last,
                are left out or 0.

        Raises:
            UnknownLevelError: if a name is not one of these levels.
            ConfigError: if the number of weights is wrong, one is negative or not finite, or all are 0.
            StepOrderError: while another thread is in a call.
            ClosedError: after ``close``.
        """
        self._lifecycle.check("set_level_weights", NOT_CLOSED)
        drawn = self._batch.drawn_names
        self._batch.set_weights(check_weights(weights, drawn, len(self.level_names) - len(drawn)))

    def assign_levels(self, levels: Any = None) -> None:
        """Assign levels to environments for all future episodes.

        Args:
            levels: n names or indices, with None where levels are drawn at random; None: drawn everywhere.

        Raises:
            UnknownLevelError: if a level is not one of ``level_names``, or kept for episodes under way.
            ConfigError: if there are not n items.
            StepOrderError: while another thread is in a call.
            ClosedError: after ``close``.
        """
        self._lifecycle.check("assign_levels", NOT_CLOSED)
        names = self._batch.drawn_names
        self._batch.assign_levels(check_assignment("levels", levels, names, self.num_envs))

    def set_starts(self, states: Iterable[bytes] | PackedStarts = (), share: Any = 1.0) -> None:
        """Begin a share of the future episodes in the worlds of snapshots instead of at the start of their level.

        An episode on a level with start states begins at one of them or at the start of the level. The draw depends
        only on the seed, the number of the episode and the shares, not on the choice of the level. Episodes on a level
        requested by ``reset`` begin at its start. Steps and return count from 0; the
        frames of the snapshot count towards the time limit. ``info["start"]`` tells which state an episode began in, by
        its number in the list that was set at the time, and -1 for any other start.

        Args:
            states: K snapshots, from ``get_state`` of environments with the same levels, taken one after another, or
                those of ``train.start_states``; those set before are dropped.
            share: probability that an episode begins in one of the K states: one number, divided evenly among the
                states of each level, or (K,) numbers.

        Raises:
            SnapshotError: if one is malformed, of other levels, over, or has no frame left; the message names the item.
            ConfigError: if the share has another shape, is no probability, or exceeds 1 for the states of a level;
                nothing is changed in either case.
            StepOrderError: while another thread is in a call.
            ClosedError: after ``close``.
        """
        self._lifecycle.check("set_starts", NOT_CLOSED)
        self._batch.set_starts(states, share)

    def set_start_shares(self, share: Any) -> None:
        """Change the shares of the start states; no snapshot is read again.

        Args:
            share: as in ``set_starts``, for the states that were set last.

        Raises:
            ConfigError, StepOrderError, ClosedError: as ``set_starts``.
        """
        self._lifecycle.check("set_start_shares", NOT_CLOSED)
        self._batch.set_start_shares(share)

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        """Refuse to be copied or pickled: threads, buffers and arrays of the caller belong to one process."""
        raise TypeError(
            "a vector environment cannot be copied or pickled; make another one with the same config, and carry "
            "environments over with get_state() and set_state()"
        )

    def _begin(self, mask: np.ndarray, outputs: Outputs) -> None:
        """Begin new episodes where ``mask``, (n,) bool, is set, and observe all environments."""
        workers = self._batch.workers
        workers.run(self._batch.reset_call(mask, outputs.observations), 0, self.num_envs, workers.pace_of_resets)
        self._complete(outputs)

    def _complete(self, outputs: Outputs) -> None:
        outputs.fill(self._batch.results)
        if outputs.final is not None:
            self._batch.finish_final(outputs.final, outputs.ended)
        self._batch.finish(outputs.observations)
        outputs.select_info()

    def _returned(self, outputs: Outputs, mask: np.ndarray | None = None) -> tuple[Any, dict[str, Any]]:
        """Return observations and info of a call, those of the environments in ``mask``, (n,) bool; None: of all."""
        observations = outputs.observations if self._only is None else outputs.observations[self._only]
        if self.gymnasium_infos:
            return observations, gathered_info(outputs, self._batch.worlds.ninjas, self.level_names, self._only, mask)
        return observations, outputs.info

    def _requested_levels(self, level: Any) -> np.ndarray:
        """Return the level that each environment is asked to play next, (n,) int64, -1 for none."""
        if level is None:
            return np.full(self.num_envs, -1)
        if is_several(level):
            return check_assignment("options['level']", level, self._batch.drawn_names, self.num_envs)
        return np.full(self.num_envs, find_level(level, self._batch.drawn_names, "options['level']"))

    def _seeds(self, seed: int | Sequence[int | None] | None) -> tuple[np.ndarray, np.ndarray]:
        """Return seeds, (n,) uint64, and the mask of the environments to seed; the first call seeds all."""
        bits, given = np.zeros(self.num_envs, np.uint64), ~self._all_mask
        if seed is not None:
            bits, given = check_seeds(seed, self.num_envs)
        if self._lifecycle.phase is not Phase.NEW:
            return bits, given
        random = np.random.SeedSequence().generate_state(self.num_envs, np.uint64)
        return np.where(given, bits, random), self._all_mask

    def _checked_index(self, name: str, index: int) -> int:
        return check_integer(name, index, low=0, high=self.num_envs - 1)

    def _observed(self, index: int) -> tuple[Any, dict[str, Any]]:
        """Return copies of one environment's observation and ``info`` columns."""
        buffers = make_buffers(self._batch.specs, 1)
        self._batch.observe(index, buffers)
        row = alone({name: array[0] for name, array in buffers.items()}, self.config.only_observation)
        if self.gymnasium_infos:
            return row, single_result(self._batch.results, index, self.level_names)[-1]
        result = self._batch.results[index]
        return row, {name: result[name].item() for name in COLUMNS}


def autoreset_mode_of(mode: AutoresetMode | str) -> AutoresetMode:
    """Return Gymnasium's mode given as such or by its value."""
    try:
        return AutoresetMode(mode)
    except ValueError as error:
        listed = ", ".join(repr(known.value) for known in AUTORESET_CODES)
        raise ConfigError(
            f"autoreset_mode: expected an AutoresetMode or one of {listed}, got {shortened(mode)}"
        ) from error
