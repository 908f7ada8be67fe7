"""Cost of copying, gathering and hashing worlds inside kernels, and of snapshots as bytes; bytes a world.

    python -m profiling.snapshot_speed [LEVELS ...]

LEVELS are built-in sets, level files, packs or folders, the built-in sets by default; each gives one row with the
median and the worst of its levels. A level is packed alone, so a world is as large as that level needs. Worlds are
copied in states that random play passes through, all of them in cache. The bytes form is timed on an environment with
``game_state`` observations: ``set_state`` checks, restores and observes. Compiling is not counted.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np

from nclone_env import NPlusPlusEnv
from nclone_env.jit import kernel
from nclone_env.level.catalog import level_sets
from nclone_env.level.level import Level
from nclone_env.level.level_set import pack
from nclone_env.level.load import load_levels
from nclone_env.level.records import count_exits
from nclone_env.sim.copy import copy_world, gather_worlds, hash_world
from nclone_env.sim.state import WorldArrays, make_worlds
from profiling.machine import describe
from profiling.simulator_speed import sample

WORLDS = 16
ROUNDS = 100
RUNS = 5
CALLS = 200
COLUMNS = ("bytes a world", "copy ns", "gather ns", "hash ns", "get_state us", "set_state us")


@kernel
def copy_all(source, target, rounds):
    """Copy every world to another place, several times."""
    count = source.ninjas.shape[0]
    for shift in range(rounds):
        for index in range(count):
            copy_world(source, index, target, (index + shift) % count)


@kernel
def gather_all(source, target, indices, rounds):
    """Gather all worlds, several times."""
    for _ in range(rounds):
        gather_worlds(source, indices, target)


@kernel
def hash_all(worlds, rounds):
    """Return all hashes, taken several times and mixed so that none can be left out."""
    mixed = np.uint64(0)
    for _ in range(rounds):
        for index in range(worlds.ninjas.shape[0]):
            mixed ^= hash_world(worlds, index)
        worlds.ninjas[0]["frame"] += 1
    return mixed


def best_seconds(task: Callable[[], object], calls: int) -> float:
    """Return the time of one of ``calls`` calls, or of a call that does as many things; best of several runs."""
    task()
    best = float("inf")
    for _ in range(RUNS):
        started = time.perf_counter()
        task()
        best = min(best, time.perf_counter() - started)
    return best / calls


def measure(level: Level) -> tuple[float, ...]:
    """Return the figures of a level, in the order of ``COLUMNS``; those of the bytes form are nan without an exit."""
    levels = pack([level])
    source, target = make_worlds(WORLDS, levels), make_worlds(WORLDS, levels)
    sample(levels.arrays, source, 1)
    indices = np.random.default_rng(0).integers(0, WORLDS, WORLDS)
    many = WORLDS * ROUNDS
    kernels = (
        best_seconds(lambda: copy_all(source, target, ROUNDS), many),
        best_seconds(lambda: gather_all(source, target, indices, ROUNDS), many),
        best_seconds(lambda: hash_all(source, ROUNDS), many),
    )
    return (world_bytes(source), *(1e9 * value for value in kernels), *measure_bytes_form(level))


def world_bytes(worlds: WorldArrays) -> int:
    """Return the bytes of one world."""
    return sum(array.nbytes // len(array) for array in worlds)


def measure_bytes_form(level: Level) -> tuple[float, float]:
    """Return microseconds of ``get_state`` and ``set_state``."""
    if not count_exits(level.raw.records):
        return float("nan"), float("nan")
    env = NPlusPlusEnv(levels=(level,), observations=("game_state",))
    env.reset(seed=0)
    state = env.get_state()
    taken = best_seconds(lambda: [env.get_state() for _ in range(CALLS)], CALLS)
    restored = best_seconds(lambda: [env.set_state(state)[1] for _ in range(CALLS)], CALLS)
    env.close()
    return 1e6 * taken, 1e6 * restored


def main(names: list[str]) -> None:
    """Print one row an argument."""
    print(describe())
    sources = names or list(level_sets())
    print(f"{'median / worst':<28}{'levels':>7}" + "".join(f"{name:>16}" for name in COLUMNS) + "  largest world")
    for source in sources:
        levels = load_levels([source])
        rows = np.array([measure(level) for level in levels])
        cells = (f"{np.nanmedian(column):.4g} / {np.nanmax(column):.4g}" for column in rows.T)
        largest = levels[int(rows[:, 0].argmax())].name
        print(f"{source[-27:]:<28}{len(levels):>7}" + "".join(f"{cell:>16}" for cell in cells) + f"  {largest}")


if __name__ == "__main__":
    main(sys.argv[1:])
