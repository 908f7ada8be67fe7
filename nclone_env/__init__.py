"""N++ as a bit-exact, memory-lean Gymnasium environment for reinforcement learning.

Importing the package registers ``nclone/NPlusPlus-v0`` and its variants with Gymnasium. This needs Gymnasium alone: all
else is imported when a public name is first used. Kernels are compiled on first use, or ahead of time by
``nclone-env warmup``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from nclone_env.env.ids import register
from nclone_env.errors import NcloneError

if TYPE_CHECKING:  # the same names as in _HOMES, for type checkers and the reference
    from nclone_env.actions import Action
    from nclone_env.config import EnvironmentConfig, ObservationConfig, RenderConfig, RewardConfig
    from nclone_env.env.create import create_environment, create_vector_environment
    from nclone_env.env.single import NPlusPlusEnv
    from nclone_env.env.vector import NPlusPlusVectorEnv
    from nclone_env.level.level import Level
    from nclone_env.level.library import level_library
    from nclone_env.level.load import load_level
    from nclone_env.memory_tree import MemoryNode
    from nclone_env.sim.simulate import Trajectory, simulate

__version__ = "0.1.0"

__all__ = [
    "Action",
    "EnvironmentConfig",
    "Level",
    "MemoryNode",
    "NPlusPlusEnv",
    "NPlusPlusVectorEnv",
    "NcloneError",
    "ObservationConfig",
    "RenderConfig",
    "RewardConfig",
    "Trajectory",
    "create_environment",
    "create_vector_environment",
    "level_library",
    "load_level",
    "simulate",
]

_HOMES = {
    "Action": "actions",
    "EnvironmentConfig": "config",
    "Level": "level.level",
    "MemoryNode": "memory_tree",
    "NPlusPlusEnv": "env.single",
    "NPlusPlusVectorEnv": "env.vector",
    "ObservationConfig": "config",
    "RenderConfig": "config",
    "RewardConfig": "config",
    "Trajectory": "sim.simulate",
    "create_environment": "env.create",
    "create_vector_environment": "env.create",
    "level_library": "level.library",
    "load_level": "level.load",
    "simulate": "sim.simulate",
}
"""The module of each public name that is imported on first use."""


def __getattr__(name: str) -> Any:
    """Import a public name on its first use.

    Raises:
        AttributeError: if there is no such name.
    """
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


register()
