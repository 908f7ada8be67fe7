"""PPO training; the only subpackage that imports torch, and only in its modules.

The public names are imported from here, each on its first use: ``docs/reference/training.md`` describes them. The
folders hold their parts, in the order of the data flow: ``levels`` and ``network`` → ``collect`` → ``learn`` → ``runs``
→ ``reports``.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from nclone_env._faces import face
from nclone_env._optional import installation
from nclone_env.errors import MissingExtraError

if TYPE_CHECKING:  # the names below, for type checkers and the reference
    from nclone_env.train.collect.environments import VectorEnvironment, make_environments
    from nclone_env.train.collect.evaluate import LevelResult, evaluate
    from nclone_env.train.config import TrainConfig
    from nclone_env.train.hooks import Hooks
    from nclone_env.train.learn.cloning import Cloning, CloningSettings, clone
    from nclone_env.train.learn.demonstrations import demonstrate
    from nclone_env.train.learn.episode_data import EpisodeData
    from nclone_env.train.learn.trajectories import Intake, TrajectoryBuffer
    from nclone_env.train.levels.curriculum import LevelCurriculum
    from nclone_env.train.levels.starts import StartStates, start_states
    from nclone_env.train.loop import TrainResult, train
    from nclone_env.train.policy import ActorCritic, make_policy
    from nclone_env.train.puffer import NPlusPlusPufferEnv
    from nclone_env.train.ranks import Ranks, joined_ranks
    from nclone_env.train.runs.checkpoint import load_checkpoint, load_policy, restore_configs, restore_policy
    from nclone_env.train.runs.estimate import estimate_bytes
    from nclone_env.train.sb3 import NPlusPlusVecEnv

__all__ = [
    "ActorCritic",
    "Cloning",
    "CloningSettings",
    "EpisodeData",
    "Hooks",
    "Intake",
    "LevelCurriculum",
    "LevelResult",
    "NPlusPlusPufferEnv",
    "NPlusPlusVecEnv",
    "Ranks",
    "StartStates",
    "TrainConfig",
    "TrainResult",
    "TrajectoryBuffer",
    "VectorEnvironment",
    "clone",
    "demonstrate",
    "estimate_bytes",
    "evaluate",
    "joined_ranks",
    "load_checkpoint",
    "load_policy",
    "make_environments",
    "make_policy",
    "require_training_extra",
    "restore_configs",
    "restore_policy",
    "start_states",
    "train",
]

__getattr__, __dir__ = face(
    __name__,
    {
        "nclone_env.train.collect.environments": ("VectorEnvironment", "make_environments"),
        "nclone_env.train.collect.evaluate": ("LevelResult", "evaluate"),
        "nclone_env.train.config": ("TrainConfig",),
        "nclone_env.train.hooks": ("Hooks",),
        "nclone_env.train.learn.cloning": ("Cloning", "CloningSettings", "clone"),
        "nclone_env.train.learn.demonstrations": ("demonstrate",),
        "nclone_env.train.learn.episode_data": ("EpisodeData",),
        "nclone_env.train.learn.trajectories": ("Intake", "TrajectoryBuffer"),
        "nclone_env.train.levels.curriculum": ("LevelCurriculum",),
        "nclone_env.train.levels.starts": ("StartStates", "start_states"),
        "nclone_env.train.loop": ("TrainResult", "train"),
        "nclone_env.train.policy": ("ActorCritic", "make_policy"),
        "nclone_env.train.puffer": ("NPlusPlusPufferEnv",),
        "nclone_env.train.ranks": ("Ranks", "joined_ranks"),
        "nclone_env.train.runs.checkpoint": ("load_checkpoint", "load_policy", "restore_configs", "restore_policy"),
        "nclone_env.train.runs.estimate": ("estimate_bytes",),
        "nclone_env.train.sb3": ("NPlusPlusVecEnv",),
    },
)


def require_training_extra() -> None:
    """Check that the optional dependencies of the trainer are installed.

    Raises:
        MissingExtraError: if one is missing; the message names the extra to install.
    """
    missing = [name for name in ("torch", "tensorboard", "matplotlib", "threadpoolctl") if find_spec(name) is None]
    if missing:
        raise MissingExtraError(f"training requires {', '.join(missing)}; {installation('train')}")
