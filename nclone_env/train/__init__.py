"""PPO training; the only subpackage that imports torch, and only in its modules.

The public names are imported from here, each on its first use: ``docs/reference/training.md`` describes them. The
folders hold their parts, in the order of the data flow: ``levels`` and ``network`` → ``collect`` → ``learn`` → ``runs``
→ ``reports``.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from nclone_env._optional import installation
from nclone_env.errors import MissingExtraError

if TYPE_CHECKING:  # the same names as in _HOMES, for type checkers and the reference
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

_HOMES = {
    "ActorCritic": "policy",
    "Cloning": "learn.cloning",
    "CloningSettings": "learn.cloning",
    "EpisodeData": "learn.episode_data",
    "Hooks": "hooks",
    "Intake": "learn.trajectories",
    "LevelCurriculum": "levels.curriculum",
    "LevelResult": "collect.evaluate",
    "NPlusPlusPufferEnv": "puffer",
    "NPlusPlusVecEnv": "sb3",
    "Ranks": "ranks",
    "StartStates": "levels.starts",
    "TrainConfig": "config",
    "TrainResult": "loop",
    "TrajectoryBuffer": "learn.trajectories",
    "VectorEnvironment": "collect.environments",
    "clone": "learn.cloning",
    "demonstrate": "learn.demonstrations",
    "estimate_bytes": "runs.estimate",
    "evaluate": "collect.evaluate",
    "joined_ranks": "ranks",
    "load_checkpoint": "runs.checkpoint",
    "load_policy": "runs.checkpoint",
    "make_environments": "collect.environments",
    "make_policy": "policy",
    "restore_configs": "runs.checkpoint",
    "restore_policy": "runs.checkpoint",
    "start_states": "levels.starts",
    "train": "loop",
}
"""The module of each public name, which is imported on first use."""


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


def require_training_extra() -> None:
    """Check that the optional dependencies of the trainer are installed.

    Raises:
        MissingExtraError: if one is missing; the message names the extra to install.
    """
    missing = [name for name in ("torch", "tensorboard", "matplotlib", "threadpoolctl") if find_spec(name) is None]
    if missing:
        raise MissingExtraError(f"training requires {', '.join(missing)}; {installation('train')}")
