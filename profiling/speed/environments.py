"""Environment steps/s: observations, memory contracts, one and two threads, Gymnasium's vectorisers.

Random actions, frame_skip 4, same-step autoreset: no step only resets, and the time of resets is included. The cases of
a table take turns of a second, so background load affects all cases equally; the last column is the median of the
ratios to the first case within a turn. Arrays for ``out`` have all pages committed; compilation is not counted.
Gymnasium's vectorisers hold our single environment. The costs of observations are those of
``profiling.speed.observations``.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
import tyro
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv

from nclone_env import EnvironmentConfig, NPlusPlusEnv
from nclone_env.config import DEFAULT_OBSERVATIONS, OBSERVATION_NAMES
from profiling.contracts import CONTRACTS, LEVELS, STATE, begin, random_actions
from profiling.measure import describe, ratios, turns
from profiling.speed import observations

TURNS = 5
SAME_STEP = AutoresetMode.SAME_STEP
MOST_PROCESSES = 64


class Case(NamedTuple):
    """A vector environment after its reset and the call that steps all of it."""

    name: str
    env: VectorEnv
    step: Callable[[np.ndarray], object]


def our_case(name: str, contract: str, config: EnvironmentConfig, num_envs: int, threads: int | None = None) -> Case:
    """Return our vector environment under a contract."""
    env, arguments = begin(contract, config, num_envs, autoreset_mode=SAME_STEP, num_threads=threads)
    return Case(name, env, lambda actions: env.step(actions, **arguments))


def gymnasium_cases(config: EnvironmentConfig, num_envs: int) -> list[Case]:
    """Return Gymnasium's vectorisers around our single environment."""
    processes = min(num_envs, MOST_PROCESSES)
    make = [lambda: NPlusPlusEnv(config)] * num_envs
    found: list[Case] = []
    for name, env in (
        (f"AsyncVectorEnv, {processes} processes", AsyncVectorEnv(make[:processes], autoreset_mode=SAME_STEP)),
        ("SyncVectorEnv", SyncVectorEnv(make, autoreset_mode=SAME_STEP)),
    ):
        env.reset(seed=0)
        found.append(Case(name, env, env.step))
    return found


def contract_cases(config: EnvironmentConfig, num_envs: int) -> list[Case]:
    """Return our vector environment under all contracts, and Gymnasium's; processes are forked before threads start."""
    foreign = gymnasium_cases(config, num_envs)
    ways = [
        our_case(f"{contract}, {threads} thread{'s' * (threads > 1)}", contract, config, num_envs, threads)
        for threads in (2, 1)
        for contract in ("out=", *(contract for contract in CONTRACTS if contract != "out="))
    ]
    return [*ways, *foreign]


def speed(case: Case, seconds: float) -> float:
    """Return environment steps/s of a turn."""
    actions, calls = random_actions(case.env.num_envs), 0
    case.step(actions[0])
    started = time.perf_counter()
    while (passed := time.perf_counter() - started) < seconds or not calls:
        case.step(actions[calls % len(actions)])
        calls += 1
    return case.env.num_envs * calls / passed


def print_table(cases: list[Case], seconds: float) -> None:
    """Measure the cases in turns, print a row for each and close them."""
    table = turns(TURNS, [partial(speed, case, seconds) for case in cases])
    for case, speeds, ratio in zip(cases, table.T, ratios(table), strict=True):
        print(f"  {case.name:<40}{np.median(speeds):>12,.0f}{speeds.max():>12,.0f}{ratio:>9.4f}", flush=True)
        case.env.close()


def main(levels: tuple[str, ...] = LEVELS, num_envs: int = 256, seconds: float = 1.0) -> None:
    """Print a table of contracts for two sets of observations, one of all observations, and the cost of each.

    Args:
        levels: levels to play.
        num_envs: number of environments.
        seconds: length of a turn.
    """
    print(describe())
    print(f"{num_envs} environments on {', '.join(levels)}; environment steps/s of {TURNS} turns, median, best, ratio")
    for names in (STATE, DEFAULT_OBSERVATIONS):
        print(" + ".join(names))
        print_table(contract_cases(EnvironmentConfig(levels=levels, observations=names), num_envs), seconds)
    print("each observation, out=, default threads")
    subsets = [DEFAULT_OBSERVATIONS, *((name,) for name in OBSERVATION_NAMES)]
    configs = {"+".join(names): EnvironmentConfig(levels=levels, observations=names) for names in subsets}
    print_table([our_case(name, "out=", config, num_envs) for name, config in configs.items()], seconds)
    print("cost of observing alone, microseconds per environment, one thread, next to a copy of the same bytes")
    observations.table(levels, observations.CASES, num_envs, rounds=20)


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)
