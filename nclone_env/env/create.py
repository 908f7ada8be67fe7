"""Environments from a configuration, and their registration with Gymnasium."""

from __future__ import annotations

import gymnasium
from gymnasium.vector import AutoresetMode

from nclone_env.config import EnvironmentConfig
from nclone_env.env.single import NPlusPlusEnv
from nclone_env.env.vector import NPlusPlusVectorEnv

ENVIRONMENT_ID = "nclone/NPlusPlus-v0"


def create_environment(config: EnvironmentConfig | None = None) -> NPlusPlusEnv:
    """Return a single environment; the defaults of :class:`EnvironmentConfig` if ``config`` is None."""
    return NPlusPlusEnv(config)


def create_vector_environment(
    config: EnvironmentConfig | None = None,
    num_envs: int = 1,
    *,
    autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
    num_threads: int | None = None,
) -> NPlusPlusVectorEnv:
    """Return ``num_envs`` environments in one process.

    Args:
        config: what to build; the defaults of :class:`EnvironmentConfig` if None.
        num_envs: number of environments.
        autoreset_mode: when finished environments begin anew.
        num_threads: threads that share the work; by default one per core if there is enough of it.
    """
    return NPlusPlusVectorEnv(config, num_envs, autoreset_mode=autoreset_mode, num_threads=num_threads)


def register() -> None:
    """Make ``nclone/NPlusPlus-v0`` known to ``gymnasium.make`` and ``gymnasium.make_vec``."""
    if ENVIRONMENT_ID not in gymnasium.registry:
        gymnasium.register(
            id=ENVIRONMENT_ID,
            entry_point="nclone_env.env.single:NPlusPlusEnv",
            vector_entry_point="nclone_env.env.vector:NPlusPlusVectorEnv",
        )
