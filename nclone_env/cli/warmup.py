"""``nclone-env warmup``: compile every kernel ahead of time."""

from __future__ import annotations

import os
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from tempfile import gettempdir

import numpy as np

from nclone_env._files import temporary_beside
from nclone_env.cli.prove import compile_proofs
from nclone_env.config import OBSERVATION_NAMES, EnvironmentConfig
from nclone_env.cores import available_cores
from nclone_env.env import NPlusPlusVectorEnv
from nclone_env.errors import MissingExtraError
from nclone_env.gallery import Tracks
from nclone_env.generate import generate_level
from nclone_env.jit import cache_folder
from nclone_env.level.catalog import level_sets
from nclone_env.level.compile import compile_level
from nclone_env.level.level import Level
from nclone_env.level.level_set import pack
from nclone_env.level.load import load_level
from nclone_env.plan import solve
from nclone_env.sim.session import Session
from nclone_env.sim.simulate import simulate
from nclone_env.train import require_training_extra


def warmup() -> int:
    """Compile all kernels into the cache and report progress; a few seconds if they are cached."""
    os.environ["NCLONE_ENV_QUIET"] = "1"  # in processes started here too: tasks have lines of their own
    print(f"kernels in {cache_folder() or 'memory only'}", flush=True)
    if available_cores() == 1:
        for lane in range(len(_LANES)):
            _compile(lane)
        return 0
    with ProcessPoolExecutor(len(_LANES), get_context("spawn")) as executor:
        for future in [executor.submit(_compile, lane) for lane in range(len(_LANES))]:
            future.result()
    return 0


def _compile(lane: int) -> None:
    """Do the tasks of a lane, with a line for each."""
    for name, task in _LANES[lane]:
        started = time.perf_counter()
        task()
        print(f"  {name} ... {time.perf_counter() - started:.1f} s", flush=True)


def _simulate() -> None:
    simulate(_any_level(), bytes(4), entities=True)


def _measure() -> None:
    compile_level(_any_level()).distances()  # an environment would load them from the array cache


def _play() -> None:
    Session(_any_level()).tick(0)


def _show() -> None:
    Tracks(pack([_any_level()]), np.zeros(1, np.uint8))


def _plan() -> None:
    solve(_any_level(), frames=300_000)  # until every kind of search has had its turn


def _generate() -> None:
    generate_level("patrols")  # its movers are put in the way, checked, and searches are repeated


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
    env.set_state(0, env.get_state(0))
    env.close()


def _train() -> None:
    """Make two updates of the default network; nothing without the optional dependencies of the trainer."""
    try:
        require_training_extra()
    except MissingExtraError:
        return
    from nclone_env.train import TrainConfig, train

    with temporary_beside(Path(gettempdir(), "warmup"), folder=True) as folder:
        train(TrainConfig.of(num_envs=4, num_steps=2, num_minibatches=2, total_timesteps=16, output=folder))


_LANES = (
    (
        ("simulator", _simulate),
        ("distances", _measure),
        ("environment", _step),
        ("more observations", _observe),
    ),
    (
        ("planner", _plan),
        ("generator", _generate),
        ("proofs", compile_proofs),
        ("replay", _play),
        ("gallery", _show),
        ("trainer", _train),
    ),
)
"""What to compile in each of two processes. Tasks of a lane share most of their kernels; both take about as long."""
