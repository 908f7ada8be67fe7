"""What does ``train --levels PACK`` reach with each recipe? Success on levels of authors that no run trained on.

A run trains on some packs, or on parts of them, with the options of a recipe and as many steps as are given, then plays
the levels of other packs with sampled actions: episodes of 1,800 frames. Processor time is that of the updates, on one
thread; planned solutions are kept from run to run. Intervals are 95 % of a bootstrap over levels.

    python -m profiling.training.recipes --levels train.txt --held-out a.txt b.txt --runs defaults=15e6 game-motion=3e6
    python -m profiling.training.recipes --levels train.txt --held-out a.txt --sizes 100 400 --runs game-motion=5e6
"""

from __future__ import annotations

import itertools
import random
import tempfile
import time
from collections.abc import Sequence

import numpy as np
import tyro

from nclone_env.config import EnvironmentConfig
from nclone_env.level.load import readable, resolve
from nclone_env.train import ActorCritic, Hooks, LevelResult, TrainConfig, evaluate, read_recipe, train
from profiling.measure import describe

MAX_FRAMES = 1800
_SAMPLES = 2000


def success(results: Sequence[LevelResult]) -> str:
    """Return the share of attempts that won, with its interval, and that of levels that any attempt won."""
    rates = np.array([result.success_rate for result in results])
    draws = np.random.default_rng(0).integers(len(rates), size=(_SAMPLES, len(rates)))
    low, high = np.percentile(rates[draws].mean(axis=1), (2.5, 97.5))
    return f"{rates.mean():7.1%} ({low:.1%} to {high:.1%}){(rates > 0).mean():8.1%}"


def play(policy: ActorCritic | None, environment: EnvironmentConfig, packs: tuple[str, ...], attempts: int) -> str:
    """Play the levels of packs; uniform random actions without a policy."""
    played = environment.replace(levels=packs, mirrored=False, max_frames=MAX_FRAMES)
    return success(evaluate(policy, played, "sampled", attempts, seed=1, num_threads=1))


def part(packs: tuple[str, ...], size: int) -> tuple[str, ...]:
    """Return the names of so many readable levels of packs, the same ones first; of all if ``size`` is 0."""
    names = [level.reference for pack in packs for level, _ in readable(resolve(pack))]
    random.Random(0).shuffle(names)
    return tuple(names[: size or None])


def one_run(config: TrainConfig, init: str, packs: tuple[str, ...], attempts: int) -> str:
    """Train once, from another policy if it is named, and return the rest of the row."""
    asked: list[float] = []  # to stop: before each update, and in the preparation
    hooks = Hooks(stop=lambda: bool(asked.append(time.process_time())))
    with tempfile.TemporaryDirectory() as folder:
        result = train(config.replace(output=folder), hooks, init=init or None)
    seconds = time.process_time() - asked[-result.counters.updates]
    last = result.curve[-1]  # without a success rate if no episode could have ended by then
    first = next((row for row in result.curve if not np.isnan(row["success_rate"])), last)
    curve = f"{first['success_rate']:8.1%}{last['success_rate']:8.1%}{last['mean_frames']:8.0f}{last['entropy']:9.2f}"
    return f"{seconds:8.0f} s{curve}  {play(result.policy, config.environment, packs, attempts)}"


def main(
    levels: tuple[str, ...],
    held_out: tuple[str, ...],
    runs: tuple[str, ...] = ("defaults=2000000", "game-motion=2000000"),
    seeds: int = 2,
    sizes: tuple[int, ...] = (0,),
    attempts: int = 8,
) -> None:
    """Print a row for each run.

    Args:
        levels: packs to train on.
        held_out: packs to play afterwards.
        runs: recipes with the steps of a run, NAME=STEPS; NAME+INIT=STEPS begins with another policy.
        seeds: runs of each.
        sizes: numbers of levels to train on, each part within the larger ones; 0 stands for all.
        attempts: episodes of each level that is played.
    """
    print(describe())
    head = f"{'recipe':<24}{'levels':>7}{'seed':>5}{'steps':>13}{'processor':>10}{'first':>8}{'last':>8}{'frames':>8}"
    print(f"{head}{'entropy':>9}  held out, sampled (95 %)      any")
    print(f"{'random':<99}{play(None, TrainConfig().environment, held_out, attempts)}", flush=True)
    for size, run, seed in itertools.product(sizes, runs, range(seeds)):
        title, _, steps = run.partition("=")
        name, _, init = title.partition("+")
        chosen = part(levels, size)
        config = read_recipe(name).config.replace(
            levels=chosen, total_timesteps=int(float(steps)), seed=seed, num_threads=1, track="none"
        )
        row = one_run(config, init, held_out, attempts)
        print(f"{title:<24}{len(chosen):7,}{seed:5}{config.total_timesteps:13,}{row}", flush=True)


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)
