"""Level sets side by side: the cost of a step with each observation, the speed of training, bytes of worlds and levels.

Levels of players have more entities than the built-in ones, so a figure holds for the levels it was measured on. The
first argument is what the others are compared with. Within a row the sets take turns; ratios are medians over turns.

- microseconds of processor time of a vector step, for each environment: one thread, random actions, ``out=``, same-step
  autoreset;
- environment steps/s of training with the defaults, all threads, each turn in a process of its own;
- bytes of a world (``profiling.memory.worlds``), and of the arrays of a level, which all environments share.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import tyro
from tyro.conf import Positional

from nclone_env import EnvironmentConfig
from nclone_env.config import OBSERVATION_NAMES
from nclone_env.level.level_set import shared_level_set
from nclone_env.level.load import load_levels
from profiling.contracts import LEVELS, random_actions
from profiling.measure import describe, in_fresh_process, ratios, timed, turns
from profiling.memory.worlds import bytes_of_worlds
from profiling.speed.environments import Case, our_case
from profiling.training.speed import ours

TURNS = 5
WARM_STEPS = 200  # until episodes are at all their frames


def cost(case: Case, seconds: float) -> float:
    """Return microseconds of processor time of a step for each environment."""
    actions, steps, spent = random_actions(case.env.num_envs), 0, 0.0
    while spent < seconds:
        spent += timed(lambda: [case.step(row) for row in actions], time.process_time)[1]
        steps += len(actions) * case.env.num_envs
    return 1e6 * spent / steps


def observation_row(name: str, sets: Sequence[tuple[str, ...]], num_envs: int, seconds: float) -> np.ndarray:
    """Return (turns, sets) float64: the costs with one observation."""
    cases = []
    for levels in sets:
        config = EnvironmentConfig(levels=levels, observations=(name,))  # type: ignore[arg-type]
        cases.append(our_case(name, "out=", config, num_envs, threads=1))
        for step in range(WARM_STEPS):
            cases[-1].step(random_actions(num_envs)[step % 64])
    table = turns(TURNS, [partial(cost, case, seconds) for case in cases])
    for case in cases:
        case.env.close()
    return table


def bytes_of_a_level(names: tuple[str, ...]) -> float:
    """Return the bytes of the arrays of levels, distance fields included, for each level."""
    levels = load_levels(names)
    return shared_level_set(levels).memory().total_bytes / len(levels)


def print_row(name: str, table: np.ndarray, form: Callable[[float], str]) -> None:
    """Print the medians of a table of turns, and their ratios to the first column."""
    cells = zip(np.median(table, axis=0), ratios(table), strict=True)
    print(f"{name:<18}" + "".join(f"{form(value):>12}{ratio:>7.2f}" for value, ratio in cells), flush=True)


def main(
    levels: Positional[tuple[str, ...]] = (), num_envs: int = 256, seconds: float = 0.3, training: float = 5.0
) -> None:
    """Print the table.

    Args:
        levels: level sets, packs or files, each a column after that of the built-in levels.
        num_envs: number of environments.
        seconds: length of a turn.
        training: length of a turn of training; 0: none.
    """
    sets = [LEVELS, *((source,) for source in levels)]
    print(describe())
    print(f"{'':18}" + "".join(f"{', '.join(names)[-18:]:>19}" for names in sets))
    for name in OBSERVATION_NAMES:
        print_row(name, observation_row(name, sets, num_envs, seconds), "{:,.2f} us".format)
    if training:
        tasks = [partial(in_fresh_process, ours, names, training, {}) for names in sets]
        print_row("training steps/s", turns(TURNS, tasks), "{:,.0f}".format)
    worlds = [sum(bytes_of_worlds(names, 1024, 4000).values()) for names in sets]
    print_row("bytes of a world", np.array([worlds]), "{:,.0f}".format)
    print_row("bytes of a level", np.array([list(map(bytes_of_a_level, sets))]), "{:,.0f}".format)


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)
