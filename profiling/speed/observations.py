"""Cost of each observation alone, next to a plain copy of the same bytes: microseconds per environment, one thread.

Random actions, frame_skip 4, same-step autoreset. Every few steps all environments are observed several times without a
step (a ``reset`` of none of them), into arrays with all pages committed; the copy goes between two such sets of arrays.
Observations that depend on the entities have a second row, on a level with 700 mines. Compilation is not counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tyro
from gymnasium.vector import AutoresetMode

from nclone_env import Action, EnvironmentConfig, NPlusPlusVectorEnv
from nclone_env.level import Level, build_level
from profiling.contracts import LEVELS, touched_arrays
from profiling.measure import best_of, describe

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
    ("free_motion", {}),
    ("action_outcomes", {}),
    ("action_outcomes", {"outcome_frames": 12}),
    ("graph", {}),
    ("action_mask", {}),
    ("player_frame", {}),
    ("global_view", {}),
)


def cost(config: EnvironmentConfig, num_envs: int, rounds: int) -> tuple[float, float, int]:
    """Return microseconds of observing and of copying, medians over rounds, and bytes, all per environment."""
    envs = NPlusPlusVectorEnv(config, num_envs, autoreset_mode=AutoresetMode.SAME_STEP, num_threads=1)
    draw = np.random.default_rng(0)
    out, other = touched_arrays(envs), touched_arrays(envs)
    none = {"reset_mask": np.zeros(num_envs, np.bool_)}
    envs.reset(seed=0, out=out)
    observing, copying = [], []
    for _ in range(rounds):
        for _ in range(STEPS_BETWEEN):
            envs.step(draw.integers(0, len(Action), num_envs), out=out)
        observing.append(best_of(REPEATS, lambda: envs.reset(options=none, out=out)))
        copying.append(best_of(REPEATS, lambda: [np.copyto(other[name], out[name]) for name in out]))
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


def mine_field() -> Level:
    """Return an empty level with an exit and 700 mines in random places."""
    draw = np.random.default_rng(2)
    xs, ys = draw.integers(8, 168, 700), draw.integers(8, 92, 700)
    mines = [f"mine {x} {y}" for x, y in zip(xs, ys)]
    return build_level(*mines, "exit 20 90", "exit_switch 150 90", spawn=(84, 50), title="mine field")


def main(levels: tuple[str, ...] = LEVELS, num_envs: int = 256, rounds: int = 20) -> None:
    """Print the tables.

    Args:
        levels: levels to play.
        num_envs: number of environments.
        rounds: times at which play stops for a measurement.
    """
    print(describe())
    print(f"{num_envs} environments on {', '.join(levels)}; microseconds per environment, one thread")
    table(levels, CASES, num_envs, rounds)
    print("on a level with 700 mines")
    of_entities = [case for case in CASES if case[0] in ("entity_states", "graph", "action_outcomes", "action_mask")]
    table((mine_field(),), of_entities, num_envs, rounds)


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)
