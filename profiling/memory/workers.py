"""How far does the memory of worker processes rise that drop all they make? The floor of workers follows from it.

Each worker makes objects of random number and size, as episodes do, and drops those of the episode before.
"""

from __future__ import annotations

import multiprocessing
import random
from typing import Any

import numpy as np
import tyro
from tyro.conf import Positional

from nclone_env.memory.measure.measurements import WARM_UP_SHARE
from nclone_env.memory.measure.process import worker_sizes
from profiling.measure import describe

_SNAPSHOTS = 64


def work(pipe: Any, seed: int) -> None:
    """Make and drop the objects of an episode whenever the parent sends something, until that is None."""
    generator = random.Random(seed)
    kept: list[Any] = []
    while pipe.recv() is not None:
        kept[:] = [[float(n), {"bytes": bytes(generator.randrange(600))}] for n in range(generator.randrange(200))]
        pipe.send(None)


def sizes(count: int, steps: int) -> np.ndarray:
    """Return the bytes of so many workers after their warm-up, (snapshots, count) int64."""
    context, pipes = multiprocessing.get_context("spawn"), []
    for seed in range(count):
        ours, theirs = multiprocessing.Pipe()
        context.Process(target=work, args=(theirs, seed), daemon=True).start()
        pipes.append(ours)
    rows = []
    for step in range(steps):
        for pipe in pipes:
            pipe.send(step)
        for pipe in pipes:
            pipe.recv()
        if step % max(1, steps // _SNAPSHOTS) == 0 and step >= WARM_UP_SHARE * steps:
            rows.append([size for _, size in sorted(worker_sizes("anonymous").items())[-count:]])
    for pipe in pipes:
        pipe.send(None)
    return np.array(rows)


def main(counts: Positional[tuple[int, ...]] = (1, 8, 24), steps: int = 1500) -> None:
    """Print the KB by which single workers, and all together, end above their beginning.

    Args:
        counts: numbers of workers.
        steps: of each.
    """
    print(describe())
    for count in counts:
        found = sizes(count, steps) / 1024
        each = found[-1] - found[0]
        print(f"{count:>3} workers: {each.min():.0f} to {each.max():.0f} KB each, {each.sum():.0f} KB together")


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)
