"""The planner's threads: wall time of the same searches with 1 and with N threads, in turn, so that load falls on both.

The results are compared byte by byte. Run it on a quiet machine with at least N free cores: the ratio is that of wall
times. The processor time next to it shows what the threads cost besides.
"""

from __future__ import annotations

import time

import numpy as np
import tyro
from tyro.conf import Positional

from nclone_env.level.load import resolve
from nclone_env.plan import solve
from profiling.measure import basic_sets, describe


def main(levels: Positional[tuple[str, ...]] = (), threads: int = 2, frames: int = 5_000_000, repeats: int = 3) -> None:
    """Print the ratio of the wall times of each level, and their median.

    Args:
        levels: built-in sets, level files, packs or folders; the basic sets by default.
        threads: threads to compare with one.
        frames: frames of each search.
        repeats: pairs of searches on each level.
    """
    print(describe())
    refs = [ref for name in levels or basic_sets() for ref in resolve(name)]
    solve(refs[0].load(), frames=400_000)  # compile or load the kernels
    ratios, costs = [], []
    for ref in refs:
        level = ref.load()
        for _ in range(repeats):
            results, walls, processor = [], [], []
            for count in (1, threads):
                wall, cpu = time.perf_counter(), time.process_time()
                results.append(solve(level, frames=frames, threads=count).inputs.tobytes())
                walls.append(time.perf_counter() - wall)
                processor.append(time.process_time() - cpu)
            assert results[0] == results[1]
            ratios.append(walls[0] / walls[1])
            costs.append(processor[1] / processor[0])
        print(f"  {ref.name:<32} {np.median(ratios[-repeats:]):.2f}", flush=True)
    print(
        f"{threads} threads: median {np.median(ratios):.2f} times as fast, best {np.max(ratios):.2f}, "
        f"processor time {np.median(costs):.2f} times that of one thread"
    )


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)
