"""Which solutions teach? Success of clones of known solutions, and of solutions by the planner as found and smoothed.

One solution a level, all levels cloned into one policy; then 100 episodes a level with sampled actions and one with the
most probable actions.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import tyro

from nclone_env.env.vector import NPlusPlusVectorEnv
from nclone_env.level import known_solutions, load_level, resolve
from nclone_env.plan import smooth, solve
from nclone_env.train import TrainConfig, clone, evaluate, make_policy
from nclone_env.train.learn.demonstrations import Demonstration, trajectory_of
from profiling.measure import describe

Solutions = dict[str, np.ndarray]
"""Inputs by level name."""


def planned(names: Sequence[str], config: TrainConfig, frames: int) -> tuple[Solutions, Solutions]:
    """Return solutions with held actions, as they were found and smoothed."""
    skip, found = config.environment.frame_skip, {}
    for name in names:
        found[name] = solve(name, frames=frames, hold=skip, max_frames=config.environment.max_frames).inputs
    return found, {name: smooth(name, inputs, hold=skip) for name, inputs in found.items()}


def report(label: str, solutions: Solutions, config: TrainConfig, seeds: int) -> None:
    """Clone some solutions and print a row."""
    environment = config.unstacked_environment
    shown = [Demonstration(name, load_level(name), inputs) for name, inputs in solutions.items()]
    trajectories = [trajectory_of(demonstration, environment) for demonstration in shown]
    space = NPlusPlusVectorEnv(environment, 1).single_observation_space
    rates = []
    for seed in range(seeds):
        made = clone(make_policy(config, {"game_state": (30,)}), trajectories, space, seed=seed)
        modes = [evaluate(made.policy, config.evaluated_environment, mode, seed=1) for mode in ("sampled", "argmax")]
        rates.append([np.mean([level.success_rate for level in mode]) for mode in modes])
    frames = sum(map(len, solutions.values()))
    changes = sum(int((np.diff(inputs) != 0).sum()) for inputs in solutions.values())
    sampled, argmax = np.mean(rates, axis=0)
    print(f"{label:<34}{frames:>8}{changes:>9}{sampled:>9.0%}{argmax:>8.0%}", flush=True)


def main(
    levels: tuple[str, ...] = ("jumps", "hazards"), budgets: tuple[int, ...] = (2_000_000, 8_000_000), seeds: int = 3
) -> None:
    """Print a table.

    Args:
        levels: built-in levels or sets.
        budgets: frames that the planner simulates for each level.
        seeds: clones of each row, whose success is averaged.
    """
    print(describe())
    config = TrainConfig.of(levels=levels)
    names = [ref.name for level in levels for ref in resolve(level)]
    print(f"{'solutions':<34}{'frames':>8}{'changes':>9}{'sampled':>9}{'argmax':>8}")
    known = {name: np.frombuffer(known_solutions()[name], np.uint8) for name in names}
    report("known", known, config, seeds)
    for budget in budgets:
        found, smoothed = planned(names, config, budget)
        report(f"planned with {budget:,} frames", found, config, seeds)
        report("... smoothed", smoothed, config, seeds)


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)
