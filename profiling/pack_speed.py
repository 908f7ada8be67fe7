"""Compile time and size of levels, bytes of a world, and frames/s of the simulator on each of them.

    python -m profiling.pack_speed [--each] [LEVELS ...]

LEVELS are built-in sets, level files, packs or folders, the built-in sets by default; each gives one block, and all
together one more. ``--each`` lists every level. Reading files is not counted. Distance fields, which only environments
need, are apart. Frames/s are by the rule of ``profiling.simulator_speed``, in processor time, best of three runs of
20,000 frames a level.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from nclone_env.level.catalog import level_sets
from nclone_env.level.compile import compile_level
from nclone_env.level.level import Level
from nclone_env.level.level_set import LevelSet, pack
from nclone_env.level.load import load_level
from nclone_env.level.reference import LevelRef, resolve
from nclone_env.sim.state import make_worlds
from profiling.machine import describe
from profiling.simulator_speed import run

T = TypeVar("T")
FRAMES = 20_000
RUNS = 3
SLOWEST = 5
FLOOR = 200_000


class Row(NamedTuple):
    """What was measured of a level."""

    level: Level
    entities: int
    compile_ms: float
    size_kb: float
    fields_ms: float
    fields_kb: float
    world_bytes: float
    speed: float
    """Million frames/s."""


def timed(task: Callable[[], T]) -> tuple[T, float]:
    """Return the result of a call and the milliseconds it took."""
    started = time.perf_counter()
    result = task()
    return result, 1e3 * (time.perf_counter() - started)


def frames_per_second(levels: LevelSet) -> float:
    """Return the frames/s of the best of some runs."""
    worlds = make_worlds(1, levels)
    best = 0.0
    for seed in range(RUNS):
        started = time.process_time()
        counted, _ = run(levels.arrays, worlds, FRAMES, seed)
        best = max(best, counted / (time.process_time() - started))
    return best


def measure(ref: LevelRef) -> Row:
    """Return the row of a level."""
    level = ref.load()
    arrays, compile_ms = timed(lambda: compile_level(level))
    distances, fields_ms = timed(arrays.distances)
    levels = pack([level])
    size_kb, fields_kb = sum(array.nbytes for array in arrays) / 1024, distances.nbytes / 1024
    world = sum(array.nbytes for array in make_worlds(1, levels))
    entities = len(arrays.entities)
    return Row(level, entities, compile_ms, size_kb, fields_ms, fields_kb, world, frames_per_second(levels) / 1e6)


def report(source: str, rows: Sequence[Row], each: bool) -> None:
    """Print the block of an argument."""
    print(f"{source}: {len(rows)} levels")
    for what, field in (
        ("compile, ms", "compile_ms"),
        ("compiled size, KB", "size_kb"),
        ("distance fields, ms", "fields_ms"),
        ("distance fields, KB", "fields_kb"),
        ("bytes of a world", "world_bytes"),
    ):
        values = [getattr(row, field) for row in rows]
        worst = int(np.argmax(values))
        print(f"  {what:<22} median {np.median(values):8.2f}   worst {values[worst]:8.2f}  {rows[worst].level.name}")
    speeds = np.array([row.speed for row in rows])
    below = int(np.count_nonzero(speeds < FLOOR / 1e6))
    print(
        f"  {'million frames/s':<22} median {np.median(speeds):8.2f}   worst {speeds.min():8.2f}   "
        f"below {FLOOR:,}: {below}"
    )
    for index in np.argsort(speeds)[: len(rows) if each else SLOWEST]:
        level, size = rows[index].level, rows[index].world_bytes
        kinds = f"{level.raw.title!r}, {rows[index].entities} entities, {size:.0f} bytes a world"
        print(f"    {speeds[index]:8.2f}  {level.name} {kinds}")


def main(arguments: list[str]) -> None:
    """Print one block an argument, and one of all."""
    print(describe())
    each, names = "--each" in arguments, [name for name in arguments if name != "--each"]
    first = pack([load_level(next(iter(level_sets().values()))[0])])
    run(first.arrays, make_worlds(1, first), 1, 0)  # compile or load the kernels
    everything: list[Row] = []
    for source in names or list(level_sets()):
        rows = [measure(ref) for ref in resolve(source)]
        report(source, rows, each)
        everything += rows
    report("all", everything, each=False)


if __name__ == "__main__":
    main(sys.argv[1:])
