"""Preparation of training runs with ``--starts planned`` on packs: processor time per level, and a second start.

Nothing is kept before. In the second start, levels and solutions are read, and these are played; compiling is not
counted.
"""

import os
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import tyro
from tyro.conf import Positional

from nclone_env import _arrays
from nclone_env.config import EnvironmentConfig
from nclone_env.env.compiled.step_arrays import playable_levels
from nclone_env.plan import compile_kernels
from nclone_env.train.levels.solutions import PLANNED, Planner, StartStates, run_starts
from profiling.measure import describe


def start(pack: str, threads: int, max_frames: int) -> tuple[int, StartStates]:
    """Prepare a run on a pack; return the number of its levels, and the states that its episodes begin in."""
    environment = EnvironmentConfig(levels=(pack,), max_frames=max_frames)
    levels = playable_levels(environment).levels
    starts = run_starts(environment.replace(levels=levels), (PLANNED,), Planner(threads))
    assert starts is not None
    return len(levels), starts


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
        with TemporaryDirectory() as folder:
            _arrays.folder = lambda place=Path(folder): place
            began, cpu = time.perf_counter(), time.process_time()
            count, starts = start(name, threads, max_frames)
            between, cpu = time.perf_counter(), time.process_time() - cpu
            start(name, threads, max_frames)
            again = time.perf_counter() - between
        solved = len(set(starts.levels.tolist()))
        print(f"{count:>6,}  {solved:>11,}  {cpu / count:>13.2f}  {between - began:>6.1f}  {again:>20.1f}", flush=True)


if __name__ == "__main__":
    os.umask(0o077)
    tyro.cli(main)
