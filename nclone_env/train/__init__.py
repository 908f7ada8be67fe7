"""PPO training; the only subpackage that imports torch, and only in its modules.

The public names are imported from here, each on its first use: ``docs/reference/training.md`` describes them. The
folders hold their parts, in the order of the data flow: ``levels`` → ``policies`` → ``collect`` → ``learn`` →
``runs`` → ``reports``, and ``adapters`` for other libraries.
"""

import sys
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any

from nclone_env._faces import face
from nclone_env.errors import MissingExtraError, installation

if TYPE_CHECKING:  # the public names, each imported on first use
    from nclone_env.train.adapters.puffer import NPlusPlusPufferEnv as NPlusPlusPufferEnv
    from nclone_env.train.adapters.sb3 import NPlusPlusVecEnv as NPlusPlusVecEnv
    from nclone_env.train.collect.environments import VectorEnvironment as VectorEnvironment
    from nclone_env.train.collect.environments import make_environments as make_environments
    from nclone_env.train.collect.evaluate import LevelResult as LevelResult
    from nclone_env.train.collect.evaluate import evaluate as evaluate
    from nclone_env.train.config import CloneConfig as CloneConfig
    from nclone_env.train.config import EvaluationConfig as EvaluationConfig
    from nclone_env.train.config import PPOConfig as PPOConfig
    from nclone_env.train.config import TrainConfig as TrainConfig
    from nclone_env.train.hooks import Hooks as Hooks
    from nclone_env.train.learn.cloning import Cloning as Cloning
    from nclone_env.train.learn.cloning import CloningSettings as CloningSettings
    from nclone_env.train.learn.cloning import clone as clone
    from nclone_env.train.learn.demonstrations import demonstrate as demonstrate
    from nclone_env.train.learn.trajectories import EpisodeData as EpisodeData
    from nclone_env.train.learn.trajectories import Intake as Intake
    from nclone_env.train.learn.trajectories import TrajectoryBuffer as TrajectoryBuffer
    from nclone_env.train.levels.curriculum import LevelCurriculum as LevelCurriculum
    from nclone_env.train.levels.solutions import StartStates as StartStates
    from nclone_env.train.levels.solutions import start_states as start_states
    from nclone_env.train.loop import TrainResult as TrainResult
    from nclone_env.train.loop import train as train
    from nclone_env.train.policies.checkpoint import load_checkpoint as load_checkpoint
    from nclone_env.train.policies.checkpoint import restore_config as restore_config
    from nclone_env.train.policies.checkpoint import restore_policy as restore_policy
    from nclone_env.train.policies.network import ActorCritic as ActorCritic
    from nclone_env.train.policies.network import make_policy as make_policy
    from nclone_env.train.policies.policy import Policy as Policy
    from nclone_env.train.policies.policy import load_policy as load_policy
    from nclone_env.train.ranks import Ranks as Ranks
    from nclone_env.train.ranks import joined_ranks as joined_ranks
    from nclone_env.train.runs.estimate import estimate_bytes as estimate_bytes
    from nclone_env.train.runs.record import Recipe as Recipe
    from nclone_env.train.runs.record import read_recipe as read_recipe

if TYPE_CHECKING:  # for other rooms
    from nclone_env.train.adapters.sb3 import load_model, model_runs
    from nclone_env.train.collect.evaluate import policy_runs
    from nclone_env.train.hooks import SILENT
    from nclone_env.train.learn.demonstrations import Demonstration, held_actions, read_demonstrations
    from nclone_env.train.levels.solutions import recorded_solutions, winning_inputs
    from nclone_env.train.levels.sources import level_digests
    from nclone_env.train.loop import advance, compile_kernels
    from nclone_env.train.policies.acting import one_thread_per_call
    from nclone_env.train.policies.checkpoint import resumed_config
    from nclone_env.train.policies.files import (
        LATEST,
        bundled_names,
        is_named,
        other_kind,
        policy_card,
        policy_file,
        push_policy,
    )
    from nclone_env.train.reports.plots import compare_runs, report_run
    from nclone_env.train.reports.report import evaluate_and_report
    from nclone_env.train.reports.statistics import as_numbers, interquartile_mean, interval, training_seconds
    from nclone_env.train.runs.begin import begun_run, compile_learner
    from nclone_env.train.runs.estimate import check_memory
    from nclone_env.train.runs.recipes import DEFAULTS, purpose, recipe_for, recipe_names

_load, __dir__ = face(__name__)


def __getattr__(name: str) -> Any:
    """Import a public name."""
    try:
        return _load(name)
    except ModuleNotFoundError as error:
        if str(error.name).startswith("nclone_env"):
            raise
        raise MissingExtraError(f"{name} requires {error.name}; {installation('train')}") from error


class _Callable(ModuleType):
    """This module: ``nclone_env.train(config)`` calls the function of its name."""

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Train; see ``nclone_env.train.train``."""
        return self.train(*args, **options)


sys.modules[__name__].__class__ = _Callable


def require_training_extra() -> None:
    """Check that the optional dependencies of the trainer are installed."""
    missing = [name for name in ("torch", "tensorboard", "matplotlib", "threadpoolctl") if find_spec(name) is None]
    if missing:
        raise MissingExtraError(f"training requires {', '.join(missing)}; {installation('train')}")
