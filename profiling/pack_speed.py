"""Compile time and size of levels, and frames/s of the simulator on each of them, over packs and folders.

    python -m profiling.pack_speed [LEVELS ...]

LEVELS are built-in sets, level files, packs or folders, the built-in sets by default; each gives one block. Reading
files is not counted. Distance fields, which only environments need, are apart. Frames/s are by the rule of
``profiling.simulator_speed``, best of three runs of 100,000 frames a level.
"""

from __future__ import annotations

import sys
import time
import warnings

import numpy as np

from nclone_env.errors import InertEntityWarning
from nclone_env.level.catalog import level_name, level_sets, resolve
from nclone_env.level.compile import Level, compile_level
from nclone_env.level.library import pack
from nclone_env.level.raw import RawLevel
from nclone_env.level.reader import read_level
from nclone_env.sim.state import make_worlds
from profiling.machine import describe
from profiling.simulator_speed import run

FRAMES = 100_000
RUNS = 3
SLOWEST = 5


def compiled(raw: RawLevel, name: str) -> tuple[Level, float, float]:
    """Return a level, the milliseconds it took to compile, and those of its distance fields."""
    started = time.perf_counter()
    level = compile_level(raw, name)
    level.memory()  # asks for all of its arrays
    between = time.perf_counter()
    _ = level.distances
    return level, 1e3 * (between - started), 1e3 * (time.perf_counter() - between)


def frames_per_second(level: Level) -> float:
    """Return the frames/s of the better of some runs."""
    levels = pack([level])
    worlds = make_worlds(1, levels)
    best = 0.0
    for seed in range(RUNS):
        started = time.perf_counter()
        counted, _ = run(levels.arrays, worlds, FRAMES, seed)
        best = max(best, counted / (time.perf_counter() - started))
    return best


def report(source: str) -> None:
    """Print the block of an argument."""
    paths = resolve(source)
    raws = [(read_level(path), level_name(path)) for path in paths]
    rows = [compiled(raw, name) for raw, name in raws]
    levels = [level for level, _, _ in rows]
    sizes = [level.memory().total_bytes / 1024 for level in levels]
    fields = [level.distances.nbytes / 1024 for level in levels]
    speeds = np.array([frames_per_second(level) for level in levels]) / 1e6
    print(f"{source}: {len(levels)} levels")
    for what, values in (
        ("compile, ms", [taken for _, taken, _ in rows]),
        ("compiled size, KB", sizes),
        ("distance fields, ms", [taken for _, _, taken in rows]),
        ("distance fields, KB", fields),
    ):
        worst = int(np.argmax(values))
        print(f"  {what:<22} median {np.median(values):8.2f}   worst {values[worst]:8.2f}  {levels[worst].name}")
    print(f"  {'million frames/s':<22} median {np.median(speeds):8.2f}   worst {speeds.min():8.2f}")
    for index in np.argsort(speeds)[:SLOWEST]:
        level = levels[index]
        print(f"    {speeds[index]:8.2f}  {level.name} {level.raw.title!r}, {len(level.entities)} entities")


def main(names: list[str]) -> None:
    """Print one block an argument."""
    print(describe())
    warnings.simplefilter("ignore", InertEntityWarning)
    first = pack([compile_level(read_level(next(iter(level_sets().values()))[0]))])
    run(first.arrays, make_worlds(1, first), 1, 0)  # compile or load the kernels
    for source in names or list(level_sets()):
        report(source)


if __name__ == "__main__":
    main(sys.argv[1:])
