"""Bytes allocated by a vector step, and memory growth over many steps, for each memory contract.

Each row is measured in a process of its own: random actions, frame_skip 4, episodes of 61 steps, so that many end.
After a warm-up that touches all memory, the growth of the process over ``steps`` environment steps is measured as PSS
without file pages, which other processes would disturb. Then tracemalloc traces the same number of steps: the largest
peak of a vector step above the level before it, and the growth from first to last. Gymnasium's SyncVectorEnv of our
single environment plays a twentieth of the steps.
"""

from __future__ import annotations

import gc
import itertools
import tracemalloc
from typing import Any, NamedTuple

import numpy as np
import tyro
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv

from nclone_env import EnvironmentConfig, NPlusPlusEnv
from nclone_env.config import DEFAULT_OBSERVATIONS
from profiling.contracts import (
    CONTRACTS,
    LEVELS,
    SHORT_EPISODE,
    STATE,
    begin,
    random_actions,
    restart_ended,
)
from profiling.measure import describe, in_fresh_process, process_bytes

GYMNASIUM = "Gymnasium's SyncVectorEnv"
GYMNASIUM_SHARE = 20
WARM_STEPS = 260  # over four episodes: every batch has touched the memory that ends of episodes write


class Allocation(NamedTuple):
    """Bytes: the largest peak of a vector step, and the growth over all steps, traced and of the process."""

    peak: int
    traced_growth: int
    process_growth: int


def make(contract: str, mode: str, config: EnvironmentConfig, num_envs: int) -> tuple[VectorEnv, dict[str, Any]]:
    """Return a vector environment after its reset and the arguments of its steps."""
    if contract != GYMNASIUM:
        return begin(contract, config, num_envs, autoreset_mode=mode)
    env = SyncVectorEnv([lambda: NPlusPlusEnv(config)] * num_envs, autoreset_mode=AutoresetMode(mode))
    env.reset(seed=0)
    return env, {}


def play(env: VectorEnv, arguments: dict[str, Any], actions: list[np.ndarray], calls: int) -> None:
    """Make a number of vector steps."""
    for row in itertools.islice(itertools.cycle(actions), calls):
        restart_ended(env, env.step(row, **arguments), arguments)


def largest_peak(env: VectorEnv, arguments: dict[str, Any], actions: list[np.ndarray], calls: int) -> int:
    """Return the largest peak of traced memory of a vector step, above the level before the step."""
    peaks = np.zeros(calls, np.int64)  # not a list or a maximum: they allocate while a step is measured
    for call, row in zip(range(calls), itertools.cycle(actions), strict=False):
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        step = env.step(row, **arguments)
        peaks[call] = tracemalloc.get_traced_memory()[1] - before
        restart_ended(env, step, arguments)
        del step
    return int(peaks.max())


def measure(
    contract: str, mode: str, levels: tuple[str, ...], observations: tuple[str, ...], num_envs: int, steps: int
) -> Allocation:
    """Measure one row in this process."""
    config = EnvironmentConfig(levels=levels, observations=observations, max_frames=SHORT_EPISODE)
    env, arguments = make(contract, mode, config, num_envs)
    actions = random_actions(num_envs)
    calls = -(-steps // num_envs)
    play(env, arguments, actions, WARM_STEPS)
    process = process_bytes()
    play(env, arguments, actions, calls)
    process = process_bytes() - process
    tracemalloc.start()
    largest_peak(env, arguments, actions, WARM_STEPS)
    traced = np.zeros(3, np.int64)  # not Python's integers, which would be traced
    traced[0] = _collected_traced()
    play(env, arguments, actions, WARM_STEPS)  # a collection empties Python's free lists, which steps fill again
    traced[1] = largest_peak(env, arguments, actions, calls)
    traced[2] = _collected_traced()
    tracemalloc.stop()
    env.close()
    return Allocation(int(traced[1]), int(traced[2] - traced[0]), process)


def _collected_traced() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


def main(levels: tuple[str, ...] = LEVELS, num_envs: int = 256, steps: int = 1_000_000) -> None:
    """Print a row for each contract, autoreset mode and set of observations.

    Args:
        levels: levels to play.
        num_envs: number of environments.
        steps: environment steps over which growth is measured.
    """
    print(describe())
    print(f"{num_envs} environments on {', '.join(levels)}; bytes; growth over {steps:,} environment steps")
    print(f"  {'':<56}{'peak of a step':>16}{'traced growth':>16}{'process growth':>16}")
    for observations in (STATE, DEFAULT_OBSERVATIONS):
        for contract, mode in itertools.product((*CONTRACTS, GYMNASIUM), (mode.value for mode in AutoresetMode)):
            share = GYMNASIUM_SHARE if contract == GYMNASIUM else 1
            row = in_fresh_process(measure, contract, mode, levels, observations, num_envs, steps // share)
            label = f"{contract}, {mode}, {'state' if observations == STATE else 'state + frames'}"
            print(f"  {label:<56}" + "".join(f"{value:>16,}" for value in row), flush=True)


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)
