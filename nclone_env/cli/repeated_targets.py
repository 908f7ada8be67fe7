"""What ``nclone-env profile`` repeats besides steps: updates, resets, lifetimes, evaluations and whole trainings.

Each of them must leave no memory behind, so a leak shows as growth from one repetition to the next.
"""

from __future__ import annotations

import dataclasses
import itertools
import time
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import gettempdir
from typing import Any

import numpy as np

from nclone_env._files import temporary_beside
from nclone_env.cli.targets import EnvironmentTarget, ListSubject
from nclone_env.env.create import create_environment
from nclone_env.env.vector import NPlusPlusVectorEnv
from nclone_env.memory.growth import FLOORS, FREE_LISTS
from nclone_env.memory.recording import PhaseTime
from nclone_env.memory.subject import Subject
from nclone_env.memory_tree import MemoryNode
from nclone_env.train import TrainConfig, require_training_extra

_LIFETIME_STEPS = 5
_PHASE_UPDATES = 20
_MOST_UPDATES = 200  # that a run is made for; its learning curve grows beyond them


@dataclass(frozen=True)
class TrainingTarget:
    """The updates of a training run."""

    name = "training run"
    unit = "update"
    most_envs = 1024
    traced_floor = FLOORS["traced"]

    config: TrainConfig = field(default_factory=TrainConfig)
    """Configuration of the run; its output folder is not used."""

    def facts(self) -> tuple[tuple[str, str], ...]:
        """Return all options of the run that are not the default, and those that define its size."""
        default = TrainConfig()
        sizes = ("levels", "observations", "num_steps", "hidden_size", "num_minibatches", "update_epochs")
        fields = [item.name for item in dataclasses.fields(TrainConfig)]
        hidden = ("output", "name", "total_timesteps", "num_envs")
        shown = [
            name
            for name in fields
            if name in sizes or (name not in hidden and getattr(self.config, name) != getattr(default, name))
        ]
        return tuple((name.replace("_", " "), str(getattr(self.config, name))) for name in shown)

    def env_steps(self, num_envs: int) -> int:
        """Return the steps of a rollout."""
        return num_envs * self.config.num_steps

    def estimate(self, num_envs: int) -> MemoryNode:
        """Return the tree of a run."""
        require_training_extra()
        from nclone_env.train import estimate_bytes  # requires torch, an optional dependency

        tree: MemoryNode = estimate_bytes(self.config.replace(num_envs=num_envs))
        return tree

    def phases(self, num_envs: int, steps: int) -> tuple[PhaseTime, ...]:
        """Return the time of an update, of collecting its rollout and of learning from it."""
        with closing(TrainingSubject(self._sized(num_envs))) as subject:
            return subject.phases(min(steps, _PHASE_UPDATES))

    def make(self, num_envs: int) -> Subject:
        """Set up a run in a temporary folder and warm it up."""
        return TrainingSubject(self._sized(num_envs))

    def _sized(self, num_envs: int) -> TrainConfig:
        timesteps = num_envs * self.config.num_steps * _MOST_UPDATES
        return self.config.replace(num_envs=num_envs, total_timesteps=timesteps)


class TrainingSubject:
    """A training run in a temporary folder."""

    def __init__(self, config: TrainConfig):
        require_training_extra()
        from nclone_env.train.loop import advance  # requires torch, an optional dependency
        from nclone_env.train.runs.begin import begun_run

        self._advance = advance
        with ExitStack() as stack:
            temporary = stack.enter_context(temporary_beside(Path(gettempdir(), "profile"), folder=True))
            config = config.replace(output=temporary, name="profiled")
            self._run: Any = stack.enter_context(begun_run(config))
            self._stack = stack.pop_all()

    def step(self) -> None:
        """Collect a rollout and update the policy."""
        self._advance(self._run)

    def phases(self, updates: int) -> tuple[PhaseTime, ...]:
        """Make updates; return the medians of their time and of their parts."""
        whole = np.zeros(updates)
        for number in range(updates):
            start = time.perf_counter()
            self.step()
            whole[number] = time.perf_counter() - start
        rows = self._run.curve.rows[-updates:]
        parts = {name: np.median([row[f"{name}_seconds"] for row in rows]) for name in ("collect", "learn")}
        update = np.median(whole)
        found = {"whole update": update, **parts, "rest": update - sum(parts.values())}
        return tuple(PhaseTime(name, float(seconds)) for name, seconds in found.items())

    def memory(self) -> MemoryNode:
        """Return the tree of the run."""
        tree: MemoryNode = self._run.memory()
        return tree

    def close(self) -> None:
        """Close the run and remove its folder."""
        self._stack.close()


