"""Play many levels with seeded random inputs; print how many frames went by. Run with bounds checks by the tests.

python -m tests.sim.robustness FUZZED_LEVELS FRAMES [FILE ...]
"""

import sys

import numpy as np

from nclone_env.constants import CELEBRATING, DEAD
from nclone_env.errors import LevelFormatError
from nclone_env.jit import kernel
from nclone_env.level.level_set import pack
from nclone_env.level.load import load_level, load_levels
from nclone_env.level.raw import RawLevel
from nclone_env.sim.state import make_worlds
from nclone_env.sim.tick import start, tick


@kernel
def play(levels, worlds, level, frames, seed, outside):
    """Play one level from its start and restart it after every death or victory; count frames outside the world."""
    start(levels, worlds, 0, level)
    random = seed
    for frame in range(frames):
        if frame % 4 == 0:
            random = (1664525 * random + 1013904223) & 0xFFFFFFFF
        tick(levels, worlds, 0, (random >> 16) & 7)
        ninja = worlds.ninjas[0]
        if ninja["x"] < 0.0 or ninja["x"] > 1056.0 or ninja["y"] < 0.0 or ninja["y"] > 600.0:
            outside[level] += 1
        if ninja["state"] == DEAD or ninja["state"] == CELEBRATING:
            start(levels, worlds, 0, level)


def fuzzed_level(draw: np.random.Generator) -> RawLevel:
    """Return a level of random tiles and records; many are refused when they are loaded."""
    density = draw.uniform(0.0, 0.6)
    tiles = np.where(draw.random((23, 42)) < density, draw.integers(0, 42, (23, 42)), 0)
    count = int(draw.integers(1, 60))
    exits = int(draw.integers(0, 3))
    types = [0, *[3] * exits, *[4] * exits, *draw.integers(1, 30, count)]
    types = [kind for kind in types if kind not in (3, 4)][:1] + [3] * exits + [4] * exits + types[1 + 2 * exits :]
    records = np.zeros((len(types), 5), np.uint8)
    records[:, 0] = types
    records[:, 1] = draw.integers(0, 180, len(types))
    records[:, 2] = draw.integers(0, 104, len(types))
    records[:, 3] = draw.integers(0, 8, len(types))
    records[:, 4] = draw.integers(0, 4, len(types))
    return RawLevel(tiles, records, source="fuzzed")


def fuzzed_levels(count: int) -> list:
    """Return the fuzzed levels that load; an error other than ``LevelFormatError`` comes through."""
    draw, levels = np.random.default_rng(0), []
    for _ in range(count):
        try:
            levels.append(load_level(fuzzed_level(draw)))
        except LevelFormatError:
            continue
    return levels


def main(fuzzed: int, frames: int, files: list[str]) -> None:
    """Play all levels; check that every number stays finite; name the real levels that the ninja leaves.

    It can: a back face pushes it deeper without limit (physics 01, section 8.2).
    """
    real = load_levels(files)
    levels = real + fuzzed_levels(fuzzed)
    level_set = pack(levels)
    worlds, outside = make_worlds(1, level_set), np.zeros(len(levels), np.int64)
    for number in range(len(levels)):
        play(level_set.arrays, worlds, number, frames, number + 1, outside)
        for array in (worlds.ninjas, worlds.movers):
            for name in array.dtype.names:
                assert np.isfinite(array[name]).all(), (levels[number].name, name)
    left = [level.name for level, frames_outside in zip(real, outside, strict=False) if frames_outside]
    sys.stdout.write(f"levels {len(levels)} frames {len(levels) * frames} left {' '.join(left)}\n")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
