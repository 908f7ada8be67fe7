"""The single Gymnasium environment: a batch of one."""

from __future__ import annotations

import secrets
from copy import deepcopy
from functools import cached_property, lru_cache, partial
from typing import Any

import gymnasium
import numpy as np

from nclone_env.config import EnvironmentConfig, config_from
from nclone_env.env.arguments import check_options, check_seed, find_level
from nclone_env.env.arrays.buffers import Buffers, alone, make_buffers
from nclone_env.env.arrays.outputs import RecyclingPool, single_result
from nclone_env.env.base import (
    AFTER_RESET,
    BROKEN,
    IN_EPISODE,
    NOT_CLOSED,
    OVER,
    RUNNING,
    BaseEnvironment,
    Lifecycle,
    Phase,
)
from nclone_env.env.batch import Batch
from nclone_env.env.compiled.passes import ObservationFunction, RewardFunction
from nclone_env.env.compiled.records import DISABLED
from nclone_env.env.spaces import action_space, check_actions, flat_masks, keys_to_action, observation_space
from nclone_env.env.threads import CALLING_THREAD
from nclone_env.errors import ConfigError
from nclone_env.memory import MemoryNode

_ALL = np.ones(1, dtype=np.bool_)


class NPlusPlusEnv(BaseEnvironment, gymnasium.Env[Any, Any]):
    """N++ as a Gymnasium environment.

    Observations are a dict of the configured names (``obs.spec``), or one array with ``dict_observations=False``. They
    are safe to keep: a buffer is reused only once all references to it are gone. ``info`` has ``level`` (name),
    ``frames`` (simulated in this step), ``outcome`` (``playing``, ``won``, ``died``, ``timed_out``), ``is_success``
    (won), ``gold``, and, about the episode so far, ``episode_frames``, ``episode_steps`` and ``episode_return``.

    Args:
        config: configuration; the defaults of :class:`EnvironmentConfig` if None.
        reward_function: takes an ``EVENT`` record (``env.compiled.records``) and returns the reward of the step, which
            replaces the configured one. Numba compiles it unless it is compiled already.
        observation_function: a further observation by a function of the world.
        **fields: fields of :class:`EnvironmentConfig`, which replace those of ``config``.

    Raises:
        ConfigError: if a field is unknown or out of range.
        UnknownLevelError: if a level is neither built-in nor a file.
        LevelFormatError: if a level file is malformed.
        UnsupportedLevelError: if a level has no exit.
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array", "human"], "render_fps": 60}  # noqa: RUF012

    def __init__(
        self,
        config: EnvironmentConfig | None = None,
        *,
        reward_function: RewardFunction | None = None,
        observation_function: ObservationFunction | None = None,
        **fields: Any,
    ):
        self._set_up(config_from(config, fields), reward_function, observation_function)

    def _set_up(
        self,
        config: EnvironmentConfig,
        reward_function: RewardFunction | None,
        observation_function: ObservationFunction | None,
        like: Batch | None = None,
    ) -> None:
        self.config = config = _shared(config)
        self._reward_function, self._observation_function = reward_function, observation_function
        self._batch = Batch(config, 1, DISABLED, 1, like=like, **self._functions())
        self._pool = RecyclingPool(self._batch.specs, 1)
        self._lifecycle = Lifecycle()
        self.render_mode = self.config.render_mode
        self.metadata = _metadata(self.config.frames_per_second)

    @cached_property
    def observation_space(self) -> gymnasium.Space:  # type: ignore[override]
        """The space of the observations; made on first use."""
        return observation_space(self._batch.specs, self.config.only_observation)

    @cached_property
    def action_space(self) -> gymnasium.Space:  # type: ignore[override]
        """The space of the actions; made on first use."""
        return action_space(self.config.action_space)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict]:
        """Begin an episode.

        Args:
            seed: seeds the random choice of levels, as it seeds environment 0 of a vector environment; None continues
                the current sequence. Seeds that differ by a multiple of 2**64 are
                the same.
            options: ``{"level": name or index}`` plays that level in this episode; ``{"state": snapshot}`` begins it
                in the world of the snapshot, whose frames count towards the time limit.

        Returns:
            Observation and info.

        Raises:
            ConfigError: if an option is unknown, or the seed is not a whole number of at least 0.
            UnknownLevelError: if the level is not one of ``level_names``.
            SnapshotError: if the snapshot is malformed, of other levels, over, or has no frame left; nothing is
                changed in any of these cases.
            ClosedError: after ``close``.
        """
        self._lifecycle.check("reset", NOT_CLOSED)
        chosen, new = check_options(options, ("level", "state")), self._lifecycle.phase is Phase.NEW
        start = self._batch.read_start(chosen["state"]) if "state" in chosen else None
        level = find_level(chosen["level"], self.level_names, "options['level']") if "level" in chosen else -1
        bits = None if seed is None else check_seed(seed)
        with self._lifecycle:
            if seed is not None:
                self._np_random, self._np_random_seed = None, int(seed)
            elif new:
                bits = self._any_seed()
            if bits is not None:
                self._batch.seed(np.array([bits], dtype=np.uint64), _ALL)
            self._batch.episodes["next_level"] = level
            buffers = self._pool.take()
            if start is not None:
                self._batch.begin_at(start, 0)
                self._batch.observe(0, buffers)
            else:
                self._batch.reset_call(_ALL, buffers)(CALLING_THREAD, 0, 1)
                self._batch.finish(buffers)
        self._show()
        return self._row(buffers), self._info()

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Play ``frame_skip`` frames with one action, fewer if the episode ends.

        Args:
            action: an integer 0..5, or (2,) integers for ``multi_discrete``.

        Returns:
            Observation, reward, terminated, truncated, info.

        Raises:
            ActionError: if the action has the wrong dtype, shape or range.
            ResetNeededError: before ``reset``, after the end of the episode, and after a step that an error (of the
                reward function, for example) or Ctrl-C ended before it was done.
            ClosedError: after ``close``.
        """
        self._lifecycle.check("step", IN_EPISODE)
        check_actions(action, self.config.action_space, self._batch.actions.reshape(()))
        buffers = self._pool.take()
        self._lifecycle.phase = BROKEN  # unless the step comes to its end
        self._batch.step_call(buffers, None)(CALLING_THREAD, 0, 1)
        self._batch.finish(buffers)
        reward, terminated, truncated, info = single_result(self._batch.results, 0, self.level_names)
        self._lifecycle.phase = OVER if terminated or truncated else RUNNING
        self._show()
        return self._row(buffers), reward, terminated, truncated, info

    def get_state(self) -> bytes:
        """Return a snapshot of world, episode and random state, as bytes that can be stored.

        Raises:
            ResetNeededError: before the first ``reset`` or ``set_state``.
            ClosedError: after ``close``.
        """
        self._lifecycle.check("get_state", AFTER_RESET)
        return self._batch.get_state(0)

    def set_state(self, state: bytes) -> tuple[Any, dict[str, Any]]:
        """Restore a snapshot; the same actions then have the same results as after it was taken.

        Args:
            state: from ``get_state`` of a single or vector environment with the same levels.

        Returns:
            Observation and info of that state.

        Raises:
            SnapshotError: if it is malformed, damaged, or of other levels or another version; nothing is changed.
            ClosedError: after ``close``.
        """
        self._lifecycle.check("set_state", NOT_CLOSED)
        self._batch.set_state(0, state)
        self._lifecycle.phase = Phase.OVER if self._batch.episodes[0]["over"] else Phase.RUNNING
        self._show()
        buffers = self._pool.take()
        self._batch.observe(0, buffers)
        return self._row(buffers), self._info()

    def clone(self) -> NPlusPlusEnv:
        """Return another environment in the same state; both share the levels.

        Raises:
            ClosedError: after ``close``.
        """
        self._lifecycle.check("clone", NOT_CLOSED)
        other = type(self).__new__(type(self))
        other._set_up(self.config, **self._functions(), like=self._batch)
        other.spec, other._np_random_seed, other._generator = self.spec, self._np_random_seed, deepcopy(self._generator)
        if self._lifecycle.phase is not Phase.NEW:
            other._batch.set_state(0, self._batch.get_state(0))
            other._batch.copy_stack(self._batch)
            other._lifecycle.phase = self._lifecycle.phase
        return other

    def __deepcopy__(self, memo: dict[int, Any]) -> NPlusPlusEnv:
        """Return a clone."""
        return self.clone()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle configuration, snapshot and ``np_random``; stacked observations restart as after ``set_state``."""
        self._lifecycle.check("pickle", (Phase.NEW, *AFTER_RESET))
        state = None if self._lifecycle.phase is Phase.NEW else self.get_state()
        make = partial(type(self), self.config, **self._functions())
        return make, (), (state, self.spec, self._np_random_seed, self._generator)

    def _functions(self) -> dict[str, Any]:
        """Return the functions of the user by argument; kept as attributes, which take less memory than a dict."""
        return {"reward_function": self._reward_function, "observation_function": self._observation_function}

    def __setstate__(self, pickled: tuple[Any, ...]) -> None:
        state, self.spec, self._np_random_seed, self._generator = pickled
        if state is not None:
            self.set_state(state)

    def render(self) -> np.ndarray | None:
        """Return the picture, (600, 1056, 3) uint8 at scale 1, in ``rgb_array`` mode; show it in ``human`` mode.

        Raises:
            ResetNeededError: before ``reset``.
            ClosedError: after ``close``.
        """
        self._lifecycle.check("render", AFTER_RESET)
        if self.render_mode is None:
            gymnasium.logger.warn("render() draws nothing without a render_mode; make the environment with one")
            return None
        if self.render_mode == "human":
            self._show_first()
            return None
        return self._picture()

    def get_keys_to_action(self) -> dict[tuple[int, ...], Any]:
        """Return the action for each combination of keys, for ``gymnasium.utils.play.play``."""
        return keys_to_action(self.config.action_space)

    def action_masks(self) -> np.ndarray:
        """Return which actions the next step may take, for ``MaskablePPO``; see ``flat_masks`` in ``env.spaces``.

        Returns:
            (6,) bool; (5,) with ``multi_discrete`` actions.

        Raises:
            ConfigError: if ``"action_mask"`` is not among the observations.
            ResetNeededError: before ``reset``.
            ClosedError: after ``close``.
        """
        self._lifecycle.check("action_masks", AFTER_RESET)
        if "action_mask" not in self.config.observations:
            raise ConfigError(
                f"action_masks: expected 'action_mask' among the observations, got "
                f"{', '.join(self.config.observations)}; add it"
            )
        buffers = make_buffers(self._batch.specs, 1)
        self._batch.observe(0, buffers)
        return flat_masks(buffers["action_mask"][0], self.config.action_space)

    def memory(self) -> MemoryNode:
        """Return the tree of all bytes that this environment owns."""
        return MemoryNode("environment", children=(self._batch.memory(), self._pool.memory("recycled observations")))

    def close(self) -> None:
        """Close the window and end the environment; further calls do nothing."""
        self._close_window()
        self._batch.close()
        self._lifecycle.phase = Phase.CLOSED

    def _any_seed(self) -> int:
        """Return the bits of a random seed: from the generator if the user has set one."""
        if self._generator is not None:
            return int(self._generator.integers(2**63))
        self._np_random_seed = secrets.randbits(64)
        return self._np_random_seed

    def _show(self) -> None:
        if self.render_mode == "human":
            self._show_first()

    def _row(self, buffers: Buffers) -> Any:
        return alone({name: array[0] for name, array in buffers.items()}, self.config.only_observation)

    def _info(self) -> dict[str, Any]:
        return single_result(self._batch.results, 0, self.level_names)[-1]


def _shared(config: EnvironmentConfig) -> EnvironmentConfig:
    """Return one object for equal configurations that name their levels."""
    return _first_equal(config) if all(isinstance(level, str) for level in config.levels) else config


@lru_cache(maxsize=32)
def _first_equal(config: EnvironmentConfig) -> EnvironmentConfig:
    return config


@lru_cache(maxsize=32)
def _metadata(frames_per_second: float) -> dict[str, Any]:
    return {**NPlusPlusEnv.metadata, "render_fps": frames_per_second}
