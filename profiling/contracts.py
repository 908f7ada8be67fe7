"""Vector environments under each contract of memory (``env.outputs``), as the benchmarks play them."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any, TypeVar

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode

from nclone_env import EnvironmentConfig, NPlusPlusVectorEnv
from nclone_env.actions import NUM_ACTIONS

T = TypeVar("T")
CONTRACTS = ("default", "out=", "copy=False")
LEVELS = ("first-steps", "jumps", "hazards")
STATE = ("game_state",)
SHORT_EPISODE = 244
"""Frames; at frame_skip 4 an odd number of steps, so that episodes end in both batches of a ring of two."""


def touched_arrays(env: NPlusPlusVectorEnv) -> dict[str, np.ndarray]:
    """Return arrays for ``out`` whose pages have been touched."""
    return {name: np.full(space.shape, 1, space.dtype) for name, space in env.observation_space.spaces.items()}


def begin(
    contract: str, config: EnvironmentConfig, num_envs: int, **options: Any
) -> tuple[NPlusPlusVectorEnv, dict[str, Any]]:
    """Return a vector environment after its reset, and the arguments that its steps get by the contract.

    Args:
        contract: one of ``CONTRACTS``.
        config: what to build.
        num_envs: number of environments.
        **options: further arguments of the environment.
    """
    env = NPlusPlusVectorEnv(config, num_envs, copy=contract != "copy=False", **options)
    arguments = {"out": touched_arrays(env)} if contract == "out=" else {}
    env.reset(seed=0, **arguments)
    return env, arguments


def random_actions(num_envs: int, rows: int = 64) -> list[np.ndarray]:
    """Return actions, each (num_envs,), to be played again and again."""
    return list(np.random.default_rng(0).integers(0, NUM_ACTIONS, (rows, num_envs)))


def restart_ended(env: gymnasium.vector.VectorEnv, step: tuple[Any, ...], arguments: dict[str, Any]) -> None:
    """Begin new episodes where a step ended them, if that is left to the caller."""
    if env.metadata["autoreset_mode"] == AutoresetMode.DISABLED:
        ended = step[2] | step[3]
        if ended.any():
            env.reset(options={"reset_mask": ended}, **arguments)


def in_fresh_process(function: Callable[..., T], *arguments: Any) -> T:
    """Return what a function returns in a new interpreter."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as executor:
        return executor.submit(function, *arguments).result()
