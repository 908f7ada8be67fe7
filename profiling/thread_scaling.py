"""Two threads against one: the simulator alone, and environments by the size of the batch.

    python -m profiling.thread_scaling [LEVEL ...]

LEVEL is anything ``load_level`` takes, the first built-in level by default. The simulator plays
``profiling.simulator_speed`` in threads of their own, each with a world of its own: frames/s. Environments take steps
with ``out=``, as in ``profiling.environment_speed``: steps/s. Median and best of the turns, and median of the ratios to
one thread within a turn, which is what a machine that is shared with others leaves of use. What decides for
environments is how long one call takes beside handing work to a thread.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from nclone_env import EnvironmentConfig
from nclone_env.config import DEFAULT_OBSERVATIONS
from nclone_env.level.catalog import level_sets
from nclone_env.level.level_set import LevelSet, pack
from nclone_env.level.load import load_level
from nclone_env.sim.state import make_worlds
from profiling.contracts import LEVELS, STATE
from profiling.environment_speed import our_case, print_table
from profiling.machine import describe
from profiling.simulator_speed import run

THREADS = (1, 2)
SIZES = ((STATE, (256, 1024, 4096)), (DEFAULT_OBSERVATIONS, (256, 1024)))
SECONDS = 1.0
FRAMES, TURNS = 1_000_000, 10


def frames_per_second(levels: LevelSet, threads: int) -> float:
    """Return the frames/s of all threads together, each of which plays a world of its own."""
    worlds = [make_worlds(1, levels) for _ in range(threads)]
    with ThreadPoolExecutor(threads) as pool:
        started = time.perf_counter()
        runs = [pool.submit(run, levels.arrays, own, FRAMES, seed) for seed, own in enumerate(worlds)]
        counted = sum(played.result()[0] for played in runs)
    return counted / (time.perf_counter() - started)


def simulator_row(source: str | Path) -> str:
    """Return median, best and ratio of one level."""
    levels = pack([load_level(source)])
    run(levels.arrays, make_worlds(1, levels), 1, 0)  # compile or load
    speeds = np.array([[frames_per_second(levels, threads) for threads in THREADS] for _ in range(TURNS)])
    ratio = np.median(speeds[:, 1] / speeds[:, 0])
    (one, two), (best_one, best_two) = np.median(speeds, axis=0) / 1e6, speeds.max(axis=0) / 1e6
    name = levels.names[0]
    return f"  {name:<36} {one:6.2f} (best {best_one:6.2f})   {two:6.2f} (best {best_two:6.2f})   {ratio:.4f}"


def main(sources: Sequence[str | Path]) -> None:
    """Print a table for the simulator and one for each size of the batch."""
    print(describe())
    print("simulator, million frames/s of one thread and of two, ratio")
    for source in sources or [next(iter(level_sets().values()))[0]]:
        print(simulator_row(source))
    for observations, sizes in SIZES:
        config = EnvironmentConfig(levels=LEVELS, observations=observations)
        for num_envs in sizes:
            print(f"{' + '.join(observations)}, {num_envs} environments")
            cases = [our_case(f"{threads} thread(s)", "out=", config, num_envs, threads) for threads in THREADS]
            print_table(cases, SECONDS)


if __name__ == "__main__":
    main(sys.argv[1:])
