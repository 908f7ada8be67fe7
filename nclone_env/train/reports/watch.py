"""Episodes of a policy, frame by frame, to be watched."""

import itertools
from collections.abc import Iterator
from contextlib import closing

import numpy as np

from nclone_env.config import EnvironmentConfig
from nclone_env.env import NPlusPlusEnv, playable_levels
from nclone_env.game import INPUT_OF_ACTION
from nclone_env.level import Level
from nclone_env.replay import WatchedRun
from nclone_env.train.collect.evaluate import LevelResult, Mode, chooser
from nclone_env.train.network.policy import ActorCritic


def policy_runs(
    policy: ActorCritic, environment: EnvironmentConfig, mode: Mode = "sampled", seed: int = 0, label: str = ""
) -> list[WatchedRun]:
    """Return an episode of a policy on each level, which is played as its inputs are taken.

    Args:
        label: begins the labels of the runs.
    """
    return [
        WatchedRun(level, episode_inputs(policy, environment, level, mode, seed), f"{label}{level.name}")
        for level in playable_levels(environment).levels
    ]


def episode_inputs(
    policy: ActorCritic, environment: EnvironmentConfig, level: Level, mode: Mode, seed: int
) -> Iterator[int]:
    """Play an episode on a level; yield the input byte of each frame."""
    config = environment.replace(levels=(level,), mirrored=False, render_mode=None)
    choose = chooser(policy, mode, 1, seed)
    with closing(NPlusPlusEnv(config)) as env:
        observation, _ = env.reset(seed=seed)
        for step in itertools.count():
            batch = {name: np.asarray(array)[None] for name, array in observation.items()}
            action = int(choose(batch, np.ones(1, np.bool_), step)[0])
            observation, _, terminated, truncated, info = env.step(action)
            yield from (INPUT_OF_ACTION[action],) * info["frames"]
            if terminated or truncated:
                break


def evaluated_run(episode: LevelResult, environment: EnvironmentConfig) -> WatchedRun:
    """Return an evaluated episode as a run."""
    (level, *_) = (level for level in playable_levels(environment).levels if level.name == episode.level)
    return WatchedRun(level, episode.inputs(environment).tolist())
