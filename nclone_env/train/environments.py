"""The vector environment interface of the trainer, and its default implementation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode

from nclone_env.config import EnvironmentConfig
from nclone_env.env.compiled.records import WON
from nclone_env.env.vector import NPlusPlusVectorEnv
from nclone_env.memory_tree import MemoryNode


class VectorEnvironment(Protocol):
    """The part of ``NPlusPlusVectorEnv`` with same-step autoreset that the trainer uses."""

    num_envs: int
    single_observation_space: Any

    @property
    def level_names(self) -> tuple[str, ...]:
        """Names of the levels that episodes are played on."""
        ...

    def reset(
        self,
        *,
        seed: int | None = None,
        options: dict[str, Any] | None = None,
        out: Mapping[str, np.ndarray] | None = None,
    ) -> tuple[Any, dict[str, Any]]:
        """Reset all environments."""
        ...

    def step(
        self, actions: np.ndarray, *, out: Mapping[str, np.ndarray] | None = None
    ) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Advance all environments by one step."""
        ...

    def exchange_levels(self, levels: Any) -> None:
        """Play other levels in future episodes; only called if levels are generated."""
        ...

    def set_level_weights(self, weights: Any = None) -> None:
        """Draw the levels of future episodes by weights (L,)."""
        ...

    def assign_levels(self, levels: Any = None) -> None:
        """Assign levels to environments for all future episodes, (n,) indices."""
        ...

    def set_starts(self, states: Iterable[bytes] = (), share: Any = 1.0) -> None:
        """Begin a share of future episodes in snapshots."""
        ...

    def set_start_shares(self, share: Any) -> None:
        """Change the share of each of these."""
        ...

    def get_state(self, index: int) -> bytes:
        """Return a snapshot of one environment."""
        ...

    def set_state(self, index: int, state: bytes) -> Any:
        """Restore one environment from a snapshot."""
        ...

    def memory(self) -> MemoryNode:
        """Return the tree of owned bytes."""
        ...

    def close(self) -> None:
        """Release everything."""
        ...


MakeEnvironments = Callable[[EnvironmentConfig, int], VectorEnvironment]


def make_environments(config: EnvironmentConfig, num_envs: int) -> VectorEnvironment:
    """Return a vector environment with same-step autoreset; the trainer steps several, each on a thread of its own."""
    return NPlusPlusVectorEnv(config, num_envs, autoreset_mode=AutoresetMode.SAME_STEP, num_threads=1)


def observation_shapes(envs: VectorEnvironment, frame_stack: int = 1) -> dict[str, tuple[int, ...]]:
    """Return the shape of each observation of one environment by name, with stacks of ``frame_stack`` except masks."""
    space = envs.single_observation_space
    assert isinstance(space, spaces.Dict)
    stack = (frame_stack,) if frame_stack > 1 else ()
    depths = {name: () if name == "action_mask" else stack for name in space.spaces}
    return {name: (*depths[name], *(box.shape or ())) for name, box in space.spaces.items()}


class FinishedEpisodes(NamedTuple):
    """The k episodes that ended in a vector step."""

    indices: np.ndarray
    """(k,) indices of the environments."""
    levels: np.ndarray
    """(k,) indices of the levels played."""
    success: np.ndarray
    """(k,) bool, whether the exit was reached."""
    returns: np.ndarray
    """(k,) float64, undiscounted."""
    frames: np.ndarray
    """(k,) simulated frames."""


def finished_episodes(info: Mapping[str, Any]) -> FinishedEpisodes | None:
    """Return the episodes that ended in a step with same-step autoreset, given its ``info``; None if none did."""
    if "final_info" not in info:
        return None
    final, indices = info["final_info"], np.flatnonzero(info["_final_info"])
    return FinishedEpisodes(
        indices,
        final["level"][indices],
        final["outcome"][indices] == WON,
        final["episode_return"][indices],
        final["episode_frames"][indices],
    )
