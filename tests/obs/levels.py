"""Levels and runs that the tests of the observations share."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from nclone_env import NPlusPlusVectorEnv
from nclone_env.level.catalog import level_sets
from nclone_env.level.raw import RawLevel

from ..env.bases import choices
from ..sim.levels import MOVING_RECORDS, moving

BUILT_IN = tuple(level_sets())
MORE = [
    (11, 60, 62, 4, 0),
    (12, 100, 34, 0, 0),
    (13, 60, 38, 2, 1),
    (15, 120, 34, 0, 0),
    (18, 150, 30, 0, 0),
    (19, 20, 30, 0, 0),
    (22, 34, 67, 0, 0),
    (23, 90, 26, 2, 0),
    (23, 104, 67, 6, 1),
    (28, 48, 66, 0, 0),
]


def everything(spawn: tuple[int, int] = (26, 66)) -> RawLevel:
    """Return a hall with an entity of every kind."""
    records = sorted([*MOVING_RECORDS, *MORE], key=lambda record: record[0])
    return RawLevel(moving().tiles, np.array([(0, *spawn, 0, 0), *records], np.uint8), "everything")


def mine_field(count: int = 700) -> RawLevel:
    """Return an empty level with many mines, and an exit."""
    draw = np.random.default_rng(2)
    xs, ys = draw.integers(8, 168, count), draw.integers(8, 92, count)
    mines = [(1, x, y, 0, 0) for x, y in zip(xs, ys)]
    records = [(0, 84, 50, 0, 0), *mines, (3, 20, 90, 0, 0), (4, 150, 90, 0, 0)]
    return RawLevel(np.zeros((23, 42), np.uint8), np.array(records, np.uint8), "mine field")


def run(envs: NPlusPlusVectorEnv, steps: int, seed: int = 1) -> Iterator[dict[str, np.ndarray]]:
    """Play at random, each action six times, and yield the observations."""
    yield envs.reset(seed=seed)[0]
    for actions in choices(steps // 6, envs.num_envs).repeat(6, axis=0):
        yield envs.step(actions)[0]
