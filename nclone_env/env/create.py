"""Environments from a configuration."""

from __future__ import annotations

from typing import Any

from nclone_env.config import EnvironmentConfig
from nclone_env.env.single import NPlusPlusEnv
from nclone_env.env.vector import NPlusPlusVectorEnv


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
