"""What the trainer needs of a vector environment, and the one it uses unless told otherwise."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode

from nclone_env.config import EnvironmentConfig
from nclone_env.env.vector import NPlusPlusVectorEnv
from nclone_env.memory_tree import MemoryNode


class VectorEnvironment(Protocol):
    """The part of ``NPlusPlusVectorEnv`` (restarting in the same step) that the trainer uses."""

    num_envs: int
    level_names: tuple[str, ...]
    single_observation_space: Any

    def reset(
        self,
        *,
        seed: int | None = None,
        options: dict[str, Any] | None = None,
        out: Mapping[str, np.ndarray] | None = None,
    ) -> tuple[Any, dict[str, Any]]:
        """Start all environments anew."""
        ...

    def step(
        self, actions: np.ndarray, out: Mapping[str, np.ndarray] | None = None
    ) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Advance all environments by one step."""
        ...

    def memory(self) -> MemoryNode:
        """Return the tree of owned bytes."""
        ...

    def close(self) -> None:
        """Release everything."""
        ...


MakeEnvironments = Callable[[EnvironmentConfig, int], VectorEnvironment]


def make_environments(config: EnvironmentConfig, num_envs: int) -> VectorEnvironment:
    """Return the vector environment that restarts finished environments in the same step."""
    return NPlusPlusVectorEnv(config, num_envs, autoreset_mode=AutoresetMode.SAME_STEP)


def observation_shapes(envs: VectorEnvironment) -> dict[str, tuple[int, ...]]:
    """Return the shape of each observation of one environment by name."""
    space = envs.single_observation_space
    assert isinstance(space, spaces.Dict)
    return {name: tuple(box.shape or ()) for name, box in space.spaces.items()}


def kilobytes_per_environment(envs: VectorEnvironment) -> float:
    """Return the memory that grows with the number of environments, per environment, in KB (1,024 bytes)."""
    return envs.memory().bytes_where(shared=False) / envs.num_envs / 1024


def finished_episodes(info: Mapping[str, Any]) -> tuple[np.ndarray, Mapping[str, np.ndarray]]:
    """Return the indices of the environments whose episode just ended, and the episode arrays of all.

    Args:
        info: the ``info`` of a vector step.
    """
    episode = info.get("episode")
    if episode is None:
        return np.empty(0, dtype=np.intp), {}
    mask = info["_episode"] if "_episode" in info else episode["_episode"]
    return np.flatnonzero(mask), episode
