"""Which levels a gallery shows, with their facts and the runs on them: from names and files to entries."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from nclone_env._files import expanded, inner_folders, there
from nclone_env.errors import ConfigError, FormatError, LevelFormatError, NcloneError, RecordingError, shortened
from nclone_env.game import CELEBRATING, GOLD, NINJA, kind_name
from nclone_env.generate import CollectionFiles
from nclone_env.level import (
    UNPUBLISHED,
    Level,
    LevelRef,
    OpenedPacks,
    RawLevel,
    known_solutions_of,
    read_bytes,
    resolve,
    write_map,
)
from nclone_env.options import several
from nclone_env.render import Area, used_area_of, zoom_of
from nclone_env.replay import STATE_NAMES, Recording, Verdict, load_verified, recording_files

T = TypeVar("T")
OnFault = Callable[[NcloneError], None]
"""Called with what is wrong with a level, recording or table that is left out."""
_NAME_LENGTH = 60


@dataclass(frozen=True)
class Facts:
    """Facts of a level.

    Attributes:
        kinds: name of each kind of entity, most frequent first, and how many there are.
        gold: pieces of gold.
        entities: entities in all.
        columns: cells across the part of the level that is not solid.
        rows: cells down.
        area: the part of the world that pictures show.
        zoom: pixels of a picture per pixel of the world, from 1 to 2.
        known: further facts by name, in words.
        difficulty: of a generated level, 0..100.
    """

    kinds: Mapping[str, int]
    gold: int
    entities: int
    columns: int
    rows: int
    area: Area
    zoom: float
    known: Mapping[str, str]
    difficulty: int | None = None

    def size(self) -> tuple[int, int]:
        """Return width and height of a picture, pixels."""
        return round(self.area.width * self.zoom), round(self.area.height * self.zoom)


def facts_of(raw: RawLevel, row: Mapping[str, Any] | None = None) -> Facts:
    """Return the facts of a level, some of them from its row in the table of a generated pack."""
    counted = Counter(kind for kind in raw.records[:, 0].tolist() if kind != NINJA)
    kinds = {kind_name(kind).replace("_", " "): count for kind, count in counted.most_common()}
    rows, columns = (np.flatnonzero((raw.tiles != 1).any(axis=axis)) for axis in (1, 0))
    known, row = {}, row or {}
    if raw.level_id != UNPUBLISHED:
        known["Level id"] = str(raw.level_id)
    if isinstance(row.get("family"), str):
        known["Family"] = row["family"]
    difficulty = row.get("difficulty")
    return Facts(
        kinds,
        counted[GOLD],
        sum(counted.values()),
        int(np.ptp(columns)) + 1 if len(columns) else 0,
        int(np.ptp(rows)) + 1 if len(rows) else 0,
        area := used_area_of(raw),
        zoom_of(area),
        known,
        difficulty if type(difficulty) is int else None,
    )


def read_table(path: Path) -> dict[str, Mapping[str, Any]]:
    """Return the rows of the table of a generated pack, by the digest of their level."""
    rows: dict[str, Mapping[str, Any]] = {}
    for number, line in enumerate(read_bytes(path).splitlines(), start=1):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise LevelFormatError(str(path), f"line {number}", "a JSON object", str(error)[:80]) from error
        if not isinstance(row, dict):
            raise LevelFormatError(str(path), f"line {number}", "a JSON object", type(row).__name__)
        rows[str(row.get("digest"))] = row
    return rows


@dataclass(frozen=True, eq=False)
class GalleryRun:
    """Inputs on a level that the simulator has reproduced.

    Attributes:
        label: what the run is called: name of its file, without the suffix.
        level: the level it was played on.
        inputs: (T,) uint8.
        end: ``won``, ``dead`` or another state of the ninja after the last frame.
        frames: frames until the ninja won or died, T if neither.
        gold: pieces collected.
    """

    label: str
    level: RawLevel
    inputs: np.ndarray
    end: str
    frames: int
    gold: int

    @property
    def won(self) -> bool:
        """Whether the run completes the level."""
        return self.end == STATE_NAMES[CELEBRATING]

    @property
    def rank(self) -> tuple[bool, int, str]:
        """Sort key: completed runs first, then short ones."""
        return not self.won, self.frames, self.label


def run_of(label: str, level: Level, inputs: bytes) -> GalleryRun:
    """Play inputs and return the run."""
    recording = Recording.of(level, inputs)
    return _run(label, level.raw, recording.inputs, recording.verify())


def _run(label: str, level: RawLevel, inputs: np.ndarray, found: Verdict) -> GalleryRun:
    return GalleryRun(label, level, inputs, STATE_NAMES[found.state], found.end, found.gold)


def solution_of(level: Level, inputs: bytes) -> GalleryRun:
    """Return a known solution of a level as a run."""
    run = run_of("known solution", level, inputs)
    if not run.won:
        raise RecordingError(level.name, "known solution", "inputs that complete the level", f"a ninja {run.end}")
    return run


def load_run(path: Path) -> GalleryRun:
    """Read a recording, ``.replay`` or attract file, and replay it."""
    file, found = load_verified(path)
    if not found.agrees:
        raise RecordingError(str(path), "replay", "a run that the simulator reproduces", found.reason)
    return _run(path.stem, file.level, file.inputs, found)


def without_copies(runs: Sequence[GalleryRun]) -> list[GalleryRun]:
    """Return runs by rank, of those with the same inputs the first one given."""
    first: dict[bytes, GalleryRun] = {}
    for run in runs:
        first.setdefault(run.inputs.tobytes(), run)
    return sorted(first.values(), key=lambda run: run.rank)


@dataclass(frozen=True, eq=False)
class Entry:
    """A level with its facts and runs.

    Attributes:
        page: name of its files, without suffix: letters, digits and hyphens.
        level: the level.
        facts: its properties.
        runs: by rank, the best one first.
    """

    page: str
    level: Level
    facts: Facts
    runs: tuple[GalleryRun, ...]

    @property
    def title(self) -> str:
        """Title of the level, its name if it has none."""
        return self.level.raw.title.strip() or self.level.name

    @property
    def best(self) -> GalleryRun | None:
        """The fastest run that completes the level."""
        return self.runs[0] if self.runs and self.runs[0].won else None


def collect(
    names: str | Path | Iterable[str | Path], recordings: str | Path | Iterable[str | Path], on_fault: OnFault
) -> list[Entry]:
    """Return the levels of some names, or those of the recordings if there are no names.

    Solutions of built-in levels, and the table of a generated pack and the recordings of its chosen levels, which are
    next to it, are found without being named.

    Args:
        names: built-in sets or levels, level files, folders or packs.
        on_fault: called with each error of a level, recording or table, which is left out; it is one if a level of
            ``recordings`` is not among those named.
    """
    paths = [expanded(path) for path in several(recordings)]
    for path in paths:
        if not there(path.exists):
            got = f"{shortened(str(path), 200)}, which does not exist"
            raise ConfigError(f"recordings: expected files or folders, got {got}")
    packs: OpenedPacks = {}
    names = several(names)
    refs = [ref for name in names for ref in resolve(name, packs)]
    levels = list(_read(_written, _read(LevelRef.load, refs, on_fault), on_fault))
    known = known_solutions_of(levels)
    solved = [level for level in levels if level.name in known]
    runs = list(_read(lambda level: solution_of(level, known[level.name]), solved, on_fault))
    given = [run for path in paths for run in _runs_at(path, on_fault)]
    levels = levels if names else _levels_of(given)
    runs += _of_levels(given, levels, on_fault)
    rows: dict[str, Mapping[str, Any]] = {}
    for path, numbers in _numbers_by_pack(refs).items():
        files = CollectionFiles(path)
        runs += _read(load_run, files.recordings(numbers), on_fault)
        for table in _read(read_table, [files.table] if files.table.exists() else [], on_fault):
            rows |= table
    return _entries(levels, runs, rows)


def _written(level: Level) -> Level:
    """Return a level that a page can have, as map bytes."""
    write_map(level.raw)
    return level


def _numbers_by_pack(refs: Iterable[LevelRef]) -> dict[Path, set[int]]:
    numbers: dict[Path, set[int]] = {}
    for ref in refs:
        if ref.number is not None:
            numbers.setdefault(ref.path, set()).add(ref.number)
    return numbers


def _read(task: Callable[[Any], T], sources: Iterable[Any], on_fault: OnFault) -> Iterator[T]:
    """Yield the results of a task that reads; report the faults of what it reads."""
    for source in sources:
        try:
            yield task(source)
        except FormatError as fault:
            on_fault(fault)


def _runs_at(path: Path, on_fault: OnFault) -> Iterator[GalleryRun]:
    for files in _read(recording_files, [path], on_fault):
        if not files and path.is_dir():
            expected = "at least one recording (.replay or attract file)"
            on_fault(RecordingError(str(path), "folder", expected, f"none in it{inner_folders(path)}"))
        yield from _read(load_run, files, on_fault)


def _of_levels(runs: Iterable[GalleryRun], levels: Iterable[Level], on_fault: OnFault) -> Iterator[GalleryRun]:
    """Yield the runs on the chosen levels; report the others."""
    shown = {level.raw.digest for level in levels}
    for run in runs:
        if run.level.digest in shown:
            yield run
        else:
            on_fault(RecordingError(run.label, "level", "one of the levels of the gallery", repr(run.level.title)))


def _levels_of(runs: Iterable[GalleryRun]) -> list[Level]:
    first: dict[str, Level] = {}
    for run in runs:
        first.setdefault(run.level.digest, Level(run.level, run.level.title or run.label))
    return list(first.values())


def _entries(levels: Sequence[Level], runs: Sequence[GalleryRun], rows: Mapping[str, Mapping[str, Any]]) -> list[Entry]:
    by_digest = [level.raw.digest for level in levels]
    by_level: dict[str, list[GalleryRun]] = {digest: [] for digest in by_digest}
    for run in runs:
        if run.level.digest in by_level:
            by_level[run.level.digest].append(run)
    pages = page_names([level.name for level in levels])
    return [
        Entry(page, level, facts_of(level.raw, rows.get(digest)), tuple(without_copies(by_level[digest])))
        for page, level, digest in zip(pages, levels, by_digest, strict=True)
    ]


def page_names(names: Iterable[str]) -> list[str]:
    """Return a file name for each name of a level: lower-case letters, digits and hyphens, all different."""
    taken: set[str] = set()
    pages = []
    for name in names:
        plain = re.sub(r"[^a-z0-9]+", "-", re.sub(r"\.(txt|toml|map)(?=#|$)", "", name.lower()))
        stem = plain.strip("-")[-_NAME_LENGTH:].lstrip("-") or "level"
        page, number = stem, 1
        while page in taken:
            number += 1
            page = f"{stem}-{number}"
        taken.add(page)
        pages.append(page)
    return pages
