"""Levels by seed and number, each with a verified recording that completes it.

::

    made = generate_level("caves", seed=1, number=7)
    made.recording().save(Path("cave.replay"))
    for made in generated_levels(["rooms", "mazes"], seed=1, split="held-out"):
        print(made.level.name, made.difficulty.number)
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import numpy as np

from nclone_env.errors import ConfigError, check_integer, did_you_mean, shortened
from nclone_env.game import kind_name
from nclone_env.generate.candidate import SPLITS, TRAIN_SPLIT, try_sketch
from nclone_env.generate.difficulty import LEAST_DIFFICULTY, MOST_DIFFICULTY, Difficulty, check_range
from nclone_env.generate.draws import seed_of
from nclone_env.generate.families import DEFAULT_FAMILIES
from nclone_env.generate.families.table import FAMILIES
from nclone_env.generate.matters import RecordGroup
from nclone_env.generate.route import Unusable
from nclone_env.level import Level
from nclone_env.replay import Recording

ATTEMPTS = 400
"""Sketches that are tried for one level before an error says that none was accepted."""


@dataclass(frozen=True, eq=False)
class GeneratedLevel:
    """A level with the proof that it can be completed.

    Attributes:
        level: the level; its title is its name.
        inputs: (T,) uint8; a solution, one input byte a frame.
        family: name of the family.
        seed: seed of the collection.
        number: number of the level in it.
        split: ``train`` or ``held-out``.
        aim: what the family was asked for, 0 easy to 100 hard.
        difficulty: what was measured.
        removed: names of the entities of the sketch that did not matter.
        witnesses: records, and the inputs of a run that shows that they matter (``matters.Trimmed``).
        rejected: how many sketches were rejected before this one, by reason.
    """

    level: Level
    inputs: np.ndarray
    family: str
    seed: int
    number: int
    split: str
    aim: int
    difficulty: Difficulty
    removed: tuple[str, ...]
    witnesses: tuple[tuple[RecordGroup, np.ndarray], ...]
    rejected: Mapping[str, int]

    def row(self) -> dict[str, Any]:
        """Return what is known about the level, as JSON values."""
        return {
            "name": self.level.name,
            **{name: getattr(self, name) for name in ("family", "seed", "number", "split", "aim")},
            "difficulty": self.difficulty.number,
            **vars(self.difficulty),
            "matter": [kind_name(group[0][0]) for group, _ in self.witnesses],
            "removed": list(self.removed),
            "rejected": dict(sorted(self.rejected.items())),
            "digest": self.level.raw.digest,
        }

    def recording(self) -> Recording:
        """Return the solution as a recording."""
        return Recording.of(self.level, self.inputs, {"level": self.level.name}, self.seed)


def generate_level(
    family: str,
    seed: int = 0,
    number: int = 0,
    *,
    split: str = TRAIN_SPLIT,
    difficulty: tuple[int, int] = (LEAST_DIFFICULTY, MOST_DIFFICULTY),
) -> GeneratedLevel:
    """Make one level: the first of a sequence of sketches that is accepted.

    The same arguments give the same level on every machine. A sketch is accepted if a search completes it, what it
    contains matters, random play seldom completes it and its difficulty is as asked.

    Args:
        family: a name in ``families.table.FAMILIES``.
        seed: seed of the collection, 0 or more.
        number: number of the level in it, 0 or more.
        split: ``train`` or ``held-out``; no level can be in both, whatever the seeds.
        difficulty: least and greatest measured difficulty, 0 to 100.

    Raises:
        ConfigError: if an argument is out of range, or no sketch was accepted.
    """
    check_generation(family, seed, number, split, difficulty)
    rejected: Counter[str] = Counter()
    for attempt in range(ATTEMPTS):
        try:
            aim, made, measured = try_sketch(family, seed_of(seed, split, family, number, attempt), split, difficulty)
        except Unusable as reason:
            rejected[str(reason)] += 1
            continue
        level = Level.of(replace(made.level.raw, title=f"{family} {split} {seed}-{number}"))
        removed = tuple(kind_name(record[0]) for record in made.removed)
        return GeneratedLevel(
            level, made.inputs, family, seed, number, split, aim, measured, removed, made.witnesses, rejected
        )
    reasons = ", ".join(f"{reason}: {times}" for reason, times in rejected.most_common())
    raise ConfigError(
        f"difficulty: expected a range that levels of the family {family!r} have, got "
        f"{difficulty[0]}..{difficulty[1]}: none of {ATTEMPTS} sketches was accepted ({reasons}); widen the range"
    )


def generated_levels(
    families: Sequence[str] = DEFAULT_FAMILIES,
    seed: int = 0,
    *,
    split: str = TRAIN_SPLIT,
    difficulty: tuple[int, int] = (LEAST_DIFFICULTY, MOST_DIFFICULTY),
) -> Iterator[GeneratedLevel]:
    """Yield levels 0, 1, 2, ... of a collection without end; the families take turns.

    Args:
        families: names in ``families.table.FAMILIES``.
        seed, split, difficulty: as for :func:`generate_level`.

    Raises:
        ConfigError: as :func:`generate_level`; also if there are no families.
    """
    if not families:
        raise ConfigError(f"families: expected at least one of {', '.join(FAMILIES)}, got none")
    for number in count():
        family = families[number % len(families)]
        yield generate_level(family, seed, number, split=split, difficulty=difficulty)


def check_generation(family: str, seed: int, number: int, split: str, difficulty: tuple[int, int]) -> None:
    """Check the arguments of :func:`generate_level`.

    Raises:
        ConfigError: if one is out of range; it names the argument.
    """
    for name, given, known in (("family", family, tuple(FAMILIES)), ("split", split, SPLITS)):
        if given not in known:
            raise ConfigError(
                f"{name}: expected one of {', '.join(known)}, got {shortened(given)}{did_you_mean(given, known)}"
            )
    for name, value in (("seed", seed), ("number", number)):
        check_integer(name, value, low=0)
    check_range("difficulty", *difficulty)
