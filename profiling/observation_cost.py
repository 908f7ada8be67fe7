"""Cost of each observation alone, beside a plain copy of the same bytes: microseconds an environment, one thread.

    python -m profiling.observation_cost [--levels first-steps jumps hazards] [--num-envs 256] [--rounds 20]

Random actions, frame_skip 4, same-step autoreset. Every few steps all environments are observed several times, without
a step, into arrays whose pages have been touched; the copy goes between two such sets of arrays. A row on levels
with 700 mines each follows for what depends on the entities. Compiling is not counted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import numpy as np
import tyro
from gymnasium.vector import AutoresetMode

from nclone_env import EnvironmentConfig, NPlusPlusVectorEnv
from nclone_env.actions import NUM_ACTIONS
from nclone_env.env.threads import CALLING_THREAD
from profiling.machine import describe
from tests.obs.levels import mine_field

REPEATS = 5
STEPS_BETWEEN = 5
HALF: dict[str, Any] = {"dtype": "float16"}
CASES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("game_state", {}),
    ("game_state", HALF),
    ("game_state", {"frame_stack": 4}),
    ("entity_states", {}),
    ("entity_states", {"max_entities": 16}),
    ("entity_states", HALF),
    ("locals", {}),
    ("reachability", {}),
    ("reachability", HALF),
    ("graph", {}),
    ("action_mask", {}),
    ("player_frame", {}),
    ("global_view", {}),
)


def best_time(call: Callable[[], object]) -> float:
    """Return the seconds of the fastest of several calls."""
    times = []
    for _ in range(REPEATS):
        started = time.perf_counter()
        call()
        times.append(time.perf_counter() - started)
    return min(times)


def cost(config: EnvironmentConfig, num_envs: int, rounds: int) -> tuple[float, float, int]:
    """Return microseconds of observing and of copying, medians over rounds, and bytes, all per environment."""
    envs = NPlusPlusVectorEnv(config, num_envs, autoreset_mode=AutoresetMode.SAME_STEP, num_threads=1)
    draw = np.random.default_rng(0)
    out, other = (
        {name: np.full(space.shape, 1, space.dtype) for name, space in envs.observation_space.spaces.items()}
        for _ in range(2)
    )
    none = np.zeros(num_envs, np.bool_)
    batch = envs._batch

    def observe() -> None:
        batch.reset_call(none, out, 0)(CALLING_THREAD, 0, num_envs)
        batch.finish(out, {})

    envs.reset(seed=0, out=out)
    observing, copying = [], []
    for _ in range(rounds):
        for _ in range(STEPS_BETWEEN):
            envs.step(draw.integers(0, NUM_ACTIONS, num_envs), out=out)
        observing.append(best_time(observe))
        copying.append(best_time(lambda: [np.copyto(other[name], out[name]) for name in out]))
    envs.close()
    size = sum(array.nbytes for array in out.values()) // num_envs
    scale = 1e6 / num_envs
    return float(np.median(observing)) * scale, float(np.median(copying)) * scale, size


def table(levels: Sequence[Any], cases: Sequence[tuple[str, dict[str, Any]]], num_envs: int, rounds: int) -> None:
    """Print a row for each case."""
    for name, options in cases:
        config = EnvironmentConfig(levels=tuple(levels), observations=(name,), observation=options)  # type: ignore[arg-type]
        observed, copied, size = cost(config, num_envs, rounds)
        label = " ".join([name, *(f"{key}={value}" for key, value in options.items())])
        print(f"  {label:<34}{size:>8} bytes{observed:>10.3f} us{copied:>10.3f} us copied")


def main(
    levels: Annotated[tuple[str, ...], tyro.conf.arg(help="levels to play")] = ("first-steps", "jumps", "hazards"),
    num_envs: Annotated[int, tyro.conf.arg(help="environments")] = 256,
    rounds: Annotated[int, tyro.conf.arg(help="moments of play at which the cost is measured")] = 20,
) -> None:
    """Print the tables."""
    print(describe())
    print(f"{num_envs} environments on {', '.join(levels)}; microseconds an environment, one thread")
    table(levels, CASES, num_envs, rounds)
    print("on levels with 700 mines")
    table(
        (mine_field(),),
        [case for case in CASES if case[0] in ("entity_states", "graph", "action_mask")],
        num_envs,
        rounds,
    )


if __name__ == "__main__":
    tyro.cli(main)
