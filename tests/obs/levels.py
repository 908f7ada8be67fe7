"""The built-in levels, compiled levels and random play, for the tests of the observations."""

from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from nclone_env import Level, NPlusPlusVectorEnv
from nclone_env.level.compile import LevelArrays, compile_level
from profiling.measure import basic_sets

from ..env.bases import choices

BUILT_IN = tuple(basic_sets())


@lru_cache
def compiled(level: Level) -> LevelArrays:
    """Return the arrays of a level, computed once."""
    return compile_level(level)


def run(envs: NPlusPlusVectorEnv, steps: int, seed: int = 1) -> Iterator[dict[str, np.ndarray]]:
    """Play at random, each action six times, and yield the observations."""
    yield envs.reset(seed=seed)[0]
    for actions in choices(steps // 6, envs.num_envs).repeat(6, axis=0):
        yield envs.step(actions)[0]
