"""Variants of a level: the same tiles and entities with start, exit switches and exits in other places.

A level has many more tasks in it than the one that its author chose. The places are those that the ninja comes to in a
search from its start, so that most variants can be completed; each that is returned has a solution.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from nclone_env.errors import check_integer
from nclone_env.game import EXIT, EXIT_SWITCH, NINJA, SLIDING
from nclone_env.generate.candidate import is_safe
from nclone_env.generate.draws import Draws, seed_of
from nclone_env.generate.search import MAX_FRAMES, edited, first_solution, shorter_solution, small_archive
from nclone_env.level import Level, LevelSource, load_level, pack
from nclone_env.plan import ArchiveSearch, Rules, Task, make_task

Place = list[int]
"""x and y in units of records."""

ATTEMPTS = 24
"""Arrangements that are tried for one variant."""
_UNIT = 6.0  # pixels of a unit of records
_PLACES_RULES = Rules(15.0, 2.0, greed=0.0)
_PLACES_FRAMES = 100_000
_FIRST_FRAMES, _SHORTER_FRAMES, _EDIT_FRAMES = 150_000, 40_000, 20_000
_LEAST_FRAMES = 60
"""Frames of the shortest solution of a variant: one second."""
_OTHER_START = 50
"""Percent of the variants that begin elsewhere too."""


@dataclass(frozen=True, eq=False)
class Variant:
    """A variant of a level with its solution.

    Attributes:
        level: the variant, None if none was found; its name is that of the level with its number behind it.
        inputs: (T,) uint8; a solution, one input byte a frame; empty without one.
        tried: number of arrangements tried.
    """

    level: Level | None
    inputs: np.ndarray
    tried: int


def make_variant(level: LevelSource, seed: int = 0, number: int = 0, *, max_frames: int = MAX_FRAMES) -> Variant:
    """Put start, exits and their switches of a level in other places, so that it can be completed.

    The same arguments give the same variant on every machine.

    Args:
        level: a level with an exit, in any form that ``load_level`` accepts.
        seed: seed of the random choices, 0 or more.
        number: number of the variant, 0 or more.
        max_frames: longest solution; the shortest has 60 frames.

    Raises:
        LevelFormatError, UnknownLevelError: if the level cannot be loaded.
        UnsupportedLevelError: if it has no exit.
        ConfigError: if the seed or the number is negative.
    """
    for name, value in (("seed", seed), ("number", number)):
        check_integer(name, value, low=0)
    original = load_level(level)
    draws = Draws(seed_of("variant", original.raw.digest, seed, number))
    places, floors = _places(make_task(original), draws.below(1 << 30))
    for attempt in range(ATTEMPTS):
        varied = _arranged(original, f"{original.name} variant {number}", draws, places, floors)
        inputs = _solution(varied, draws.below(1 << 30))
        if _LEAST_FRAMES <= len(inputs) <= max_frames:
            return Variant(varied, inputs, attempt + 1)
    return Variant(None, np.zeros(0, np.uint8), ATTEMPTS)


def _places(task: Task, seed: int) -> tuple[list[Place], list[Place]]:
    """Return places that the ninja comes to, and those of them where it stands."""
    archive = small_archive(task)
    ArchiveSearch(task, archive, _PLACES_RULES, seed).advance(_PLACES_FRAMES, lambda: False)
    ninjas = archive.worlds.ninjas[: archive.search[0]["cells"]]
    places = np.clip(np.rint(np.stack([ninjas["x"], ninjas["y"]], axis=1) / _UNIT), 0, 255).astype(np.uint8)
    stands = ninjas["state"] <= SLIDING
    return np.unique(places, axis=0).tolist(), np.unique(places[stands], axis=0).tolist()


def _arranged(level: Level, name: str, draws: Draws, places: Sequence[Place], floors: Sequence[Place]) -> Level:
    """Return a level with exits and their switches, and perhaps the ninja, in other places."""
    records = level.raw.records.copy()
    moved = np.isin(records[:, 0], (EXIT, EXIT_SWITCH))
    records[moved, 1:3] = [draws.pick(places) for _ in range(np.count_nonzero(moved))]
    if floors and draws.chance(_OTHER_START):
        records[records[:, 0] == NINJA, 1:3] = draws.pick(floors)
    return Level(replace(level.raw, records=records), name)


def _solution(level: Level, seed: int) -> np.ndarray:
    """Return inputs that complete a level, none if the ninja does not survive at its start or none are found."""
    if not is_safe(pack([level])):
        return np.zeros(0, np.uint8)
    task = make_task(level)
    found = first_solution(task, _FIRST_FRAMES, seed).inputs
    if not len(found):
        return found
    return edited(task, shorter_solution(task, found, _SHORTER_FRAMES, seed), _EDIT_FRAMES, seed)
