"""Environments from a configuration, and their registration with Gymnasium."""

from __future__ import annotations

from typing import Any

import gymnasium

from nclone_env.config import EnvironmentConfig
from nclone_env.env.single import NPlusPlusEnv
from nclone_env.env.vector import NPlusPlusVectorEnv

ENVIRONMENT_ID = "nclone/NPlusPlus-v0"

_STATE = {"observations": "game_state", "dict_observations": False}
_FRAMES = {"player_frame_size": 84, "player_frame_scale": 4.0}
_PIXELS = {"observations": "player_frame", "dict_observations": False, "observation": {"frame_stack": 4}}

REGISTERED: dict[str, dict[str, Any]] = {
    ENVIRONMENT_ID: {},
    "nclone/NPlusPlus-State-v0": _STATE,
    "nclone/NPlusPlus-Pixels-v0": {**_PIXELS, "render": _FRAMES},
    "nclone/NPlusPlus-FirstSteps-v0": {**_STATE, "levels": "first-steps", "max_frames": 1200},
    "nclone/NPlusPlus-Jumps-v0": {**_STATE, "levels": "jumps", "max_frames": 1200},
    "nclone/NPlusPlus-Hazards-v0": {**_STATE, "levels": "hazards", "max_frames": 1200},
}
"""The registered ids, and the fields of the configuration in which each differs from the defaults."""


def create_environment(config: EnvironmentConfig | None = None, **options: Any) -> NPlusPlusEnv:
    """Return a single environment; the defaults of :class:`EnvironmentConfig` if ``config`` is None.

    Args:
        config: configuration.
        **options: the other arguments of :class:`NPlusPlusEnv`, including fields of the configuration.
    """
    return NPlusPlusEnv(config, **options)


def create_vector_environment(
    config: EnvironmentConfig | None = None, num_envs: int = 1, **options: Any
) -> NPlusPlusVectorEnv:
    """Return ``num_envs`` environments in one process.

    Args:
        config: configuration; the defaults of :class:`EnvironmentConfig` if None.
        num_envs: number of environments.
        **options: the other arguments of :class:`NPlusPlusVectorEnv`: ``autoreset_mode``, ``num_threads``, ``copy``,
            ``ring``, ``num_groups``, ``gymnasium_infos``, ``reward_function``, and fields of the configuration.
    """
    return NPlusPlusVectorEnv(config, num_envs, **options)


def register() -> None:
    """Register the ids of ``REGISTERED`` for ``gymnasium.make`` and ``gymnasium.make_vec``."""
    for name, fields in REGISTERED.items():
        if name not in gymnasium.registry:
            gymnasium.register(
                id=name,
                entry_point="nclone_env.env.single:NPlusPlusEnv",
                vector_entry_point="nclone_env.env.vector:NPlusPlusVectorEnv",
                kwargs=fields,
            )
