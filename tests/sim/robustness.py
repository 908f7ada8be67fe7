"""Play many levels with seeded random inputs; print how many frames went by. Run with bounds checks by the tests.

python -m tests.sim.robustness FUZZED_LEVELS FRAMES [FILE ...]
"""

import sys

import numpy as np

from nclone_env.errors import LevelFormatError
from nclone_env.level.level import RawLevel
from nclone_env.level.level_set import pack
from nclone_env.level.load import load_level, load_levels
from nclone_env.sim.session import Session

_PIECE = 50  # frames


def play(session: Session, level: int, frames: int, seed: int) -> bool:
    """Play a level from its start with random inputs that change every four frames; return whether the ninja left it.

    The inputs come in pieces. After a piece in which the ninja dies or wins, the level begins again.
    """
    draw = np.random.default_rng(seed)
    left = False
    session.start(level)
    for inputs in np.repeat(draw.integers(0, 8, -(-frames // 4), np.uint8), 4)[:frames].reshape(-1, _PIECE):
        x, y = (session.record(inputs, entities=False).ninjas[name] for name in ("x", "y"))
        left |= bool(((x < 0.0) | (x > 1056.0) | (y < 0.0) | (y > 600.0)).any())
        if session.over[0]:
            session.start(level)
    return left


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
    session, left = Session(pack(levels)), []
    for number, level in enumerate(levels):
        if play(session, number, frames, seed=number) and number < len(real):
            left.append(level.name)
        for array in (session.worlds.ninjas, session.worlds.movers):
            for name in array.dtype.names:
                assert np.isfinite(array[name]).all(), (level.name, name)
    sys.stdout.write(f"levels {len(levels)} frames {len(levels) * frames} left {' '.join(left)}\n")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
