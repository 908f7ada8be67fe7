"""Environment steps/s of training, where the time goes, and how that compares with other trainers and with the limits.

Each row is measured in a process of its own, and the rows take turns, so that background load affects all alike; the
table shows medians and the median of the ratios to the first row. Every trainer has the same network, environments and
hyperparameters unless the row says otherwise. Rows:

- ``default``, ``one thread``, ``two towers``: this trainer; two towers of 96 units each learn for 3 epochs;
- ``recurrent``: a recurrent layer of 64 units in front of the hidden layers;
- ``wide``: towers of 128 units, 3 epochs over rollouts of 64 steps;
- ``stub environment``: the environments do nothing, and are called from Python in each step;
- ``stub policy``: the network does nothing, and is called from Python in each step;
- ``products alone``: the matrix products of the default network and nothing else, on all threads; and of two towers;
- ``plain loop``: a loop over torch tensors in the manner of single-file implementations such as CleanRL's;
- ``Stable-Baselines3``: through ``nclone_env.train.adapters.sb3``, if it is installed;
- ``pictures 64``, ``pictures 128``: two stacked frames of that size alone, 64 environments and 64 steps; and
  Stable-Baselines3 with the same network.

Then the phases of an update and the time of a vector step follow, from a run with timers, and the cost of telemetry.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import tyro

from profiling.measure import blas_kernel, describe, in_fresh_process, ratios
from profiling.training.limits import StubEnvironments, products, stub_network
from profiling.training.peers import plain_loop, stable_baselines

WIDE = {"hidden_size": 128, "shared_trunk": False, "update_epochs": 3, "num_steps": 64, "num_minibatches": 4}
TOWERS = {"hidden_size": 96, "shared_trunk": False, "update_epochs": 3}
PICTURES = {"observations": ("player_frame",), "frame_stack": 2, "num_envs": 64, "num_steps": 64}
WARM_UPDATES = 2


def configuration(levels: tuple[str, ...], folder: str, **fields: Any) -> Any:
    """Return the configuration of a run that never ends by itself."""
    from nclone_env.train import TrainConfig

    return TrainConfig.of(levels=levels, total_timesteps=10**9, output=Path(folder), **fields)


@contextmanager
def prepared_run(levels: tuple[str, ...], make_envs: Any = None, **fields: Any) -> Iterator[Any]:
    """Set up and warm up a run."""
    from nclone_env.train import make_environments
    from nclone_env.train.runs.begin import begun_run

    with (
        tempfile.TemporaryDirectory() as folder,
        begun_run(configuration(levels, folder, **fields), make_envs=make_envs or make_environments) as run,
    ):
        yield run


def update(run: Any) -> None:
    """Collect and learn once."""
    from nclone_env.train.runs.steps import collect_rollout, compute_returns, update_policy

    collect_rollout(run)
    compute_returns(run)
    update_policy(run)


def speed(call: Callable[[], object], steps: int, seconds: float) -> float:
    """Return steps/s of a call that makes ``steps`` steps, after two calls that are not timed."""
    for _ in range(WARM_UPDATES):
        call()
    calls, started = 0, time.perf_counter()
    while (passed := time.perf_counter() - started) < seconds:
        call()
        calls += 1
    return calls * steps / passed


def ours(levels: tuple[str, ...], seconds: float, fields: dict[str, Any], stub: str = "") -> float:
    """Return steps/s of this trainer, with a stub in place of the ``environment`` or the ``policy``."""
    with prepared_run(levels, StubEnvironments if stub == "environment" else None, **fields) as run:
        if stub == "policy":
            stub_network(run)
        return speed(lambda: update(run), run.config.batch_size, seconds)


def phases(levels: tuple[str, ...], updates: int, fields: dict[str, Any]) -> dict[str, float]:
    """Return microseconds per step of each phase of one thread, and percentiles of the time of a vector step.

    Steps that one compiled call makes count with their mean.
    """
    from nclone_env.train.learn import ppo

    seconds: dict[str, float] = defaultdict(float)
    vector_steps: list[np.ndarray] = []

    def timed(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            started = time.perf_counter()
            result = function(*arguments, **named)
            seconds[name] += time.perf_counter() - started
            return result

        return call

    with prepared_run(levels, num_threads=1, **fields) as run:
        update(run)
        learner = run.learner
        learner._learn_compiled = timed("learn: gradient steps", learner._learn_compiled)
        ppo.shuffle = timed("learn: shuffle", ppo.shuffle)
        for collector in run.collectors:
            collector.play = timed("collect", collector.play)
        started = time.perf_counter()
        for _ in range(updates):
            update(run)
            vector_steps += (np.copy(collector.step_seconds) for collector in run.collectors)
        total = time.perf_counter() - started
        steps = updates * run.config.batch_size
        rows = {name: 1e6 * value / steps for name, value in sorted(seconds.items(), key=lambda item: -item[1])}
    rows["everything else"] = 1e6 * (total - sum(seconds.values())) / steps
    return rows | {f"p{rank}": 1e6 * float(np.percentile(vector_steps, rank)) for rank in (50, 95)}


def telemetry(levels: tuple[str, ...], updates: int, fields: dict[str, Any]) -> float:
    """Return the processor time of updates with rows of the learning curve over that without; rows are written alone.

    The thread that writes rows for TensorBoard counts, too.
    """
    from nclone_env.train.runs.steps import collect_rollout, compute_returns, log_update, update_policy

    with prepared_run(levels, **fields) as run:

        def once() -> Any:
            collect_rollout(run)
            compute_returns(run)
            return update_policy(run)

        def seconds(function: Callable[[], Any]) -> float:
            started = time.process_time()
            for _ in range(updates):
                function()
            return time.process_time() - started

        statistics = once()
        return 1 + seconds(lambda: log_update(run, statistics, 0.1, 0.1, {})) / seconds(once)


def first_updates(levels: tuple[str, ...], fields: dict[str, Any]) -> float:
    """Return the speed of the first update over the median speed of updates 5 to 25, in this process."""
    with prepared_run(levels, **fields) as run:
        seconds = []
        for _ in range(25):
            started = time.perf_counter()
            update(run)
            seconds.append(time.perf_counter() - started)
    return float(np.median(seconds[4:]) / seconds[0])


def main(levels: tuple[str, ...] = ("first-steps",), rounds: int = 3, seconds: float = 5.0, peers: bool = True) -> None:
    """Measure and print all tables.

    Args:
        levels: levels to train on.
        rounds: turns of each row.
        seconds: time of a turn.
        peers: compare with other trainers.
    """
    from nclone_env.train import TrainConfig

    print(f"{describe()}; BLAS kernel {in_fresh_process(blas_kernel)}", flush=True)
    defaults = TrainConfig()
    rows: dict[str, tuple[Any, ...]] = {
        "default": (ours, levels, seconds, {}),
        "one thread": (ours, levels, seconds, {"num_threads": 1}),
        "two towers": (ours, levels, seconds, TOWERS),
        "recurrent": (ours, levels, seconds, {"recurrent_size": 64}),
        "wide": (ours, levels, seconds, WIDE),
        "wide, one thread": (ours, levels, seconds, {**WIDE, "num_threads": 1}),
        "stub environment": (ours, levels, seconds, {}, "environment"),
        "stub policy": (ours, levels, seconds, {}, "policy"),
        "products alone": (products, seconds, defaults.hidden_size, 1, defaults.ppo.update_epochs),
        "products, two towers": (products, seconds, 96, 2, 3),
        **{f"pictures {size}": (ours, levels, seconds, {**PICTURES, "picture_size": size}) for size in (64, 128)},
    }
    if peers:
        others = {"": {}, ", pictures 64": {**PICTURES, "picture_size": 64}}
        rows["plain loop"] = (plain_loop, levels, seconds)
        rows |= {f"Stable-Baselines3{end}": (stable_baselines, levels, seconds, one) for end, one in others.items()}
    table = np.zeros((rounds, len(rows)))
    for turn in range(rounds):
        table[turn] = [in_fresh_process(*row) for row in rows.values()]
        print(f"turn {turn + 1} of {rounds} measured", file=sys.stderr, flush=True)
    print(f"environment steps/s, median of {rounds} turns of {seconds:g} s; ratio to the first row")
    for name, value, ratio in zip(rows, np.median(table, axis=0), ratios(table), strict=True):
        print(f"  {name:<24}{value:>12,.0f}{ratio:>8.2f}")
    measured = in_fresh_process(phases, levels, 20, {})
    p50, p95 = measured.pop("p50"), measured.pop("p95")
    print("phases with one thread, microseconds a step")
    for name, value in measured.items():
        print(f"  {name:<28}{value:>8.3f}")
    print(f"vector step of one group, microseconds: p50 {p50:.0f}, p95 {p95:.0f}")
    print(f"telemetry on over off: {in_fresh_process(telemetry, levels, 60, {}):.3f}")
    for count in (1, 256, 1000):
        first = [in_fresh_process(first_updates, levels, {"num_envs": count}) for _ in range(rounds)]
        print(f"first update over updates 5 to 25 with {count} environments: {np.median(first):.2f}")


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)
