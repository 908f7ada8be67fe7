"""Are first episodes as fast as later ones? Environment steps/s over the first steps of fresh processes.

The kernels are compiled first (``nclone-env warmup``). Then each process creates an environment, resets it and times
every call of ``step`` from the very first; random actions, default observations. The picture shows steps/s of each
hundredth of the steps, for the single environment and for a vector of 64; the printed ratio is the speed of the first
tenth over that of the rest. Under the default contract the first calls touch fresh pages; arrays for ``out`` have all
pages committed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import tyro
from matplotlib.figure import Figure

from nclone_env import Action, EnvironmentConfig, NPlusPlusEnv
from nclone_env._files import fill_file
from nclone_env.cli.warmup import warmup
from profiling.contracts import LEVELS, begin
from profiling.measure import describe, in_fresh_process

KINDS = {"single environment": 1, "out= of 64": 64, "default of 64": 64}
BINS = 100


def call_times(kind: str, levels: tuple[str, ...], steps: int) -> np.ndarray:
    """Return the seconds of each call of ``step``, from the first after the first ``reset``."""
    config, num_envs = EnvironmentConfig(levels=levels), KINDS[kind]
    if num_envs == 1:
        call = played_alone(NPlusPlusEnv(config))
    else:
        env, arguments = begin(kind.split()[0], config, num_envs, autoreset_mode="SameStep")
        call = partial(env.step, **arguments)
    seconds = np.zeros(-(-steps // num_envs))
    actions = np.random.default_rng(0).integers(0, len(Action), (len(seconds), num_envs))
    for index, row in enumerate(actions):
        started = time.perf_counter()
        call(row)
        seconds[index] = time.perf_counter() - started
    return seconds


def played_alone(env: NPlusPlusEnv) -> Callable[[np.ndarray], object]:
    """Reset an environment; return a function that steps it with (1,) actions and resets it at ends of episodes."""
    env.reset(seed=0)

    def call(actions: np.ndarray) -> None:
        step = env.step(actions[0])
        if step[2] or step[3]:
            env.reset()

    return call


def binned_speeds(seconds: np.ndarray, num_envs: int) -> np.ndarray:
    """Return environment steps/s of equal shares of the calls."""
    return np.array([num_envs * len(part) / part.sum() for part in np.array_split(seconds, min(BINS, len(seconds)))])


def first_to_rest(seconds: np.ndarray) -> float:
    """Return the speed of the first tenth of the calls over that of the others."""
    tenth = max(1, len(seconds) // 10)
    return float(seconds[tenth:].mean() / seconds[:tenth].mean())


def draw(runs: dict[str, list[np.ndarray]], path: Path) -> None:
    """Write the picture: a panel for each kind, a line for each process and their median."""
    figure = Figure(figsize=(15, 4.5), layout="constrained")
    for axes, (kind, seconds) in zip(figure.subplots(1, len(runs), squeeze=False)[0], runs.items(), strict=True):
        speeds = np.array([binned_speeds(run, KINDS[kind]) for run in seconds])
        steps = (np.arange(speeds.shape[1]) + 0.5) * seconds[0].size * KINDS[kind] / speeds.shape[1]
        axes.plot(steps, speeds.T / 1000, color="#9bb7d4", linewidth=0.8)
        axes.plot(steps, np.median(speeds, axis=0) / 1000, color="#1f4e79", linewidth=2)
        ratio = np.median([first_to_rest(run) for run in seconds])
        axes.set(title=f"{kind}: first tenth / rest = {ratio:.2f}")
        axes.set(xlabel="environment step of a fresh process", ylabel="thousand environment steps/s", ylim=(0, None))
    path.parent.mkdir(parents=True, exist_ok=True)
    fill_file(path, partial(figure.savefig, dpi=110))


def print_row(kind: str, runs: list[np.ndarray]) -> None:
    """Print the ratio over the processes, and how long the very first call takes."""
    ratios = sorted(first_to_rest(seconds) for seconds in runs)
    first, usual = (1e6 * np.median([pick(seconds) for seconds in runs]) for pick in (lambda run: run[0], np.median))
    print(f"  {kind}: first tenth / rest {np.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})")
    print(f"    very first call {first:.0f} us, median call {usual:.0f} us")


def main(
    levels: tuple[str, ...] = LEVELS,
    steps: int = 10_000,
    processes: int = 5,
    out: Path = Path("runs/first_steps.png"),
) -> None:
    """Measure, print the ratios and draw.

    Args:
        levels: levels to play.
        steps: environment steps of each process.
        processes: fresh processes for each kind of environment.
        out: the picture to write.
    """
    print(describe())
    warmup()
    runs: dict[str, list[np.ndarray]] = {}
    for kind in KINDS:
        runs[kind] = [in_fresh_process(call_times, kind, levels, steps) for _ in range(processes)]
        print_row(kind, runs[kind])
    draw(runs, out)
    print(f"  {out}")


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)
