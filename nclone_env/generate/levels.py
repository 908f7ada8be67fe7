"""Levels by seed and number, each with a verified recording that completes it, alone or as a collection in files.

::

    made = generate_level("caves", seed=1, number=7)
    made.recording().save(Path("cave.replay"))
    for made in generated_levels(["rooms", "mazes"], seed=1, split="held-out"):
        print(made.level.name, made.difficulty.number)

A collection is a pack, a table and a folder of recordings. The pack holds one level a line; the table, JSON lines, one
row a level with everything known about it; the folder one recording a level. Number n is the same level in all three.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from nclone_env._files import naming, open_regular, synchronise, temporary_beside, write_file
from nclone_env.errors import ConfigError, check_argument, check_choice, check_integer, checked
from nclone_env.game import CELEBRATING, kind_name
from nclone_env.generate.candidate import SPLITS, TRAIN_SPLIT, RecordGroup, try_sketch
from nclone_env.generate.difficulty import LEAST_DIFFICULTY, MOST_DIFFICULTY, Difficulty, check_range
from nclone_env.generate.draws import seed_of
from nclone_env.generate.families import DEFAULT_FAMILIES, FAMILIES
from nclone_env.generate.route import Unusable
from nclone_env.level import Level, write_index, write_pack
from nclone_env.options import several
from nclone_env.replay import RECORDING_SUFFIX, Recording, recording_name, write_recording

TABLE_SUFFIX, FOLDER_SUFFIX = ".jsonl", "-recordings"
_TITLE = re.compile(rf"({'|'.join(FAMILIES)}) ({'|'.join(SPLITS)}) \d+-\d+")
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
        witnesses: records, and the inputs of a run that shows that they matter (``candidate.Trimmed``).
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


@checked()
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
        family: a name in ``families.FAMILIES``.
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


def is_generated_title(title: str) -> bool:
    """Return whether a title is one that :func:`generate_level` gives."""
    return _TITLE.fullmatch(title) is not None


@checked()
def generated_levels(
    families: str | Iterable[str] = DEFAULT_FAMILIES,
    seed: int = 0,
    *,
    split: str = TRAIN_SPLIT,
    difficulty: tuple[int, int] = (LEAST_DIFFICULTY, MOST_DIFFICULTY),
) -> Iterator[GeneratedLevel]:
    """Yield levels 0, 1, 2, ... of a collection without end; the families take turns.

    Args:
        families: names in ``families.FAMILIES``.
        seed: as for :func:`generate_level`.
        split: as for :func:`generate_level`.
        difficulty: as for :func:`generate_level`.

    Raises:
        ConfigError: as :func:`generate_level`; also if there are no families.
    """
    families = several(families)
    if not families:
        raise ConfigError(f"families: expected at least one of {', '.join(FAMILIES)}, got none")
    for number in count():
        family = families[number % len(families)]
        yield generate_level(family, seed, number, split=split, difficulty=difficulty)


def compile_kernels() -> None:
    """Compile the kernels of the generator, or load them."""
    generate_level("patrols")  # its movers are put in the way, checked, and searches are repeated


def check_generation(family: str, seed: int, number: int, split: str, difficulty: tuple[int, int]) -> None:
    """Check the arguments of :func:`generate_level`."""
    check_choice("family", family, FAMILIES)
    check_choice("split", split, SPLITS)
    for name, value in (("seed", seed), ("number", number)):
        check_integer(name, value, low=0)
    check_argument("difficulty", tuple[int, int], difficulty)
    check_range("difficulty", *difficulty)


@dataclass(frozen=True)
class CollectionFiles:
    """Where a collection is written: a pack, with the table and the recordings next to it."""

    pack: Path

    @property
    def table(self) -> Path:
        """The rows, JSON lines."""
        return self.pack.with_suffix(TABLE_SUFFIX)

    @property
    def folder(self) -> Path:
        """The folder of recordings."""
        return self.pack.with_name(self.pack.stem + FOLDER_SUFFIX)

    def recordings(self, numbers: Container[int]) -> list[Path]:
        """Return the recordings of levels by their numbers; files with other names are not recordings."""
        files = sorted(self.folder.glob(f"*{RECORDING_SUFFIX}"))
        named = [(re.match("[0-9]+", file.name), file) for file in files]
        return [file for number, file in named if number and int(number[0]) in numbers]


@dataclass(frozen=True)
class PackEntry:
    """A level as it is written: its line of the pack, its row of the table, name and contents of its recording."""

    line: bytes
    row: dict[str, Any]
    file: str
    recording: bytes


def entry_of(made: GeneratedLevel, place: int) -> PackEntry:
    """Return a level as it is written at a place of a pack, its recording verified."""
    recording = made.recording()
    verdict = recording.verify()
    if not verdict.agrees or verdict.state != CELEBRATING or verdict.frames != len(made.inputs):
        raise RuntimeError(f"generate: the solution of {made.level.name} is not reproduced: {verdict.reason}")
    file = recording_name(place, made.level.name)
    return PackEntry(write_pack([made.level.raw]), {**made.row(), "recording": file}, file, write_recording(recording))


def write_collection(files: CollectionFiles, made: Iterator[PackEntry]) -> int:
    """Write levels as they come, to temporary files first; return how many.

    If making a level fails, those before it are kept, and the error is raised.

    What is at their places is replaced.
    """
    written: list[str] = []
    with (
        temporary_beside(files.folder, folder=True) as folder,
        temporary_beside(files.table) as table,
        temporary_beside(files.pack) as pack,
    ):
        try:
            with naming(files.pack), table.open("wb") as rows, pack.open("wb") as lines:
                for entry in made:
                    try:
                        with naming(files.folder):
                            write_file(folder / entry.file, entry.recording)
                        rows.write(f"{json.dumps(entry.row)}\n".encode())
                        lines.write(entry.line)
                        rows.flush()  # so that a full disk is noticed here
                        lines.flush()
                    except OSError:
                        written.clear()  # what is there stays, rather than to be replaced by a part
                        raise
                    written.append(entry.file)
        finally:
            if written:
                with naming(files.folder):
                    _finish(files, folder, table, pack, written)
    return len(written)


def _finish(files: CollectionFiles, folder: Path, table: Path, pack: Path, written: Sequence[str]) -> None:
    """Give the files their names: recordings, pack, and the table once the recordings of an older one are removed.

    So at any time each level of the pack has its recording, and a call that is killed leaves none that the next one
    does not find. Recordings that the older table does not name stay.
    """
    older = _recordings_in(files.table)
    if files.folder.exists():
        for name in written:
            (folder / name).replace(files.folder / name)
        synchronise(files.folder)
    else:
        folder.replace(files.folder)
    if not older:  # so that no pack lacks its table
        _place(table, files.table)
    _place(pack, files.pack)
    for name in older - set(written):
        (files.folder / name).unlink(missing_ok=True)
    if older:
        _place(table, files.table)
    write_index(files.pack)


def _place(temporary: Path, path: Path) -> None:
    synchronise(temporary)
    temporary.replace(path)
    synchronise(path.parent)


def _recordings_in(table: Path) -> set[str]:
    """Return the names of the recordings of a table; none if there is no such table, or it is another file."""
    try:
        with open_regular(table) as file:
            rows = [json.loads(line) for line in file.read().splitlines()]
        names = {str(row["recording"]) for row in rows}
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return set()
    return {name for name in names if name.endswith(RECORDING_SUFFIX) and Path(name).name == name}
