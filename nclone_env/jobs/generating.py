"""Levels by seed: a pack with its table and recordings."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from nclone_env.errors import ConfigError, check_integer
from nclone_env.generate import (
    DEFAULT_FAMILIES,
    FAMILY_NAMES,
    CollectionFiles,
    PackEntry,
    check_generation,
    entry_of,
    generate_level,
    write_collection,
)
from nclone_env.jobs.job import Job
from nclone_env.jobs.shard import file_name


@dataclass(frozen=True)
class Generating(Job):
    """Levels made by seed, as ``nclone-env levels generate`` makes them; ``output`` is a pack.

    Attributes:
        count: number of levels.
        first: number of the first one.
        seed: of the collection; level n of a seed is always the same.
        families: they take turns.
        difficulty: least and greatest.
        split: ``train`` or ``held-out``.

    Raises:
        ConfigError: if an argument is out of range.
    """

    count: int = 100
    first: int = 0
    seed: int = 0
    families: tuple[str, ...] = DEFAULT_FAMILIES
    difficulty: tuple[int, int] = (0, 100)
    split: str = "train"
    result = PackEntry

    def __post_init__(self) -> None:
        super().__post_init__()
        check_integer("count", self.count, low=1)
        check_integer("first", self.first, low=0)
        if not self.families:
            raise ConfigError(f"family: expected some of {', '.join(FAMILY_NAMES)}, got none")
        for family in self.families:
            check_generation(family, self.seed, self.first, self.split, self.difficulty)

    @property
    def total(self) -> int:
        """Number of levels."""
        return self.count

    def files(self, output: Path) -> Sequence[Path]:
        """Return pack, table and folder.

        Raises:
            ConfigError: if the output has not the name of a pack.
        """
        files = CollectionFiles(output)
        is_table = bool(output.name) and output == files.table
        if not output.name or is_table or output.is_dir():
            what = "the name of its table" if is_table else "a folder"
            got = f"{str(output)!r}, {what}"
            raise ConfigError(f"output: expected the file name of a pack, such as pack.txt, got {got}")
        return files.pack, files.table, files.folder

    def task(self, number: int) -> Callable[[], dict[str, Any]]:
        """Return what makes a level."""
        return partial(_make, self, number)

    def write(self, output: Path, results: Iterable[Mapping[str, Any]]) -> None:
        """Write pack, table and recordings; what is there is replaced once all levels are made."""
        output.parent.mkdir(parents=True, exist_ok=True)
        made = (PackEntry(**{**result, "file": file_name(result["file"])}) for result in results)
        write_collection(CollectionFiles(output), made)


def _make(job: Generating, place: int) -> dict[str, Any]:
    """Make the level at a place of the pack."""
    number = job.first + place
    family = job.families[number % len(job.families)]
    made = generate_level(family, job.seed, number, split=job.split, difficulty=job.difficulty)
    return vars(entry_of(made, place))
