"""``nclone-env warmup``: compile every kernel now, so that nothing has to wait for it later."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from nclone_env.config import OBSERVATION_NAMES, EnvironmentConfig
from nclone_env.env.vector import NPlusPlusVectorEnv
from nclone_env.jit import cache_folder
from nclone_env.level.catalog import level_sets
from nclone_env.level.compile import compile_level
from nclone_env.level.level import Level
from nclone_env.level.load import load_level
from nclone_env.sim.session import Session
from nclone_env.sim.simulate import simulate
from nclone_env.train.gae import estimate_advantages


def warmup() -> int:
    """Compile all kernels into the cache, showing what is being done; at once if they are there already."""
    print(f"kernels in {cache_folder()}")
    for name, task in _TASKS:
        _timed(name, task)
    return 0


def _timed(name: str, task: Callable[[], None]) -> None:
    print(f"  {name} ... ", end="", flush=True)
    started = time.perf_counter()
    task()
    print(f"{time.perf_counter() - started:.1f} s")


def _simulate() -> None:
    simulate(_any_level(), bytes(4), entities=True)


def _measure() -> None:
    compile_level(_any_level()).distances()  # an environment reads them from a cached file if there is one


def _play() -> None:
    Session(_any_level()).tick(0)


def _any_level() -> Level:
    return load_level(next(iter(level_sets().values()))[0])


def _step() -> None:
    _use(EnvironmentConfig())


def _observe() -> None:
    _use(EnvironmentConfig(observations=OBSERVATION_NAMES))


def _use(config: EnvironmentConfig) -> None:
    env = NPlusPlusVectorEnv(config, 1)
    env.reset(seed=0)
    env.step(np.zeros(1, dtype=np.int64))
    env.gather([0])
    env.close()


def _estimate() -> None:
    column, ends = np.zeros((1, 1), np.float32), np.zeros((1, 1), np.bool_)
    values = np.zeros((2, 1), np.float32)
    estimate_advantages(column, values, ends, ends, column, 0.99, 0.95, column, column.copy())


_TASKS = (
    ("simulator", _simulate),
    ("distances", _measure),
    ("environment", _step),
    ("more observations", _observe),
    ("replay", _play),
    ("trainer", _estimate),
)
