"""``nclone-env warmup``: compile kernels ahead of time, all or those of a part."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from functools import partial
from importlib import import_module
from multiprocessing import get_context
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from tyro.conf import Positional

from nclone_env.config import OBSERVATION_NAMES, EnvironmentConfig
from nclone_env.env import NPlusPlusVectorEnv
from nclone_env.errors import MissingExtraError
from nclone_env.jit import cache_folder
from nclone_env.level import Level, compile_level, level_sets, load_level
from nclone_env.machine import available_cores
from nclone_env.plan import solve, state_values
from nclone_env.sim import simulate

if TYPE_CHECKING:
    from nclone_env.train import TrainConfig

Part = Literal["sim", "env", "observations", "plan", "generate", "replay", "gallery", "benchmark", "profile", "train"]
"""What can be compiled: the simulator, environments with the default and with all observations, and rooms by name."""


def warmup(parts: Positional[tuple[Part, ...]] = ()) -> int:
    """Compile kernels into the cache and report progress; a few seconds if they are cached.

    Args:
        parts: what to compile, for example train; everything by default.
    """
    os.environ["NCLONE_ENV_QUIET"] = "1"  # in processes started here too: tasks have lines of their own
    print(f"kernels in {cache_folder() or 'memory only'}", flush=True)
    chosen = tasks(parts)
    lanes = [[task for task in chosen if task.lane == lane] for lane in range(3)]
    beside = [lane for lane in lanes[:2] if lane]
    if len(beside) == 1 or available_cores() == 1:
        for lane in beside:
            _compile(lane)
    else:
        with ProcessPoolExecutor(len(beside), get_context("spawn")) as executor:
            for future in [executor.submit(_compile, lane) for lane in beside]:
                future.result()
    _compile(lanes[2])
    return 0


class Task(NamedTuple):
    """Something that compiles kernels."""

    part: Part
    name: str
    lane: int
    """Two lanes run beside each other, each in a process; a third after them."""
    run: Callable[[], None]


def tasks(parts: Sequence[Part] = ()) -> list[Task]:
    """Return the tasks of some parts, by default of all, in an order that they can be run in."""
    return [task for task in _TASKS if not parts or task.part in parts]


def _compile(tasks: Sequence[Task]) -> None:
    """Do tasks one after the other, with a line for each; some need the optional dependencies of the trainer."""
    for task in tasks:
        started = time.perf_counter()
        with suppress(MissingExtraError):
            task.run()
        print(f"  {task.name} ... {time.perf_counter() - started:.1f} s", flush=True)


def _simulate() -> None:
    simulate(_any_level(), bytes(4), entities=True)


def _measure() -> None:
    compile_level(_any_level()).distances()  # an environment would load them from the array cache


def _plan() -> None:
    solve(_any_level(), frames=300_000)  # until every kind of search has had its turn
    state_values(_any_level(), frames=1000, cells=10)


def _room(name: str) -> None:
    import_module(f"nclone_env.{name}").compile_kernels()


def _any_level() -> Level:
    return load_level(next(iter(level_sets().values()))[0])


def _use(config: EnvironmentConfig) -> None:
    NPlusPlusVectorEnv(config, 1, autoreset_mode="SameStep").close()
    env = NPlusPlusVectorEnv(config, 1)
    env.reset(seed=0)
    env.step(np.zeros(1, dtype=np.int64))
    env.gather([0])
    env.set_state(0, env.get_state(0))
    env.close()


def _learn() -> None:
    """Compile network and update."""
    from nclone_env.train import compile_learner

    compile_learner(_short_run())


def _train() -> None:
    """Make two updates of the default network."""
    from nclone_env.train import train

    with TemporaryDirectory() as folder:
        train(_short_run(output=folder))


def _short_run(**fields: Any) -> TrainConfig:
    from nclone_env.train import TrainConfig

    return TrainConfig.of(num_envs=4, num_steps=2, num_minibatches=2, total_timesteps=16, **fields)


_TASKS = (
    Task("env", "distances", 0, _measure),
    Task("env", "environment", 0, partial(_use, EnvironmentConfig())),
    Task("train", "environment of the trainer", 0, partial(_use, EnvironmentConfig())),
    Task("sim", "simulator", 0, _simulate),
    Task("observations", "more observations", 0, partial(_use, EnvironmentConfig(observations=OBSERVATION_NAMES))),
    Task("benchmark", "benchmark", 0, partial(_room, "benchmark")),
    Task("profile", "profiler", 0, partial(_room, "profiler")),
    Task("train", "video of an episode", 1, partial(_room, "replay")),
    Task("train", "network and update", 1, _learn),
    Task("plan", "planner", 1, _plan),
    Task("generate", "generator", 1, partial(_room, "generate")),
    Task("replay", "replay", 1, partial(_room, "replay")),
    Task("gallery", "gallery", 1, partial(_room, "gallery")),
    Task("train", "trainer", 2, _train),
)
"""What to compile. Both lanes take about as long; what one has compiled as a part of others, the other one uses."""
