"""Whether first episodes are as fast as later ones: environment steps/s over the first steps of fresh processes.

    python -m profiling.first_steps [--steps 10000] [--processes 5] [--out runs/first_steps.png]

The kernels are compiled first (what ``nclone-env warmup`` does). Then each process makes an environment, resets it and
times every call of ``step`` from the very first; random actions, default observations. The picture shows steps/s of
each hundredth of the steps, for the single environment and for a vector of 64; the ratio printed is the speed of the
first tenth to that of the rest.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import numpy as np
import tyro
from matplotlib.figure import Figure

from nclone_env import EnvironmentConfig, NPlusPlusEnv, NPlusPlusVectorEnv
from nclone_env.cli.warmup import warmup
from profiling.contracts import LEVELS, in_fresh_process
from profiling.machine import describe

SIZES = (1, 64)
BINS = 100


def call_times(levels: tuple[str, ...], num_envs: int, steps: int) -> np.ndarray:
    """Return the seconds of each call of ``step``, from the first after the first ``reset``."""
    config = EnvironmentConfig(levels=levels)
    env = NPlusPlusEnv(config) if num_envs == 1 else NPlusPlusVectorEnv(config, num_envs, autoreset_mode="SameStep")
    env.reset(seed=0)
    calls = -(-steps // num_envs)
    actions = np.random.default_rng(0).integers(0, 6, (calls, num_envs)).squeeze(-1 if num_envs == 1 else ())
    seconds = np.zeros(calls)
    for call in range(calls):
        started = time.perf_counter()
        step = env.step(actions[call])
        if num_envs == 1 and (step[2] or step[3]):
            env.reset()
        seconds[call] = time.perf_counter() - started
    env.close()
    return seconds


def binned_speeds(seconds: np.ndarray, num_envs: int) -> np.ndarray:
    """Return environment steps/s of equal shares of the calls."""
    return np.array([num_envs * len(part) / part.sum() for part in np.array_split(seconds, min(BINS, len(seconds)))])


def first_to_rest(seconds: np.ndarray) -> float:
    """Return the speed of the first tenth of the calls in that of the others."""
    tenth = max(1, len(seconds) // 10)
    return float(seconds[tenth:].mean() / seconds[:tenth].mean())


def draw(runs: dict[int, list[np.ndarray]], path: Path) -> None:
    """Write the picture: a panel for each size, a line for each process and their median."""
    figure = Figure(figsize=(11, 4.5), layout="constrained")
    for axes, (num_envs, seconds) in zip(figure.subplots(1, len(runs), squeeze=False)[0], runs.items(), strict=True):
        speeds = np.array([binned_speeds(run, num_envs) for run in seconds])
        steps = (np.arange(speeds.shape[1]) + 0.5) * seconds[0].size * num_envs / speeds.shape[1]
        axes.plot(steps, speeds.T / 1000, color="#9bb7d4", linewidth=0.8)
        axes.plot(steps, np.median(speeds, axis=0) / 1000, color="#1f4e79", linewidth=2)
        ratio = np.median([first_to_rest(run) for run in seconds])
        axes.set(title=f"{num_envs} environment{'s' * (num_envs > 1)}: first tenth / rest = {ratio:.2f}")
        axes.set(xlabel="environment step of a fresh process", ylabel="thousand environment steps/s", ylim=(0, None))
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.stem}.part{path.suffix}")
    figure.savefig(temporary, dpi=110)
    temporary.replace(path)


def print_row(num_envs: int, runs: list[np.ndarray]) -> None:
    """Print the ratio over the processes, and how long the very first call takes."""
    ratios = sorted(first_to_rest(seconds) for seconds in runs)
    first, usual = (1e6 * np.median([pick(seconds) for seconds in runs]) for pick in (lambda run: run[0], np.median))
    print(
        f"  {num_envs} environments: first tenth / rest {np.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})"
    )
    print(f"    very first call {first:.0f} us, median call {usual:.0f} us")


def main(
    levels: Annotated[tuple[str, ...], tyro.conf.arg(help="levels to play")] = LEVELS,
    steps: Annotated[int, tyro.conf.arg(help="environment steps of each process")] = 10_000,
    processes: Annotated[int, tyro.conf.arg(help="fresh processes for each size")] = 5,
    out: Annotated[Path, tyro.conf.arg(help="picture")] = Path("runs/first_steps.png"),
) -> None:
    """Measure, print the ratios and draw."""
    print(describe())
    warmup()
    runs: dict[int, list[np.ndarray]] = {}
    for num_envs in SIZES:
        runs[num_envs] = [in_fresh_process(call_times, levels, num_envs, steps) for _ in range(processes)]
        print_row(num_envs, runs[num_envs])
    draw(runs, out)
    print(f"  {out}")


if __name__ == "__main__":
    tyro.cli(main)
