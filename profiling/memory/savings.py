"""What each design choice saves: memory with the choice and without it, for each environment and for 100 and 1,000.

Every figure is measured in a fresh process: after one environment of each kind has loaded the code, environments are
made and played, and the growth of the process counts (PSS without file pages, median of several processes). The bytes
of each environment are the slope between the two sizes. Reuse of buffers is measured as the largest peak of traced
memory within a step instead. Where the product cannot do without a choice, a stand-in allocates and fills what that
would take; the table marks it. Level files are mapped, so that shared levels cost no memory that counts here.
"""

from __future__ import annotations

import statistics
import tracemalloc
from collections.abc import Callable
from typing import Any, NamedTuple

import cv2
import numpy as np
import tyro
from gymnasium.spaces import Box, Dict
from gymnasium.vector import AutoresetMode

from nclone_env import EnvironmentConfig, NPlusPlusVectorEnv
from nclone_env.config import DEFAULT_OBSERVATIONS
from nclone_env.game import WORLD_HEIGHT, WORLD_WIDTH
from nclone_env.level import Level, build_level, load_levels, shared_level_set
from profiling.contracts import LEVELS, SHORT_EPISODE, STATE, begin, random_actions, touched_arrays
from profiling.measure import describe, in_fresh_process, process_bytes

STEPS = 2 * SHORT_EPISODE // 4 + 8  # every episode ends at least twice
EPISODE_STEPS = SHORT_EPISODE // 4
TRACED_STEPS = 20
ROLLOUT, DEPTH = 16, 4
MINES = 400
VECTORS = ("game_state", "entity_states", "reachability")
NEXT_STEP, SAME_STEP = AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP


class Choice(NamedTuple):
    """A design choice.

    Attributes:
        name: the choice, and what it is compared with.
        stand_in: whether the script stands in for the product without the choice.
        hold: given whether the choice is made and the number of environments, return what is to be measured: memory
            that is kept, or an integer, the bytes themselves.
        warms_both: whether the code of both sides is loaded before the measurement.
    """

    name: str
    stand_in: bool
    hold: Callable[[bool, int], Any]
    warms_both: bool = True


class Found(NamedTuple):
    """Bytes with and without a choice, for the smaller and for the larger number of environments."""

    choice: Choice
    made: tuple[float, float]
    without: tuple[float, float]


def played(
    num_envs: int,
    observations: tuple[str, ...] = STATE,
    mode: AutoresetMode = NEXT_STEP,
    levels: tuple[Any, ...] = LEVELS,
    **fields: Any,
) -> tuple[NPlusPlusVectorEnv, dict[str, Any]]:
    """Return environments with ``out`` arrays after their steps; resets spread the ends of episodes over the steps."""
    config = EnvironmentConfig(levels=levels, observations=observations, max_frames=SHORT_EPISODE, **fields)
    env, arguments = begin("out=", config, num_envs, autoreset_mode=mode)
    actions, turn = random_actions(num_envs, rows=7), np.arange(num_envs) % EPISODE_STEPS
    for step in range(EPISODE_STEPS + STEPS):
        if step < EPISODE_STEPS:
            env.reset(options={"reset_mask": turn == step}, **arguments)
        env.step(actions[step % len(actions)], **arguments)
    return env, arguments


def levels_shared(made: bool, num_envs: int) -> Any:
    """All environments read one level set; without: each has a copy of its arrays."""
    level_set = shared_level_set(load_levels(LEVELS))
    arrays = (*level_set.arrays, *level_set.fields)
    copies = [] if made else [[array.copy() for array in arrays] for _ in range(num_envs)]
    return played(num_envs), copies


def pictures_composed(made: bool, num_envs: int) -> Any:
    """Grey pictures are composed of glyphs; without: each environment draws in colour and converts to grey."""
    surfaces = []
    for _ in range(0 if made else num_envs):
        surface = np.full((WORLD_HEIGHT, WORLD_WIDTH, 3), 96, np.uint8)
        surfaces.append((surface, cv2.cvtColor(surface, cv2.COLOR_RGB2GRAY)))
    return played(num_envs, DEFAULT_OBSERVATIONS), surfaces


def buffers_reused(made: bool, num_envs: int) -> int:
    """Steps write into the same arrays; without: into new ones. The largest peak of a step counts, bytes."""
    env, arguments = played(num_envs, DEFAULT_OBSERVATIONS)
    actions, spaces, peak = random_actions(num_envs), env.observation_space.spaces, 0
    tracemalloc.start()
    for row in actions[:TRACED_STEPS]:
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        out = arguments["out"] if made else {name: np.empty(box.shape, box.dtype) for name, box in spaces.items()}
        env.step(row, out=out)
        del out
        peak = max(peak, tracemalloc.get_traced_memory()[1] - before)
    tracemalloc.stop()
    return peak


def written_in_place(made: bool, num_envs: int) -> Any:
    """Steps write into the rows of a rollout; without: into arrays of the environment, which are copied there."""
    config = EnvironmentConfig(levels=LEVELS, observations=DEFAULT_OBSERVATIONS, max_frames=SHORT_EPISODE)
    env = NPlusPlusVectorEnv(config, num_envs)
    rows = [touched_arrays(env) for _ in range(ROLLOUT)]
    env.reset(seed=0, out=rows[0] if made else None)
    for step, actions in enumerate(random_actions(num_envs)):
        row = rows[step % ROLLOUT]
        if made:
            env.step(actions, out=row)
        else:
            copy_into(row, env.step(actions)[0])
    return env, rows


