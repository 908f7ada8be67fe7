"""Two threads against one: the simulator alone, and environments by batch size.

The simulator is measured in frames/s as in ``profiling.speed.simulator``, each thread with a world of its own;
environments in steps/s with ``out=``, as in ``profiling.speed.environments``. Printed are median and best of the turns,
and the median of the ratios to one thread within a turn, the only figure a shared machine makes meaningful. Two threads
help environments once a call is long enough to amortise dispatch.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import tyro
from tyro.conf import Positional

from nclone_env import EnvironmentConfig
from nclone_env.config import DEFAULT_OBSERVATIONS
from nclone_env.level import LevelSet, load_level, pack
from nclone_env.sim.state import make_worlds
from profiling.contracts import LEVELS, STATE
from profiling.measure import basic_sets, describe, ratios, timed, turns
from profiling.speed.environments import our_case, print_table
from profiling.speed.simulator import run

THREADS = (1, 2)
SIZES = ((STATE, (256, 1024, 4096)), (DEFAULT_OBSERVATIONS, (256, 1024)))
SECONDS = 1.0
FRAMES, TURNS = 1_000_000, 10


def frames_per_second(levels: LevelSet, threads: int) -> float:
    """Return the frames/s of all threads together, each of which plays a world of its own."""
    worlds = [make_worlds(1, levels) for _ in range(threads)]
    with ThreadPoolExecutor(threads) as pool:

        def play() -> int:
            runs = [pool.submit(run, levels.arrays, own, FRAMES, seed) for seed, own in enumerate(worlds)]
            return sum(played.result()[0] for played in runs)

        counted, seconds = timed(play)
    return counted / seconds


def simulator_row(source: str | Path) -> str:
    """Return median, best and ratio of one level."""
    levels = pack([load_level(source)])
    run(levels.arrays, make_worlds(1, levels), 1, 0)  # compile or load
    speeds = turns(TURNS, [partial(frames_per_second, levels, threads) for threads in THREADS])
    ratio = ratios(speeds)[1]
    (one, two), (best_one, best_two) = np.median(speeds, axis=0) / 1e6, speeds.max(axis=0) / 1e6
    name = levels.names[0]
    return f"  {name:<36} {one:6.2f} (best {best_one:6.2f})   {two:6.2f} (best {best_two:6.2f})   {ratio:.4f}"


def main(levels: Positional[tuple[str, ...]] = ()) -> None:
    """Print a table for the simulator and one for each batch size.

    Args:
        levels: level names or files that the simulator plays; the first built-in level by default.
    """
    print(describe())
    print("simulator, million frames/s of one thread and of two, ratio")
    for source in levels or [next(iter(basic_sets().values()))[0]]:
        print(simulator_row(source))
    for observations, sizes in SIZES:
        config = EnvironmentConfig(levels=LEVELS, observations=observations)
        for num_envs in sizes:
            print(f"{' + '.join(observations)}, {num_envs} environments")
            cases = [our_case(f"{threads} thread(s)", "out=", config, num_envs, threads) for threads in THREADS]
            print_table(cases, SECONDS)


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)
