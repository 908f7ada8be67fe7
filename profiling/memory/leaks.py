"""Do resets, environments, evaluations and training runs leave memory behind? Exits with status 1 if one does.

Each is repeated in a process of its own; memory that grows from one repetition to the next was left behind.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass

import tyro

from nclone_env import EnvironmentConfig, NPlusPlusVectorEnv, create_environment
from nclone_env.memory import MemoryNode, Target
from nclone_env.profiler.environments import RandomActions
from nclone_env.profiler.training import TrainingSubject
from nclone_env.train.config import TrainConfig
from profiling.measure import describe, in_fresh_process
from profiling.memory.leak_verdicts import verdict

TRAINING = TrainConfig.of(num_envs=32)
_LIFETIME_STEPS = 5
_UPDATES = 3  # of a training run
Repeat = Callable[[], object]


def resets(num_envs: int) -> Repeat:
    """Return what begins the next level in single environments and steps each once."""
    envs, actions = [create_environment(EnvironmentConfig()) for _ in range(num_envs)], RandomActions(num_envs, 0)
    levels = itertools.cycle(range(len(envs[0].unwrapped.level_names)))

    def step() -> None:
        level = next(levels)
        for env, action in zip(envs, actions.next()):
            env.reset(options={"level": level})
            env.step(action)

    return step


def lifetimes(num_envs: int) -> Repeat:
    """Return what makes a vector environment, steps it a few times and closes it."""

    def step() -> None:
        with closing(NPlusPlusVectorEnv(num_envs=num_envs)) as env:
            env.reset(seed=0)
            for _ in range(_LIFETIME_STEPS):
                env.step(env.action_space.sample())

    return step


def evaluations(num_envs: int) -> Repeat:
    """Return what evaluates a new policy, an episode on each level in every environment."""
    from nclone_env.train import evaluate, make_environments, make_policy
    from nclone_env.train.collect.environments import observation_shapes

    environment = TRAINING.evaluated_environment
    with closing(make_environments(environment, 1)) as one:
        policy = make_policy(TRAINING, observation_shapes(one))
    return lambda: evaluate(policy, environment, episodes_per_level=num_envs)


def trainings(num_envs: int) -> Repeat:
    """Return what sets up a training run, makes some updates and closes it."""

    def step() -> None:
        with closing(TrainingSubject(TRAINING)) as run:
            for _ in range(_UPDATES):
                run.step()

    return step


@dataclass(frozen=True)
class RepeatedTarget(Target):
    """Something that is repeated, as the two passes of the verdict need it."""

    begin: Callable[[int], Repeat]
    makes_objects: bool
    name = "repetitions"
    unit = "repetition"

    def make(self, num_envs: int) -> Repeated:
        """Make what is repeated."""
        return Repeated(self.begin(num_envs))


class Repeated:
    """A subject that owns nothing from one step to the next."""

    def __init__(self, step: Repeat):
        self.step = step

    def memory(self) -> MemoryNode:
        """Return nothing."""
        return MemoryNode("all")

    def close(self) -> None:
        """Do nothing."""


CHECKS = {
    resets: (False, 16, 400),
    lifetimes: (True, 16, 60),
    evaluations: (True, TRAINING.num_envs, 30),
    trainings: (True, TRAINING.num_envs, 20),
}
"""Whether it makes objects of all kinds, number of environments, and repetitions of each."""


def main(only: str = "", steps: int | None = None) -> int:
    """Print a line for each; return the exit status.

    Args:
        only: only those whose name contains this text.
        steps: repetitions; by default enough for a verdict.
    """
    print(describe())
    growing = 0
    for begin, (makes_objects, num_envs, enough) in CHECKS.items():
        if only in begin.__name__:
            found, rates = in_fresh_process(verdict, RepeatedTarget(begin, makes_objects), num_envs, steps or enough)
            growing += found == "growing"
            print(f"  {begin.__name__:<12} {found:<8} {rates}", flush=True)
    return int(growing > 0)


if __name__ == "__main__":
    sys.exit(tyro.cli(main, description=__doc__))