def copy_into(row: dict[str, np.ndarray], observations: dict[str, np.ndarray]) -> None:
    """Copy observations to the arrays of a row."""
    for name, array in observations.items():
        row[name][...] = array


def vectors_halved(made: bool, num_envs: int) -> Any:
    """Vectors are float16; without: float32."""
    return played(num_envs, VECTORS, observation={"dtype": "float16" if made else "float32"})


def entities_listed(made: bool, num_envs: int) -> Any:
    """The 32 nearest entities are listed; without: a table of all entities of the level."""
    observations = ("game_state", "entity_states") if made else STATE
    tables = np.full((0 if made else num_envs, MINES + 2, 12), 1, np.float32)
    kinds = np.full(tables.shape[:2], 1, np.uint8)
    return played(num_envs, observations, levels=(crowded_level(),)), tables, kinds


def stacks_gathered(made: bool, num_envs: int) -> Any:
    """The trainer stores each observation once and gathers stacks of 4; without: it stores stacks.

    Both store a rollout of 16 steps; gathering includes the stacks that the policy sees.
    """
    from nclone_env.train.collect.rollout import RolloutStorage

    space = NPlusPlusVectorEnv(num_envs=1, observations=DEFAULT_OBSERVATIONS).single_observation_space
    if not made:
        space = Dict({name: Box(0, 1, (DEPTH, *box.shape), box.dtype) for name, box in space.spaces.items()})  # type: ignore[arg-type]
    storage = RolloutStorage(ROLLOUT, num_envs, space, DEPTH if made else 1)
    storage.commit()
    columns = storage.columns(0, num_envs)
    columns.observation()
    return storage, columns


def unnamed_left_out(made: bool, num_envs: int) -> Any:
    """Observations that are not named cost nothing; without: graph and reachability are named."""
    return played(num_envs, STATE if made else (*STATE, "graph", "reachability"))


def final_observations(made: bool, num_envs: int) -> Any:
    """Next-step autoreset keeps no final observations; without: same-step autoreset, which does."""
    return played(num_envs, DEFAULT_OBSERVATIONS, NEXT_STEP if made else SAME_STEP)


CHOICES = (
    Choice("levels shared / a copy for each", True, levels_shared),
    Choice("pictures composed / RGB surface and grey copy", True, pictures_composed),
    Choice("buffers reused / new in each step, bytes of a step", True, buffers_reused),
    Choice(f"out= rows of {ROLLOUT} steps / default and a copy", False, written_in_place),
    Choice("vectors float16 / float32", False, vectors_halved),
    Choice(f"32 nearest entities / table of all {MINES + 2}", True, entities_listed),
    Choice(f"stacks of {DEPTH} gathered / stored, {ROLLOUT} steps", True, stacks_gathered),
    Choice("graph, reachability not named / named", False, unnamed_left_out, warms_both=False),
    Choice("next-step / same-step with final observations", False, final_observations),
)


def crowded_level() -> Level:
    """Return an open level with a grid of mines."""
    mines = [f"mine {12 + 6 * (index % 25)} {34 + 3 * (index // 25)}" for index in range(MINES)]
    return build_level("exit 30 20", "exit_switch 26 20", *mines, spawn=(20, 20))


def measured(number: int, made: bool, num_envs: int) -> int:
    """Return the bytes of one side of a choice in this process."""
    choice = CHOICES[number]
    for side in (True, False) if choice.warms_both else (True,):
        choice.hold(side, 1)
    process_bytes()  # the first reading takes a page itself
    before = process_bytes()
    kept = choice.hold(made, num_envs)
    return kept if isinstance(kept, int) else process_bytes() - before


def find(number: int, sizes: tuple[int, int], processes: int) -> Found:
    """Measure both sides of a choice for both numbers of environments, in fresh processes."""

    def side(made: bool) -> tuple[float, float]:
        few, many = (
            statistics.median(in_fresh_process(measured, number, made, size) for _ in range(processes))
            for size in sizes
        )
        return few, many

    return Found(CHOICES[number], side(True), side(False))


def slope(totals: tuple[float, float], sizes: tuple[int, int]) -> float:
    """Return the bytes of each environment."""
    return (totals[1] - totals[0]) / (sizes[1] - sizes[0])


def print_row(found: Found, sizes: tuple[int, int]) -> None:
    """Print bytes for each environment with and without the choice, and MB for both sizes."""
    made, without = slope(found.made, sizes), slope(found.without, sizes)
    megabytes = "".join(
        f"{value / 1e6:>11.2f}" for pair in zip(found.made, found.without, strict=True) for value in pair
    )
    mark = "*" if found.choice.stand_in else ""
    print(
        f"  {found.choice.name + mark:<54}{made:>12,.0f}{without:>12,.0f}{without - made:>12,.0f}{megabytes}",
        flush=True,
    )


def main(few: int = 100, many: int = 1000, processes: int = 3) -> None:
    """Print a row for each choice.

    Args:
        few: the smaller number of environments.
        many: the larger number of environments.
        processes: fresh processes for each figure.
    """
    print(describe())
    print(
        f"bytes for each environment between {few} and {many}, with the choice, without it and saved; MB of both sizes"
    )
    titles = ("with", "without", "saved")
    sizes = (few, many)
    totals = "".join(f"{title + f' {size}':>11}" for size in sizes for title in ("with", "w/o"))
    print(f"  {'(* stand-in)':<54}" + "".join(f"{title:>12}" for title in titles) + totals)
    for number in range(len(CHOICES)):
        print_row(find(number, sizes, processes), sizes)


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)