@dataclass(frozen=True)
class ResetTarget(EnvironmentTarget):
    """Resets of single environments over all levels in turn."""

    name = "resets of single environments over all levels"
    unit = "reset"
    most_envs = 256

    def env_steps(self, num_envs: int) -> int:
        """Return 0: a reset is not a step."""
        return 0

    def make(self, num_envs: int) -> Subject:
        """Make a list of environments."""
        return ResetSubject([create_environment(self.config) for _ in range(num_envs)], self.seed)


class ResetSubject(ListSubject):
    """Single environments that begin the next level again and again."""

    def __init__(self, envs: list[Any], seed: int):
        super().__init__(envs, seed)
        self._levels = itertools.cycle(range(len(envs[0].level_names)))

    def step(self) -> None:
        """Begin the next level in every environment and step it once."""
        level = next(self._levels)
        for env, action in zip(self._envs, self._actions.next()):
            env.reset(options={"level": level})
            env.step(action)


class Repetition:
    """A subject that owns nothing from one step to the next."""

    def memory(self) -> MemoryNode:
        """Return nothing."""
        return MemoryNode("all")

    def close(self) -> None:
        """Do nothing."""


@dataclass(frozen=True)
class LifetimeTarget(EnvironmentTarget):
    """Vector environments that are made, stepped and closed."""

    name = "vector environments made and closed"
    unit = "lifetime"
    traced_floor = FREE_LISTS

    def env_steps(self, num_envs: int) -> int:
        """Return 0: most of the time goes into making the environments."""
        return 0

    def make(self, num_envs: int) -> Subject:
        """Return what makes environments."""
        return LifetimeSubject(self.config, num_envs, self.seed)


class LifetimeSubject(Repetition):
    """Makes a vector environment, steps it a few times and closes it."""

    def __init__(self, config: Any, num_envs: int, seed: int):
        self._config, self._num_envs, self._seed = config, num_envs, seed

    def step(self) -> None:
        """Live once."""
        env = NPlusPlusVectorEnv(self._config, self._num_envs)
        env.reset(seed=self._seed)
        for _ in range(_LIFETIME_STEPS):
            env.step(env.action_space.sample())
        env.close()


@dataclass(frozen=True)
class EvaluationTarget(TrainingTarget):
    """Evaluations of a new policy."""

    name = "evaluations of a policy"
    unit = "evaluation"
    traced_floor = FREE_LISTS

    def env_steps(self, num_envs: int) -> int:
        """Return 0: the length of an evaluation depends on its episodes."""
        return 0

    def phases(self, num_envs: int, steps: int) -> tuple[PhaseTime, ...]:
        """Return nothing."""
        return ()

    def make(self, num_envs: int) -> Subject:
        """Make a policy."""
        return EvaluationSubject(self._sized(num_envs))


class EvaluationSubject(Repetition):
    """Evaluates a new policy on all levels, an episode in each environment."""

    def __init__(self, config: TrainConfig):
        require_training_extra()
        from nclone_env.train import evaluate, make_policy  # requires torch, an optional dependency
        from nclone_env.train.collect.environments import make_environments, observation_shapes

        self._evaluate, self._environment, self._episodes = evaluate, config.evaluated_environment, config.num_envs
        with closing(make_environments(self._environment, 1)) as one:
            self._policy = make_policy(config, observation_shapes(one))

    def step(self) -> None:
        """Evaluate once."""
        self._evaluate(self._policy, self._environment, episodes_per_level=self._episodes)


@dataclass(frozen=True)
class TrainingsTarget(TrainingTarget):
    """Whole training runs, one after another in one process."""

    name = "whole training runs"
    unit = "training run"
    traced_floor = FREE_LISTS

    updates: int = 3
    """Updates of each run."""

    def env_steps(self, num_envs: int) -> int:
        """Return the steps of a run."""
        return super().env_steps(num_envs) * self.updates

    def phases(self, num_envs: int, steps: int) -> tuple[PhaseTime, ...]:
        """Return nothing."""
        return ()

    def make(self, num_envs: int) -> Subject:
        """Return what trains."""
        return TrainingsSubject(self._sized(num_envs), self.updates)


class TrainingsSubject(Repetition):
    """Sets up a run, makes some updates and closes it."""

    def __init__(self, config: TrainConfig, updates: int):
        self._config, self._updates = config, updates

    def step(self) -> None:
        """Train once."""
        run = TrainingSubject(self._config)
        for _ in range(self._updates):
            run.step()
        run.close()
