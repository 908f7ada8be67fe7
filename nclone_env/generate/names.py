"""Generated levels by name, wherever levels are named: ``generated:0-255:caves,mazes:20..60:held-out:seed-7``.

Behind the numbers stand, in any order and each at will, families, a range of difficulty, a split and a seed. A level is
made when it is first loaded, in about 0.2 s, and kept on disk (``_arrays``).
"""

import re
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from nclone_env._arrays import Arrays, ArrayStore
from nclone_env.errors import UnknownLevelError, shortened
from nclone_env.generate.candidate import HELD_OUT_SPLIT, SPLITS, TRAIN_SPLIT
from nclone_env.generate.difficulty import LEAST_DIFFICULTY, MOST_DIFFICULTY, read_range
from nclone_env.generate.families import DEFAULT_FAMILIES, FAMILIES
from nclone_env.generate.levels import generate_level
from nclone_env.level import Level, read_map, write_map

_FULL = f"{LEAST_DIFFICULTY}..{MOST_DIFFICULTY}"
_MAKER = generate_level.__module__
_TOGETHER = 256  # levels that are read from the disk at once


class Wanted(NamedTuple):
    """What stands behind the numbers of a name."""

    families: tuple[str, ...] = DEFAULT_FAMILIES
    difficulty: str = _FULL
    split: str = TRAIN_SPLIT
    seed: int = 0

    @classmethod
    def read(cls, options: tuple[str, ...], name: str) -> "Wanted":
        """Read the options of a name, which the message names if one is unknown."""
        wanted: dict[str, object] = {}
        for option in options:
            seed, families = re.fullmatch(r"seed-([0-9]{1,9})", option), tuple(option.split(","))
            if seed:
                wanted["seed"] = int(seed[1])
            elif option in SPLITS:
                wanted["split"] = option
            elif ".." in option:
                low, high = read_range("difficulty", option)
                wanted["difficulty"] = f"{low}..{high}"
            elif set(families) <= FAMILIES.keys():
                wanted["families"] = families
            else:
                expected = f"families ({', '.join(FAMILIES)}), a difficulty (20..60), {HELD_OUT_SPLIT} or seed-7"
                raise UnknownLevelError(f"level: expected {expected} behind the numbers, got {shortened(name, 200)}")
        return cls(**wanted)  # type: ignore[arg-type]


def named_level(number: int, options: tuple[str, ...], name: str) -> Level:
    """Return level ``number`` of a collection, as :func:`generated_levels` yields it, made or read from the disk."""
    wanted = Wanted.read(options, name)
    kept, key = _kept(wanted, number // _TOGETHER), _key(wanted, number)
    if key not in kept:
        family, difficulty = wanted.families[number % len(wanted.families)], read_range("difficulty", wanted.difficulty)
        made = generate_level(family, wanted.seed, number, split=wanted.split, difficulty=difficulty)
        kept[key] = np.frombuffer(write_map(made.level.raw), np.uint8)
        _store(wanted).write(key, kept[key])
    return Level(read_map(kept[key].tobytes(), name), name)


def _key(wanted: Wanted, number: int) -> str:
    return f"{wanted.families[number % len(wanted.families)]}-{wanted.seed}-{number}"


@lru_cache(maxsize=4)
def _kept(wanted: Wanted, place: int) -> Arrays:
    """Return the map bytes of those levels that were made before, of ``_TOGETHER`` numbers."""
    return _store(wanted).read(_key(wanted, place * _TOGETHER + number) for number in range(_TOGETHER))


def _store(wanted: Wanted) -> ArrayStore:
    return ArrayStore(f"generated {wanted.split} {wanted.difficulty}", _MAKER, np.uint8)
