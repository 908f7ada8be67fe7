"""Environment steps per second of the vector environment, for each set of observations.

    python -m profiling.environment_speed [--levels first-steps jumps hazards] [--num-envs 256] [--steps 2000]

Random actions, frame_skip 4. Reset-only steps do not occur (same-step autoreset); the time of restarts stays in.
Observations are written into arrays of the caller whose pages have been touched. Compiling is not counted.
"""

from __future__ import annotations

import time
from typing import Annotated

import numpy as np
import tyro
from gymnasium.vector import AutoresetMode

from nclone_env import EnvironmentConfig, create_vector_environment
from nclone_env.config import DEFAULT_OBSERVATIONS, OBSERVATION_NAMES
from profiling.machine import describe

RUNS = 3


def speed(config: EnvironmentConfig, num_envs: int, steps: int) -> tuple[float, float]:
    """Return (median, best) environment steps/s of several runs."""
    env = create_vector_environment(config, num_envs, autoreset_mode=AutoresetMode.SAME_STEP)
    actions = np.random.default_rng(0).integers(0, 6, (64, num_envs))
    out = {name: np.full(space.shape, 1, space.dtype) for name, space in env.observation_space.spaces.items()}
    env.reset(seed=0, out=out)
    env.step(actions[0], out=out)
    speeds = []
    for _ in range(RUNS):
        started = time.perf_counter()
        for step in range(steps):
            env.step(actions[step % 64], out=out)
        speeds.append(num_envs * steps / (time.perf_counter() - started))
    env.close()
    return float(np.median(speeds)), max(speeds)


def main(
    levels: Annotated[tuple[str, ...], tyro.conf.arg(help="levels to play")] = ("first-steps", "jumps", "hazards"),
    num_envs: Annotated[int, tyro.conf.arg(help="environments")] = 256,
    steps: Annotated[int, tyro.conf.arg(help="steps of each run")] = 2000,
) -> None:
    """Print a row for each set of observations."""
    print(describe())
    print(f"{num_envs} environments on {', '.join(levels)}; environment steps/s, median and best of {RUNS} runs")
    subsets = [(name,) for name in OBSERVATION_NAMES] + [DEFAULT_OBSERVATIONS]
    for observations in subsets:
        median, best = speed(EnvironmentConfig(levels=levels, observations=observations), num_envs, steps)
        print(f"  {'+'.join(observations):<40}{median:>12,.0f}{best:>12,.0f}")


if __name__ == "__main__":
    tyro.cli(main)
