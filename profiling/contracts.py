"""Vector environments under each memory contract (``env.arrays.outputs``), as the benchmarks step them."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode

from nclone_env import Action, EnvironmentConfig, NPlusPlusVectorEnv

CONTRACTS = ("default", "out=")
LEVELS = ("first-steps", "jumps", "hazards")
STATE = ("game_state",)
SHORT_EPISODE = 244
"""Frames; at frame_skip 4 an odd number of steps, so that episodes end in both turns of the results beside ``out``."""


def touched_arrays(env: NPlusPlusVectorEnv) -> dict[str, np.ndarray]:
    """Return arrays for ``out`` with all pages committed."""
    return {name: np.full(space.shape, 1, space.dtype) for name, space in env.observation_space.spaces.items()}


def begin(
    contract: str, config: EnvironmentConfig, num_envs: int, **options: Any
) -> tuple[NPlusPlusVectorEnv, dict[str, Any]]:
    """Return a vector environment after its reset, and the arguments of its steps under the contract.

    Args:
        contract: one of ``CONTRACTS``.
        config: what to build.
        num_envs: number of environments.
        **options: further arguments of the environment.
    """
    env = NPlusPlusVectorEnv(config, num_envs, **options)
    arguments = {"out": touched_arrays(env)} if contract == "out=" else {}
    env.reset(seed=0, **arguments)
    return env, arguments


def random_actions(num_envs: int, rows: int = 64) -> list[np.ndarray]:
    """Return ``rows`` arrays of random actions, each (num_envs,) int64, to cycle through."""
    return list(np.random.default_rng(0).integers(0, len(Action), (rows, num_envs)))


def restart_ended(env: gymnasium.vector.VectorEnv, step: tuple[Any, ...], arguments: dict[str, Any]) -> None:
    """Reset the environments whose episode a step ended, if autoreset is disabled."""
    if env.metadata["autoreset_mode"] == AutoresetMode.DISABLED:
        ended = step[2] | step[3]
        if ended.any():
            env.reset(options={"reset_mask": ended}, **arguments)
