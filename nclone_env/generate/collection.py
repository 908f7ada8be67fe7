"""A collection of generated levels in files: a pack, a table and a folder of recordings.

The pack holds one level a line; the table, JSON lines, one row a level with everything known about it; the folder one
recording a level. Number n is the same level in all three.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nclone_env._files import naming, synchronise, temporary_beside, write_file
from nclone_env.game import CELEBRATING
from nclone_env.generate.levels import GeneratedLevel, generate_level
from nclone_env.level import write_index, write_pack
from nclone_env.replay import RECORDING_SUFFIX, recording_name, write_recording

TABLE_SUFFIX, FOLDER_SUFFIX = ".jsonl", "-recordings"


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
class Order:
    """Which levels to make: families take turns from number ``first`` on; ``difficulty`` is the least and greatest."""

    families: tuple[str, ...]
    seed: int
    split: str
    difficulty: tuple[int, int]
    first: int = 0

    def __call__(self, place: int) -> PackEntry:
        """Make the level at a place of the pack."""
        number = self.first + place
        family = self.families[number % len(self.families)]
        made = generate_level(family, self.seed, number, split=self.split, difficulty=self.difficulty)
        return entry_of(made, place)


@dataclass(frozen=True)
class PackEntry:
    """A level as it is written: its line of the pack, its row of the table, name and contents of its recording."""

    line: bytes
    row: dict[str, Any]
    file: str
    recording: bytes


def entry_of(made: GeneratedLevel, place: int) -> PackEntry:
    """Return a level as it is written at a place of a pack, its recording verified.

    Raises:
        RuntimeError: if a replay of the solution does not complete the level.
    """
    recording = made.recording()
    verdict = recording.verify()
    if not verdict.agrees or verdict.state != CELEBRATING or verdict.frames != len(made.inputs):
        raise RuntimeError(f"generate: the solution of {made.level.name} is not reproduced: {verdict.reason}")
    file = recording_name(place, made.level.name)
    return PackEntry(write_pack([made.level.raw]), {**made.row(), "recording": file}, file, write_recording(recording))


def write_collection(files: CollectionFiles, made: Iterator[PackEntry], on_entry: Callable[[PackEntry], None]) -> int:
    """Write levels as they come, to temporary files first; return how many.

    If making a level fails, those before it are kept, and the error is raised.

    What is at their places is replaced.

    Raises:
        OSError: if a file cannot be written; nothing is replaced if it is a recording.
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
                    on_entry(entry)
        finally:
            if written:
                with naming(files.folder):
                    _finish(files, folder, table, pack, written)
    return len(written)


def _finish(files: CollectionFiles, folder: Path, table: Path, pack: Path, written: Sequence[str]) -> None:
    """Give the files their names: recordings before the pack that they belong to, and those of the older pack go last.

    So at any time each level of the pack has its recording. Recordings that the older table does not name stay.
    """
    older = _recordings_in(files.table)
    if files.folder.exists():
        for name in written:
            (folder / name).replace(files.folder / name)
        synchronise(files.folder)
    else:
        folder.replace(files.folder)
    for temporary, path in ((table, files.table), (pack, files.pack)):
        synchronise(temporary)
        temporary.replace(path)
    synchronise(files.pack.parent)
    write_index(files.pack)
    for name in older - set(written):
        (files.folder / name).unlink(missing_ok=True)


def _recordings_in(table: Path) -> set[str]:
    """Return the names of the recordings of a table; none if there is no such table, or it is another file."""
    try:
        rows = [json.loads(line) for line in table.read_bytes().splitlines()]
        names = {str(row["recording"]) for row in rows}
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return set()
    return {name for name in names if name.endswith(RECORDING_SUFFIX) and Path(name).name == name}
