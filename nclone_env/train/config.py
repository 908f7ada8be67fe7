"""Configuration of a training run: a tree of frozen dataclasses, from which the command line is generated."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from nclone_env.config import EnvironmentConfig
from nclone_env.errors import ConfigError, Within, check_value, plain, shortened
from nclone_env.options import as_text, check, from_flat, group, leaves, option, rejects_unknown

CurriculumName = Literal["even", "progress"]
DeviceName = Literal["auto", "cpu", "cuda"]
TrackerName = Literal["tensorboard", "wandb", "none"]

_LONGEST_NAME = 100  # characters of the levels in the name of a run folder
_Count = Annotated[int, Within(1, 65536)]
_Interval = Annotated[int, Within(1, 10**9)]
_Seed = Annotated[int, Within(0, 2**31 - 1)]


_MOST_TRIED, _MOST_LISTED = 4096, 16
"""Divisors named in a message."""


@rejects_unknown
@dataclass(frozen=True)
class EvaluationConfig:
    """Levels that are held out of training, and how often success on them is measured."""

    held_out: Annotated[float, Within(0, 0.99)] = option(0.0, fixed="run")
    """Share of the levels to hold out: they are not trained on, and success on them is measured; 0: none."""
    split_seed: _Seed = option(0, fixed="run")
    """Seed that selects the held-out levels."""
    interval: Annotated[int, Within(0, 10**9)] = option(200, key="evaluation_interval")
    """Updates between evaluations on the held-out levels, besides the last update; 0: no evaluations."""
    attempts: Annotated[int, Within(1, 10**6)] = option(16, key="evaluation_attempts")
    """Episodes of each held-out level in an evaluation."""

    def __post_init__(self) -> None:
        """Reject values out of range."""
        check(self)


@rejects_unknown
@dataclass(frozen=True)
class PPOConfig:
    """Settings of proximal policy optimisation; the discount factor is ``reward.gamma`` of the environment."""

    update_epochs: Annotated[int, Within(1, 100)] = 4
    """Epochs over the rollout per update."""
    num_minibatches: _Count = 8
    """Minibatches per epoch; must divide num_envs * num_steps."""
    learning_rate: Annotated[float, Within(0, 1)] = 1.5e-3
    """Initial learning rate of the Adam optimiser."""
    entropy_coef: Annotated[float, Within(0, 10)] = 0.02
    """Initial coefficient of the entropy bonus."""
    anneal: bool = True
    """Anneal the learning rate and the coefficient of the entropy bonus linearly to 0 at total_timesteps."""
    gae_lambda: Annotated[float, Within(0, 1)] = 0.95
    """The lambda of generalised advantage estimation."""
    clip_coef: Annotated[float, Within(1e-6, 1)] = 0.2
    """The epsilon of the clipped surrogate objective."""
    value_coef: Annotated[float, Within(0, 100)] = 0.5
    """Coefficient of the value loss."""
    max_grad_norm: Annotated[float, Within(1e-6, 1e6)] = 0.5
    """Maximum norm of the gradient; larger gradients are scaled down."""

    def __post_init__(self) -> None:
        """Reject values out of range."""
        check(self)


@rejects_unknown
@dataclass(frozen=True)
class CloneConfig:
    """Demonstrations to clone before training."""

    warm_start: tuple[str, ...] = option((), fixed="run")
    """Recordings, built-in levels whose known solutions are played, or planned for solutions by the planner; the policy
    begins as a clone of them."""
    kl_coef: Annotated[float, Within(0, 100)] = option(0.3, key="clone_kl_coef")
    """Initial coefficient of the KL divergence of the policy from that clone; 0 does without it."""
    kl_steps: Annotated[int, Within(1, 10**12)] = option(500_000, key="clone_kl_steps")
    """Timesteps over which that coefficient decreases linearly to 0."""

    def __post_init__(self) -> None:
        """Reject values out of range."""
        check(self)


@rejects_unknown
@dataclass(frozen=True)
class TrainConfig:
    """All settings of a training run."""

    _given: ClassVar[frozenset[str] | None] = None  # names that ``of`` and then ``replace`` were given; None: all

    environment: EnvironmentConfig = group(EnvironmentConfig.for_parallel_training)
    """The environments trained in. Of the observations, ``action_mask`` is no input but keeps redundant actions from
    being sampled. A stack is gathered from observations that are stored once."""
    evaluation: EvaluationConfig = group(EvaluationConfig)
    """Held-out levels."""
    curriculum: CurriculumName = option("even", fixed="run")
    """Levels played: even, as many environments for each (if there are enough, else drawn evenly for each episode);
    progress, most episodes on those that are being learned."""
    starts: tuple[str, ...] = option((), fixed="run")
    """Recordings of solutions, known or planned (by the planner, before the run): episodes begin along them, at first
    near the exit, then ever earlier."""

    seed: _Seed = 0
    """Seed of the initial policy, sampled actions, minibatch order and environments."""
    num_envs: Annotated[int, Within(1, 1048576)] = option(256, fixed="run")
    """Number of parallel environments."""
    num_steps: _Count = option(64, fixed="run")
    """Steps per environment in each rollout."""
    total_timesteps: Annotated[int, Within(1, 10**12)] = 2_000_000
    """Total environment steps of the run, over all environments."""
    stop_at_success: Annotated[float, Within(0, 1)] | None = None
    """Stop early at this recent success rate on every level; None trains to the end, which helps argmax."""

    hidden_size: Annotated[int, Within(1, 4096)] = option(64, fixed="policy")
    """Units of each of the two hidden layers."""
    recurrent_size: Annotated[int, Within(0, 4096)] = option(0, fixed="policy")
    """Units of a recurrent layer (GRU) in front of the hidden layers: a memory of the episode; 0: none."""
    shared_trunk: bool = option(True, fixed="policy")
    """Share the hidden layers between policy and value function; otherwise each has its own."""
    learner: str = option("ppo", fixed="run")
    """Algorithm by its name: one of ``train.learn.learners``, or of the entry points ``nclone_env.learners``."""
    ppo: PPOConfig = group(PPOConfig)
    """Settings of the algorithm."""
    clone: CloneConfig = group(CloneConfig)
    """Demonstrations to begin with."""

    device: DeviceName = "cpu"
    """Where environments, policy and updates are computed. Auto: a GPU if there is one, except for policies without
    pictures, which the hand-written network computes faster on the processor."""
    num_threads: Annotated[int, Within(1, 1024)] | None = None
    """Threads that collect and learn; by default one per core. The results do not depend on it."""
    output: Path = Path("runs")
    """Folder that contains the run folders."""
    name: str = ""
    """Name of the run folder. If empty: from levels and seed, numbered from 2 on where that holds another run."""
    checkpoint_interval: _Interval = 100
    """Updates between checkpoints."""
    track: TrackerName = "tensorboard"
    """Program that shows learning curve and options of the run: TensorBoard, Weights & Biases, or none."""

    def __post_init__(self) -> None:
        """Normalise sequences and paths and validate every field."""
        check(self)
        levels = tuple(map(as_text, self.environment.levels))
        for level in levels:
            check_value("levels", str, level)
        if levels != self.environment.levels:
            object.__setattr__(self, "environment", self.environment.replace(levels=levels))
        if self.batch_size % self.ppo.num_minibatches:
            raise ConfigError(
                f"num_minibatches: expected a divisor of num_envs * num_steps = {self.batch_size}, "
                f"got {self.ppo.num_minibatches}; choose one of {_listed_divisors(self.batch_size)}"
            )
        self._check_recurrence()
        if Path(self.name).name != self.name or self.name == ".." or "\0" in self.name:
            raise ConfigError(
                f"name: expected a folder name without separators, neither . nor .., got {shortened(self.name)}"
            )
        if "graph" in self.environment.observations:
            raise ConfigError(
                "observations: expected none that varies in size between levels, got 'graph'; leave it out"
            )
        if self.environment.observations == ("action_mask",):
            raise ConfigError("observations: expected something to see beside action_mask; add game_state")

    def _check_recurrence(self) -> None:
        """Reject what a policy with memory cannot be trained with."""
        if self.recurrent_size and self.num_envs % self.ppo.num_minibatches:
            raise ConfigError(
                f"num_minibatches: expected a divisor of num_envs = {self.num_envs} with recurrent_size, as "
                f"minibatches consist of whole sequences, got {self.ppo.num_minibatches}; choose one of "
                f"{_listed_divisors(self.num_envs)}"
            )
        if self.recurrent_size and self.clone.warm_start:
            raise ConfigError(
                "recurrent_size: expected 0 with warm_start, as single steps are cloned, got "
                f"{self.recurrent_size}; use starts=known, which begins episodes along the same solutions"
            )

    @classmethod
    def of(cls, **options: Any) -> TrainConfig:
        """Return the configuration with some options, named as on the command line: ``of(levels="jumps", seed=1)``.

        Raises:
            ConfigError: if there is no such option, or a value is invalid.
        """
        config = from_flat(cls(), options, "train_config")
        object.__setattr__(config, "_given", frozenset(options))
        return config

    def replace(self, **options: Any) -> TrainConfig:
        """Return a copy with other values of some options, named as on the command line.

        Raises:
            ConfigError: if there is no such option, or a value is invalid.
        """
        config = from_flat(self, options, "train_config")
        if self._given is not None:
            object.__setattr__(config, "_given", self._given.union(options))
        return config

    def continuing(self, run: TrainConfig) -> TrainConfig:
        """Return the configuration with which a run goes on: its own, but for the options that this one was given."""
        if self._given is None:
            return self
        names = {"output", "name", *self._given}
        given = (each for each in leaves(TrainConfig) if names & {each.key, each.field.metadata.get("alias")})
        return run.replace(**{each.key: each.value(self) for each in given})

    @property
    def evaluated_environment(self) -> EnvironmentConfig:
        """The environment that a policy is evaluated in: levels are as they are, not mirrored."""
        return self.environment.replace(mirrored=False)

    @property
    def frame_stack(self) -> int:
        """Observations of a stack as the policy sees it; 1: no stacks."""
        return self.environment.observation.frame_stack

    @property
    def unstacked_environment(self) -> EnvironmentConfig:
        """The environments of rollouts, without frame stacks: the rollout storage builds the stacks."""
        unstacked = dataclasses.replace(self.environment.observation, frame_stack=1)
        return self.environment.replace(observation=unstacked)

    @property
    def batch_size(self) -> int:
        """Steps per rollout over all environments."""
        return self.num_envs * self.num_steps

    @property
    def minibatch_size(self) -> int:
        """Steps per minibatch."""
        return self.batch_size // self.ppo.num_minibatches

    @property
    def keeps_clone(self) -> bool:
        """Whether the policy is kept close to the clone of a warm start."""
        return bool(self.clone.warm_start) and self.clone.kl_coef > 0

    @property
    def num_updates(self) -> int:
        """Number of updates of the run; the last rollout is completed."""
        return math.ceil(self.total_timesteps / self.batch_size)

    @property
    def run_folder(self) -> Path:
        """Output folder of this run, before ``train.runs.folder`` numbers it."""
        names = (plain(Path(level).name).replace("\\", "-") for level in self.environment.levels[:3])
        levels = "+".join(name or "level" for name in names)
        return self.output / (self.name or f"{levels[:_LONGEST_NAME]}-seed{self.seed}")


def _listed_divisors(number: int) -> str:
    """Return the divisors of a number for a message; of many, the smallest ones."""
    found = [divisor for divisor in range(1, min(number, _MOST_TRIED) + 1) if number % divisor == 0]
    return ", ".join(map(str, found[:_MOST_LISTED])) + (", ..." if len(found) > _MOST_LISTED else "")
