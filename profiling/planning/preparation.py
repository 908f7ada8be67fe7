"""Preparation of training runs with ``--starts planned`` on packs: processor time per level, and a second start.

Nothing is kept before. In the second start, solutions are read and played; compiling is not counted.
"""

import os
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import tyro
from tyro.conf import Positional

from nclone_env.config import EnvironmentConfig
from nclone_env.env.compiled.step_arrays import playable_levels
from nclone_env.level import array_cache
from nclone_env.plan import compile_kernels
from nclone_env.train.levels.solutions import PLANNED, Planner, run_starts
from profiling.measure import describe


def main(packs: Positional[tuple[str, ...]], threads: int = 2, max_frames: int = 1800) -> None:
    """Print a row for each pack.

    Args:
        packs: packs of levels.
        threads: levels that are searched at a time.
        max_frames: longest solution.
    """
    print(describe())
    compile_kernels()
    run_starts(EnvironmentConfig(levels=("first-steps",)), ("known",), Planner())
    print("levels  with states  CPU s a level  wall s  second start, wall s")
    for name in packs:
        environment = EnvironmentConfig(levels=(name,), max_frames=max_frames)
        count = len(playable_levels(environment).levels)
        with TemporaryDirectory() as folder:
            array_cache.folder = lambda place=Path(folder): place
            began, cpu = time.perf_counter(), time.process_time()
            starts = run_starts(environment, (PLANNED,), Planner(threads))
            between, cpu = time.perf_counter(), time.process_time() - cpu
            run_starts(environment, (PLANNED,), Planner(threads))
            again = time.perf_counter() - between
        solved = len(set(starts.levels.tolist()))
        print(f"{count:>6,}  {solved:>11,}  {cpu / count:>13.2f}  {between - began:>6.1f}  {again:>20.1f}", flush=True)


if __name__ == "__main__":
    os.umask(0o077)
    tyro.cli(main)
