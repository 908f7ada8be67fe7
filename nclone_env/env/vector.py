"""The vector environment: many environments in one process, advanced by one compiled call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from nclone_env.config import EnvironmentConfig, check_integer
from nclone_env.env import episode
from nclone_env.env.actions import action_space, check_actions
from nclone_env.env.batch import Batch
from nclone_env.env.buffers import BufferPool, Buffers, check_buffers
from nclone_env.env.options import check_options, check_seed
from nclone_env.env.single import config_from
from nclone_env.env.spaces import observation_space
from nclone_env.env.viewer import Viewer
from nclone_env.errors import ClosedError, ConfigError, ResetNeededError
from nclone_env.memory_tree import MemoryNode

_MODES = {
    AutoresetMode.NEXT_STEP: episode.NEXT_STEP,
    AutoresetMode.SAME_STEP: episode.SAME_STEP,
    AutoresetMode.DISABLED: episode.DISABLED,
}
_MOST_ENVS, _MOST_THREADS = 1 << 24, 1024
_COLUMNS = ("level", "frames", "outcome", "gold", "episode_frames", "episode_steps", "episode_return")


class NPlusPlusVectorEnv(gymnasium.vector.VectorEnv[Buffers, np.ndarray, np.ndarray]):
    """``num_envs`` environments in one process, stepped by compiled code on several threads.

    Observations are a dict of arrays (num_envs, ...), safe to keep, or written into the caller's arrays with ``out``.
    ``info`` has the columns ``level`` (index in ``level_names``), ``frames``, ``outcome`` (code, see
    ``env.episode.OUTCOMES``), ``gold``, ``episode_frames``, ``episode_steps`` and ``episode_return`` as arrays
    (num_envs,) about the step just made, each with its ``_name`` mask. In same-step mode ``final_obs`` and
    ``final_info`` hold the last observation and the columns of the episodes that ended; ``final_obs`` is reused by
    the next step.

    Args:
        config: what to build; the defaults of :class:`EnvironmentConfig` if None.
        num_envs: number of environments.
        autoreset_mode: when finished environments begin anew (Gymnasium's ``AutoresetMode`` or its value).
        num_threads: threads that share the work; by default one per core if there is enough of it.
        **fields: fields of :class:`EnvironmentConfig`, which replace those of ``config``.

    Raises:
        ConfigError, UnknownLevelError, LevelFormatError, UnsupportedLevelError: as the single environment.
    """

    def __init__(
        self,
        config: EnvironmentConfig | None = None,
        num_envs: int = 1,
        *,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        num_threads: int | None = None,
        **fields: Any,
    ):
        self.closed = True  # until all is made: Gymnasium closes what is dropped, even if an argument was refused
        self.config = config_from(config, fields)
        check_integer("num_envs", num_envs, low=1, high=_MOST_ENVS)
        if num_threads is not None:
            check_integer("num_threads", num_threads, low=1, high=_MOST_THREADS)
        self.num_envs = num_envs = int(num_envs)
        mode = _autoreset_mode(autoreset_mode)
        self._batch = Batch(self.config, num_envs, _MODES[mode], num_threads)
        self._pool = BufferPool(self._batch.specs, num_envs)
        self._everyone = np.ones(num_envs, dtype=np.bool_)
        self._everyone.flags.writeable = False
        self._viewer = Viewer(self.config)
        self._begun = False
        self.autoreset_mode = mode
        self.metadata = {
            "render_modes": ["rgb_array", "human"],
            "render_fps": self.config.frames_per_second,
            "autoreset_mode": mode,
        }
        self.render_mode = self.config.render_mode
        self.single_observation_space = observation_space(self._batch.specs)
        self.single_action_space = action_space(self.config.action_space)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.closed = False

    @property
    def level_names(self) -> tuple[str, ...]:
        """Names of the levels an episode can play."""
        return self._batch.level_set.names

    def reset(
        self,
        *,
        seed: int | list[int | None] | None = None,
        options: dict[str, Any] | None = None,
        out: Mapping[str, np.ndarray] | None = None,
    ) -> tuple[Buffers, dict[str, Any]]:
        """Begin new episodes.

        Args:
            seed: environment i gets ``seed + i``, or the i-th of a list; None goes on with the random choices.
            options: ``{"level": name or index}`` plays that level; ``{"state": snapshot}`` begins in the world of the
                snapshot; ``{"reset_mask": (n,) bool}`` resets only those.
            out: arrays by observation name that are written and returned instead of fresh ones.

        Raises:
            ConfigError: if an option is unknown, the mask has the wrong shape or dtype, or a seed is not a whole
                number of at least 0.
            UnknownLevelError: if the level is not one of ``level_names``.
            SnapshotError: if the snapshot is malformed, of other levels, or its episode is over.
            BufferError: if ``out`` does not fit.
            ClosedError: after ``close``.
        """
        self._check_open("reset")
        buffers = self._buffers(out)
        chosen = check_options(options, ("level", "state", "reset_mask"))
        start = self._batch.read_start(chosen["state"]) if "state" in chosen else None
        mask = self._reset_mask(chosen.get("reset_mask"))
        self._seed(seed, mask)
        if start is not None:
            self._batch.begin_at(start, mask)
            mask = ~self._everyone
        elif "level" in chosen:
            self._batch.choose_level(chosen["level"], mask)
        self._batch.reset(mask, buffers)
        self._begun = True
        return buffers, self._columns()

    def step(
        self, actions: Any, *, out: Mapping[str, np.ndarray] | None = None
    ) -> tuple[Buffers, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Advance every environment by one step.

        Args:
            actions: (n,) integers 0..5, or (n, 2) for ``multi_discrete``.
            out: arrays by observation name that are written and returned instead of fresh ones.

        Returns:
            Observations, rewards (n,) float64, terminations (n,) bool, truncations (n,) bool, info.

        Raises:
            ActionError: if the actions have the wrong dtype, shape or range; nothing is advanced then.
            BufferError: if ``out`` does not fit.
            ResetNeededError: before the first ``reset``.
            ClosedError: after ``close``.
        """
        self._check_begun("step")
        buffers = self._buffers(out)
        check_actions(actions, self.config.action_space, self._batch.actions)
        self._batch.step(buffers)
        rewards, terminated, truncated = (
            self._batch.results[name].copy() for name in ("reward", "terminated", "truncated")
        )
        info = self._columns()
        if self._batch.autoreset == episode.SAME_STEP:
            self._add_final(info, terminated | truncated)
        return buffers, rewards, terminated, truncated, info

    def get_state(self, index: int) -> bytes:
        """Return a snapshot of one environment, as bytes that can be stored.

        Raises:
            ConfigError: if there is no such environment.
            ResetNeededError: before the first ``reset``.
            ClosedError: after ``close``.
        """
        self._check_index("get_state", "index", index)
        return self._batch.get_state(index)

    def set_state(self, index: int, state: bytes) -> tuple[Buffers, dict[str, Any]]:
        """Make one environment what the one was that a snapshot was taken from; the same actions then do the same.

        Args:
            index: environment.
            state: from ``get_state`` of an environment, single or of a vector, with the same levels.

        Returns:
            Its observation and the values of the ``info`` columns.

        Raises:
            SnapshotError: if it is no snapshot, damaged, or of other levels or another version, or if its episode is
                over in same-step mode; nothing is changed.
            ConfigError, ResetNeededError, ClosedError: as ``get_state``.
        """
        self._check_index("set_state", "index", index)
        self._batch.set_state(index, state)
        return self._observed(index)

    def copy_world(self, source: int, target: int) -> tuple[Buffers, dict[str, Any]]:
        """Make one environment a copy of another, with its episode and random choices to come.

        Returns:
            Observation of the copy and the values of the ``info`` columns.

        Raises:
            ConfigError, ResetNeededError, ClosedError: as ``get_state``.
        """
        self._check_index("copy_world", "source", source)
        self._check_index("copy_world", "target", target)
        self._batch.copy(source, target)
        return self._observed(target)

    def gather(self, indices: Any, *, out: Mapping[str, np.ndarray] | None = None) -> tuple[Buffers, dict[str, Any]]:
        """Make environment i a copy of what environment ``indices[i]`` is now: survivors, or many futures of one.

        Args:
            indices: (n,) integers; any environment, any number of times.
            out: arrays by observation name that are written and returned instead of fresh ones.

        Returns:
            Observations and info of all, as ``reset``.

        Raises:
            ConfigError: if the indices have the wrong dtype, shape or range; nothing is changed.
            BufferError: if ``out`` does not fit.
            ResetNeededError, ClosedError: as ``get_state``.
        """
        self._check_begun("gather")
        chosen = self._indices(indices)
        buffers = self._buffers(out)
        self._batch.gather(chosen)
        self._batch.reset(~self._everyone, buffers)
        return buffers, self._columns()

    def render(self) -> tuple[np.ndarray, ...] | None:
        """Return a tuple with the picture of the first environment, or show it in ``human`` mode."""
        self._check_begun("render")
        if self.render_mode is None:
            return None
        picture = self._viewer.render(self._batch)
        return None if picture is None else (picture,)

    def memory(self) -> MemoryNode:
        """Return the tree of all bytes this environment owns."""
        return MemoryNode("vector environment", children=(self._batch.memory(), self._pool.memory()))

    def close_extras(self, **kwargs: Any) -> None:
        """End threads and window (called once by ``close``)."""
        self._viewer.close()
        self._batch.close()

    def _buffers(self, out: Mapping[str, np.ndarray] | None) -> Buffers:
        return self._pool.take() if out is None else check_buffers(out, self._batch.specs, self.num_envs)

    def _seed(self, seed: int | list[int | None] | None, mask: np.ndarray) -> None:
        if not self._begun:
            self._batch.seed(np.random.SeedSequence().generate_state(self.num_envs, np.uint64), self._everyone)
        if seed is None:
            return
        one = not isinstance(seed, (list, tuple, np.ndarray))
        seeds = [check_seed(seed) + i for i in range(self.num_envs)] if one else list(seed)  # type: ignore[arg-type]
        if len(seeds) != self.num_envs:
            raise ConfigError(f"seed: expected one seed or a list of {self.num_envs}, got {len(seeds)}")
        given = np.array([value is not None for value in seeds]) & mask
        bits = [0 if value is None else check_seed(value) for value in seeds]
        self._batch.seed(np.array(bits, dtype=np.uint64), given)

    def _reset_mask(self, mask: Any) -> np.ndarray:
        if mask is None:
            return self._everyone
        if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_ or mask.shape != (self.num_envs,):
            raise ConfigError(f"options['reset_mask']: expected a bool array of shape ({self.num_envs},), got {mask!r}")
        return mask if self._begun else self._everyone

    def _check_index(self, call: str, name: str, index: int) -> None:
        self._check_begun(call)
        check_integer(name, index, low=0, high=self.num_envs - 1)

    def _indices(self, indices: Any) -> np.ndarray:
        array = np.asarray(indices)
        if array.dtype.kind not in "iu" or array.shape != (self.num_envs,):
            got = f"{array.dtype} of shape {array.shape}"
            raise ConfigError(f"indices: expected whole numbers of shape ({self.num_envs},), got {got}")
        if array.min() < 0 or array.max() >= self.num_envs:
            got = f"{array.min()} to {array.max()}"
            raise ConfigError(f"indices: expected environments from 0 to {self.num_envs - 1}, got {got}")
        return np.ascontiguousarray(array, dtype=np.int64)

    def _observed(self, index: int) -> tuple[Buffers, dict[str, Any]]:
        """Return copies of one environment's observation and ``info`` columns."""
        buffers = self._pool.take()
        self._batch.observe(index, buffers)
        row = {name: array[index].copy() for name, array in buffers.items()}
        return row, {name: self._batch.results[name][index].item() for name in _COLUMNS}

    def _columns(self) -> dict[str, Any]:
        info: dict[str, Any] = {}
        for name in _COLUMNS:
            info[name] = self._batch.results[name].copy()
            info[f"_{name}"] = self._everyone
        return info

    def _add_final(self, info: dict[str, Any], ended: np.ndarray) -> None:
        if ended.any():
            final_info: dict[str, Any] = {name: info[name] for name in _COLUMNS}
            final_info.update({f"_{name}": ended for name in _COLUMNS})
            info.update(final_obs=self._batch.final, _final_obs=ended, final_info=final_info, _final_info=ended)

    def _check_begun(self, call: str) -> None:
        self._check_open(call)
        if not self._begun:
            raise ResetNeededError(f"{call}() was called before the first reset; call reset() to begin the episodes")

    def _check_open(self, call: str) -> None:
        if self.closed:
            raise ClosedError(f"{call}() was called after close(); make a new environment")


def _autoreset_mode(mode: AutoresetMode | str) -> AutoresetMode:
    """Return Gymnasium's mode given as such or by its value.

    Raises:
        ConfigError: if there is no such mode; the message lists the values.
    """
    try:
        return AutoresetMode(mode)
    except ValueError as error:
        listed = ", ".join(repr(known.value) for known in _MODES)
        raise ConfigError(f"autoreset_mode: expected an AutoresetMode or one of {listed}, got {mode!r}") from error
