"""Cost of copying, gathering and hashing worlds inside kernels, and of snapshots as bytes; bytes per world.

Each row gives the median and the worst of the levels of an argument. A level is packed alone, so a world is as large as
that level needs. Worlds are copied in states of random play, all of them in cache. The bytes form is timed on an
environment with ``game_state`` observations: ``set_state`` checks, restores and observes. Compilation is not counted.
"""

from __future__ import annotations

import numpy as np
import tyro
from tyro.conf import Positional

from nclone_env import NPlusPlusEnv
from nclone_env.jit import kernel
from nclone_env.level import Level, count_exits, load_levels
from nclone_env.sim import Session, WorldArrays, copy_world, gather_worlds, hash_world, world_at
from profiling.measure import basic_sets, best_of, describe
from profiling.speed.simulator import sample

WORLDS = 16
ROUNDS = 100
RUNS = 5
CALLS = 200
COLUMNS = ("bytes per world", "copy ns", "gather ns", "hash ns", "get_state us", "set_state us")


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
    """Hash all worlds several times; return all hashes combined, so that none is optimised away."""
    mixed = np.uint64(0)
    for _ in range(rounds):
        for index in range(worlds.ninjas.shape[0]):
            mixed ^= hash_world(worlds, index)
        worlds.ninjas[0]["frame"] += 1
    return mixed


def measure(level: Level) -> tuple[float, ...]:
    """Return the figures of a level, in the order of ``COLUMNS``; those of the bytes form are nan without an exit."""
    session = Session(level, WORLDS)
    source, target = session.worlds, Session(level, WORLDS).worlds
    sample(session.levels, source, 1)
    indices = np.random.default_rng(0).integers(0, WORLDS, WORLDS)
    kernels = (
        best_of(RUNS, lambda: copy_all(source, target, ROUNDS)),
        best_of(RUNS, lambda: gather_all(source, target, indices, ROUNDS)),
        best_of(RUNS, lambda: hash_all(source, ROUNDS)),
    )
    nanoseconds = (1e9 * seconds / (WORLDS * ROUNDS) for seconds in kernels)
    return (world_bytes(source), *nanoseconds, *measure_bytes_form(level))


def world_bytes(worlds: WorldArrays) -> int:
    """Return the bytes of one world."""
    return len(world_at(worlds, 0).tobytes())


def measure_bytes_form(level: Level) -> tuple[float, float]:
    """Return microseconds of ``get_state`` and ``set_state``."""
    if not count_exits(level.raw.records):
        return float("nan"), float("nan")
    env = NPlusPlusEnv(levels=(level,), observations=("game_state",))
    env.reset(seed=0)
    state = env.get_state()
    taken = best_of(RUNS, lambda: [env.get_state() for _ in range(CALLS)])
    restored = best_of(RUNS, lambda: [env.set_state(state)[1] for _ in range(CALLS)])
    env.close()
    return 1e6 * taken / CALLS, 1e6 * restored / CALLS


def main(levels: Positional[tuple[str, ...]] = ()) -> None:
    """Print a row for each argument.

    Args:
        levels: built-in sets, level files, packs or folders; the basic sets by default.
    """
    print(describe())
    print(f"{'median / worst':<28}{'levels':>7}" + "".join(f"{name:>16}" for name in COLUMNS) + "  largest world")
    for source in levels or basic_sets():
        loaded = load_levels([source])
        rows = np.array([measure(level) for level in loaded])
        cells = (f"{np.nanmedian(column):.4g} / {np.nanmax(column):.4g}" for column in rows.T)
        largest = loaded[int(rows[:, 0].argmax())].name
        print(f"{source[-27:]:<28}{len(loaded):>7}" + "".join(f"{cell:>16}" for cell in cells) + f"  {largest}")


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)
