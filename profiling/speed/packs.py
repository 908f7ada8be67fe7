"""Compile time and size of levels, bytes per world, and frames/s of the simulator on each level of packs.

Reading files is not counted. Distance fields, which only environments need, are measured apart. Frames/s follow the
rules of ``profiling.speed.simulator``, in processor time, best of three runs of 20,000 frames per level.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import NamedTuple

import numpy as np
import tyro
from tyro.conf import Positional

from nclone_env.errors import LevelFormatError
from nclone_env.level import Level, LevelRef, LevelSet, load_level, pack, resolve
from nclone_env.level.compile import compile_level, level_distances
from nclone_env.sim.state import make_worlds
from profiling.measure import basic_sets, describe, timed
from profiling.speed.simulator import run

FRAMES = 20_000
RUNS = 3
SLOWEST = 5
FLOOR = 200_000


class Row(NamedTuple):
    """The measurements of a level."""

    level: Level
    entities: int
    compile_ms: float
    size_kb: float
    fields_ms: float
    fields_kb: float
    world_bytes: float
    speed: float
    """Million frames/s."""


def frames_per_second(levels: LevelSet) -> float:
    """Return the frames/s of the fastest of several runs."""
    worlds = make_worlds(1, levels)

    def speed(seed: int) -> float:
        (counted, _), seconds = timed(lambda: run(levels.arrays, worlds, FRAMES, seed), time.process_time)
        return counted / seconds

    return max(speed(seed) for seed in range(RUNS))


def measure(ref: LevelRef) -> Row:
    """Return the row of a level."""
    level = ref.load()
    arrays, compiling = timed(lambda: compile_level(level))
    distances, measuring = timed(lambda: level_distances(arrays))
    levels = pack([level])
    size_kb, fields_kb = (sum(array.nbytes for array in part) / 1024 for part in (arrays, distances))
    world = sum(array.nbytes for array in make_worlds(1, levels))
    entities = len(arrays.entities)
    speed = frames_per_second(levels) / 1e6
    return Row(level, entities, 1e3 * compiling, size_kb, 1e3 * measuring, fields_kb, world, speed)


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
        f"harmonic mean {1 / np.mean(1 / speeds):.2f}   below {FLOOR:,}: {below}"
    )
    for index in np.argsort(speeds)[: len(rows) if each else SLOWEST]:
        level, size = rows[index].level, rows[index].world_bytes
        kinds = f"{level.raw.title!r}, {rows[index].entities} entities, {size:.0f} bytes a world"
        print(f"    {speeds[index]:8.2f}  {level.name} {kinds}")


def sampled(sources: Iterable[str], count: int) -> list[LevelRef]:
    """Return the readable levels with the smallest digests: a sample that the contents alone decide."""
    digests = {}
    for ref in (ref for source in sources for ref in resolve(source)):
        with suppress(LevelFormatError):
            digests[ref.load().raw.digest] = ref
    return [digests[digest] for digest in sorted(digests)[:count]]


def main(levels: Positional[tuple[str, ...]] = (), each: bool = False, sample: int | None = None) -> None:
    """Print a block for each argument, and one for all.

    Args:
        levels: built-in sets, level files, packs or folders; the basic sets by default.
        each: list every level, not only the slowest.
        sample: measure only so many levels of all arguments together, those with the smallest digests.
    """
    print(describe())
    first = pack([load_level(next(iter(basic_sets().values()))[0])])
    run(first.arrays, make_worlds(1, first), 1, 0)  # compile or load the kernels
    if sample is not None:
        report("sample", [measure(ref) for ref in sampled(levels or basic_sets(), sample)], each)
        return
    everything: list[Row] = []
    for source in levels or basic_sets():
        rows = [measure(ref) for ref in resolve(source)]
        report(source, rows, each)
        everything += rows
    report("all", everything, each=False)


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)
