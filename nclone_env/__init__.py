"""N++ as a bit-exact, memory-lean Gymnasium environment for reinforcement learning.

Importing the package registers ``nclone/NPlusPlus-v0`` with Gymnasium. It imports neither torch nor OpenCV,
matplotlib or pygame; kernels are compiled on first use (``nclone-env warmup`` does it ahead).
"""

from __future__ import annotations

from nclone_env.config import EnvironmentConfig, ObservationConfig, RenderConfig, RewardConfig
from nclone_env.env.actions import Action
from nclone_env.env.create import create_environment, create_vector_environment, register
from nclone_env.env.single import NPlusPlusEnv
from nclone_env.env.vector import NPlusPlusVectorEnv
from nclone_env.errors import NcloneError, NcloneWarning
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
    "NcloneWarning",
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

register()
