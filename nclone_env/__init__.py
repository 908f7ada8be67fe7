"""N++ as a bit-exact, memory-lean Gymnasium environment for reinforcement learning.

Importing the package registers ``nclone/NPlusPlus-v0`` and its variants with Gymnasium. This needs Gymnasium alone: all
else is imported when a public name is first used. Kernels are compiled on first use, or ahead of time by
``nclone-env warmup``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nclone_env._faces import face
from nclone_env.env.ids import register

if TYPE_CHECKING:  # the names below, for type checkers and the reference
    from nclone_env.actions import Action
    from nclone_env.config import EnvironmentConfig, ObservationConfig, RenderConfig, RewardConfig
    from nclone_env.env.create import create_environment, create_vector_environment
    from nclone_env.env.single import NPlusPlusEnv
    from nclone_env.env.vector import NPlusPlusVectorEnv
    from nclone_env.errors import NcloneError
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

__getattr__, __dir__ = face(
    __name__,
    {
        "nclone_env.actions": ("Action",),
        "nclone_env.config": ("EnvironmentConfig", "ObservationConfig", "RenderConfig", "RewardConfig"),
        "nclone_env.env.create": ("create_environment", "create_vector_environment"),
        "nclone_env.env.single": ("NPlusPlusEnv",),
        "nclone_env.env.vector": ("NPlusPlusVectorEnv",),
        "nclone_env.errors": ("NcloneError",),
        "nclone_env.level.level": ("Level",),
        "nclone_env.level.library": ("level_library",),
        "nclone_env.level.load": ("load_level",),
        "nclone_env.memory_tree": ("MemoryNode",),
        "nclone_env.sim.simulate": ("Trajectory", "simulate"),
    },
)

register()
