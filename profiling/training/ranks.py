"""Training in several processes: what an update computes and sends with one rank and two, and what follows for more.

Measured: processor seconds of an update without its communication, the number and bytes of its messages, and the
seconds of an all-reduce as large as the gradient between two ranks here. Computed: gloo reduces on a ring, so K ranks
pass a vector of B bytes on in 2 (K - 1) steps of B / K bytes, and gather values in K - 1 steps; each step takes the
latency of the network and the time of its bytes. Efficiency is the share of an update that is no communication: *weak*
with as many environments in each rank as measured, *strong* with ``total`` in all.
"""

from __future__ import annotations

import pickle
import tempfile
import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import tyro

from profiling.measure import describe

WARM_UPDATES = 2
REPEATS = 2000


class Load(NamedTuple):
    """What a rank does in an update."""

    seconds: float
    """Of the processor, without those of the communication."""
    reduces: int
    reduced: int
    """All-reduces, and bytes of their vectors."""
    gathers: int
    gathered: int
    """Gathers of all values by all, two for each exchange, and bytes of the own values."""


def measure(levels: tuple[str, ...], per_rank: int, updates: int) -> tuple[Load, float]:
    """Train in this rank; return its mean load of an update, and seconds of an all-reduce of the gradient."""
    from nclone_env.train import TrainConfig, joined_ranks
    from nclone_env.train.ranks import Ranks
    from nclone_env.train.runs.begin import begun_run
    from nclone_env.train.runs.steps import collect_rollout, compute_returns, is_stopped, update_policy

    counts: Counter[str] = Counter()

    def counted(name: str, size: Any, method: Any, ranks: Ranks, value: Any) -> Any:
        began = time.process_time()
        result = method(ranks, value)
        counts.update({name: 1, f"{name} bytes": size(value), "nanoseconds": int(1e9 * (time.process_time() - began))})
        return result

    add_up = partial(counted, "reduce", lambda array: array.nbytes, Ranks.add_up)
    exchange = partial(counted, "exchange", lambda value: len(pickle.dumps(value)), Ranks.exchange)
    with (
        tempfile.TemporaryDirectory() as folder,
        joined_ranks() as ranks,
        patch.object(Ranks, "add_up", lambda ranks, array: add_up(ranks, array)),
        patch.object(Ranks, "exchange", lambda ranks, value: exchange(ranks, value)),
    ):
        config = TrainConfig.of(
            levels=levels, total_timesteps=10**9, output=Path(folder), num_threads=1, num_envs=per_rank * ranks.count
        )
        with begun_run(config, ranks=ranks) as run:
            for update in range(-WARM_UPDATES, updates):
                if update == 0:
                    counts.clear()
                    began = time.process_time()
                is_stopped(run)
                collect_rollout(run)
                compute_returns(run)
                update_policy(run)
            seconds = time.process_time() - began - counts["nanoseconds"] / 1e9
            load = Load(
                seconds / updates,
                counts["reduce"] // updates,
                counts["reduce bytes"] // updates,
                2 * counts["exchange"] // updates,
                counts["exchange bytes"] // updates,
            )
            gradient, times = np.zeros_like(run.parameters.vector), np.zeros(REPEATS)
            for number in range(REPEATS):
                began = time.perf_counter()
                ranks.add_up(gradient)
                times[number] = time.perf_counter() - began
    return load, float(np.quantile(times, 0.1))


def in_ranks(count: int, *arguments: Any) -> dict[int, tuple[Load, float]]:
    """Return the result of :func:`measure` by rank."""
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    return elastic_launch(LaunchConfig(1, 1, count, rdzv_backend="c10d", start_method="spawn"), measure)(*arguments)


def communication(load: Load, ranks: int, latency: float, bandwidth: float) -> tuple[int, float, float]:
    """Return steps of an update in which a rank waits for another, bytes that it sends, and their seconds."""
    steps = load.reduces * 2 * (ranks - 1) + load.gathers * (ranks - 1)
    sent = load.reduced * 2 * (ranks - 1) / ranks + load.gathered * (ranks - 1)
    return steps, sent, steps * latency + sent / bandwidth


def main(
    levels: tuple[str, ...] = ("first-steps",),
    num_envs: int = 256,
    total: int = 4096,
    updates: int = 20,
    ranks: tuple[int, ...] = (2, 4, 8, 16, 32, 64),
    latency: float = 50.0,
    bandwidth: float = 10.0,
) -> None:
    """Measure one rank and two, and print the table.

    Args:
        levels: levels to train on.
        num_envs: environments of each rank that are measured.
        total: environments of all ranks together for the strong scaling.
        updates: updates that are measured.
        ranks: numbers of ranks to compute.
        latency: microseconds of a message between two machines.
        bandwidth: gigabits per second from each machine.
    """
    print(describe())
    for count in (1, 2):
        for rank, (load, reduce) in sorted(in_ranks(count, levels, num_envs, updates).items()):
            print(
                f"rank {rank} of {count}: {load.seconds:.3f} processor s an update, {load.reduces} all-reduces of "
                f"{load.reduced:,} bytes, {load.gathers} gathers of {load.gathered:,} bytes; "
                f"an all-reduce of the gradient: {1e6 * reduce:.0f} us (10 % quantile)"
            )
    print(f"computed with {latency:g} us a message and {bandwidth:g} Gbit/s; efficiency weak, strong")
    for count in ranks:
        steps, sent, seconds = communication(load, count, latency / 1e6, bandwidth * 1e9 / 8)
        weak, strong = (work / (work + seconds) for work in (load.seconds, load.seconds * total / num_envs / count))
        print(f"  {count:3d} ranks: {steps:6,d} steps, {sent / 1e6:6.2f} MB sent, {weak:6.1%} {strong:6.1%}")


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)
