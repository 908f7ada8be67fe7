"""The single Gymnasium environment: a batch of one."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from nclone_env.config import EnvironmentConfig, build
from nclone_env.env.actions import action_space, check_actions
from nclone_env.env.arrays.pool import RecyclingPool
from nclone_env.env.batch import Batch
from nclone_env.env.compiled.records import DISABLED, OUTCOMES
from nclone_env.env.compiled.reward_function import RewardFunction
from nclone_env.env.level_access import LevelAccess
from nclone_env.env.options import check_options, check_seed
from nclone_env.env.spaces import observation_space
from nclone_env.env.threads import OWN_SEAT
from nclone_env.env.viewer import Viewer
from nclone_env.errors import ClosedError, ConfigError, ResetNeededError
from nclone_env.memory_tree import MemoryNode

Observation = dict[str, np.ndarray]


class NPlusPlusEnv(LevelAccess, gymnasium.Env[Observation, Any]):
    """N++ as a Gymnasium environment.

    Observations are a dict of the configured names; see ``obs.spec``. They are safe to keep: a buffer is reused only
    when nobody holds it any more. ``info`` has ``level`` (name), ``frames`` (simulated in this step), ``outcome``
    (``playing``, ``won``, ``died``, ``timed_out``), ``gold``, and of the episode so far ``episode_frames``,
    ``episode_steps`` and ``episode_return``.

    Args:
        config: what to build; the defaults of :class:`EnvironmentConfig` if None.
        reward_function: takes an ``EVENT`` record (``env.compiled.records``) and returns the reward of the step,
            instead of the configured one; it is compiled by Numba, if that has not been done.
        **fields: fields of :class:`EnvironmentConfig`, which replace those of ``config``.

    Raises:
        ConfigError: if a field is unknown or out of range.
        UnknownLevelError: if a level is neither built in nor a file.
        LevelFormatError: if a level file is malformed.
        UnsupportedLevelError: if a level has no exit.
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array", "human"], "render_fps": 60}  # noqa: RUF012

    def __init__(
        self,
        config: EnvironmentConfig | None = None,
        *,
        reward_function: RewardFunction | None = None,
        **fields: Any,
    ):
        self._set_up(config_from(config, fields), reward_function)

    def _set_up(
        self, config: EnvironmentConfig, reward_function: RewardFunction | None, like: Batch | None = None
    ) -> None:
        self.config = config
        self._reward_function = reward_function
        self._batch = Batch(config, 1, DISABLED, 1, reward_function, like)
        self._pool = RecyclingPool(self._batch.specs, 1)
        self._everyone = np.ones(1, dtype=np.bool_)
        self._viewer = Viewer(self.config)
        self._phase = "new"
        self.observation_space = observation_space(self._batch.specs)  # type: ignore[assignment]
        self.action_space = action_space(self.config.action_space)
        self.render_mode = self.config.render_mode
        self.metadata = {**self.metadata, "render_fps": self.config.frames_per_second}

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Observation, dict]:
        """Begin an episode.

        Args:
            seed: restarts the random choice of levels, which is then that of a vector environment's first one with
                this seed; None goes on with it.
            options: ``{"level": name or index}`` plays that level in this episode; ``{"state": snapshot}`` begins it
                in the world of the snapshot, whose frames count towards the time limit.

        Raises:
            ConfigError: if an option is unknown, or the seed is not a whole number of at least 0.
            UnknownLevelError: if the level is not one of ``level_names``.
            SnapshotError: if the snapshot is malformed, of other levels, or its episode is over.
            ClosedError: after ``close``.
        """
        self._check_open("reset")
        chosen = check_options(options, ("level", "state"))
        start = self._batch.read_start(chosen["state"]) if "state" in chosen else None
        bits = None if seed is None else check_seed(seed)
        super().reset(seed=None if seed is None else int(seed))
        if bits is None and self._phase == "new":
            bits = int(self.np_random.integers(2**63))
        if bits is not None:
            self._batch.seed(np.array([bits], dtype=np.uint64), self._everyone)
        buffers = self._pool.take()
        if start is not None:
            self._batch.begin_at(start, 0)
            self._batch.observe(0, buffers)
        else:
            if "level" in chosen:
                self._batch.choose_level(chosen["level"], self._everyone)
            self._batch.reset_task(self._everyone, buffers, 0)(OWN_SEAT, 0, 1)
            self._batch.finish(buffers, {})
        self._phase = "playing"
        self._show()
        return self._row(buffers), self._info()

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Play ``frame_skip`` frames with one action, fewer if the episode ends.

        Raises:
            ActionError: if the action has the wrong dtype, shape or range.
            ResetNeededError: before ``reset`` or after the end of the episode.
            ClosedError: after ``close``.
        """
        self._check_open("step")
        if self._phase != "playing":
            state = "before the first reset" if self._phase == "new" else "after the end of the episode"
            raise ResetNeededError(f"step() was called {state}; call reset() to begin an episode")
        check_actions(action, self.config.action_space, self._batch.actions.reshape(()))
        buffers = self._pool.take()
        self._batch.step_task(buffers, {}, 0)(OWN_SEAT, 0, 1)
        self._batch.finish(buffers, {})
        result = self._batch.results[0]
        terminated, truncated = bool(result["terminated"]), bool(result["truncated"])
        if terminated or truncated:
            self._phase = "over"
        self._show()
        return self._row(buffers), float(result["reward"]), terminated, truncated, self._info()

    def get_state(self) -> bytes:
        """Return a snapshot: world, episode and random choices to come, as bytes that can be stored.

        Raises:
            ResetNeededError: before the first ``reset`` or ``set_state``.
            ClosedError: after ``close``.
        """
        self._check_begun("get_state")
        return self._batch.get_state(0)

    def set_state(self, state: bytes) -> tuple[Observation, dict[str, Any]]:
        """Become what the environment was that the snapshot was taken from; the same actions then do the same.

        Args:
            state: from ``get_state`` of an environment, single or of a vector, with the same levels.

        Returns:
            Observation and info of that state.

        Raises:
            SnapshotError: if it is no snapshot, damaged, or of other levels or another version; nothing is changed.
            ClosedError: after ``close``.
        """
        self._check_open("set_state")
        self._batch.set_state(0, state)
        self._phase = "over" if self._batch.episodes[0]["over"] else "playing"
        self._show()
        buffers = self._pool.take()
        self._batch.observe(0, buffers)
        return self._row(buffers), self._info()

    def clone(self) -> NPlusPlusEnv:
        """Return another environment in the same state that shares the levels with this one.

        Raises:
            ClosedError: after ``close``.
        """
        self._check_open("clone")
        other = type(self).__new__(type(self))
        other._set_up(self.config, self._reward_function, like=self._batch)
        if self._phase != "new":
            other._batch.set_state(0, self._batch.get_state(0))
            other._batch.copy_stack(self._batch)
            other._phase = self._phase
        return other

    def render(self) -> np.ndarray | None:
        """Return the picture, (600, 1056, 3) uint8 at scale 1, in ``rgb_array`` mode; show it in ``human`` mode.

        Raises:
            ResetNeededError: before ``reset``.
            ClosedError: after ``close``.
        """
        self._check_begun("render")
        if self.render_mode is None:
            gymnasium.logger.warn("render() draws nothing without a render_mode; make the environment with one")
            return None
        return self._viewer.render(self._batch)

    def memory(self) -> MemoryNode:
        """Return the tree of all bytes this environment owns."""
        return MemoryNode("environment", children=(self._batch.memory(), self._pool.memory("recycled observations")))

    def close(self) -> None:
        """Free the window; calling it again does nothing."""
        self._viewer.close()
        self._batch.close()
        self._phase = "closed"

    def _check_open(self, call: str) -> None:
        if self._phase == "closed":
            raise ClosedError(f"{call}() was called after close(); make a new environment")

    def _check_begun(self, call: str) -> None:
        self._check_open(call)
        if self._phase == "new":
            raise ResetNeededError(f"{call}() was called before the first reset; call reset() to begin an episode")

    def _show(self) -> None:
        if self.render_mode == "human":
            self._viewer.render(self._batch)

    @staticmethod
    def _row(buffers: Observation) -> Observation:
        return {name: array[0] for name, array in buffers.items()}

    def _info(self) -> dict[str, Any]:
        result = self._batch.results[0]
        return {
            "level": self.level_names[result["level"]],
            "frames": int(result["frames"]),
            "outcome": OUTCOMES[result["outcome"]],
            "gold": int(result["gold"]),
            "episode_frames": int(result["episode_frames"]),
            "episode_steps": int(result["episode_steps"]),
            "episode_return": float(result["episode_return"]),
        }


def config_from(config: EnvironmentConfig | None, fields: dict[str, Any]) -> EnvironmentConfig:
    """Return the configuration with other values in some fields; the defaults of the others if it is None.

    Raises:
        ConfigError: if it is no configuration, or a field is unknown or out of range.
    """
    if config is None:
        return build(EnvironmentConfig, fields, "environment")
    if not isinstance(config, EnvironmentConfig):
        raise ConfigError(
            f"config: expected an EnvironmentConfig, got {config!r}; pass its fields as keyword arguments (levels=...)"
        )
    return config.replace(**fields)
