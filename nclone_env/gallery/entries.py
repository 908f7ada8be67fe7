"""Which levels a gallery shows, with the runs on them: from names and files to entries."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nclone_env.errors import FormatError, NcloneError, RecordingError
from nclone_env.gallery.facts import Facts, facts_of, read_table
from nclone_env.gallery.runs import GalleryRun, load_run, recording_files, solution_of, without_copies
from nclone_env.generate import CollectionFiles
from nclone_env.level import Level, LevelRef, OpenedPacks, known_solutions_of, resolve

_NAME_LENGTH = 60

OnFault = Callable[[NcloneError], None]
"""Called with what is wrong with a level, recording or table that is left out."""


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


def collect(names: Sequence[str], recordings: Iterable[Path], on_fault: OnFault) -> list[Entry]:
    """Return the levels of some names, or those of the recordings if there are no names.

    Solutions of built-in levels, and the table of a generated pack and the recordings of its chosen levels, which are
    next to it, are found without being named.

    Args:
        names: built-in sets or levels, level files, folders or packs.
        on_fault: called with each error of a level, recording or table, which is left out; it is one if a level of
            ``recordings`` is not among those named.

    Raises:
        UnknownLevelError: if a name denotes no level.
    """
    packs: OpenedPacks = {}
    refs = [ref for name in names for ref in resolve(name, packs)]
    levels = [level for ref in refs if (level := _tried(on_fault, ref.load)) is not None]
    runs = _known_runs(levels, on_fault)
    given = [run for path in recordings for run in _runs_at(path, on_fault)]
    levels = levels if names else _levels_of(given)
    runs += _of_levels(given, levels, on_fault)
    rows: dict[str, Mapping[str, Any]] = {}
    for path, numbers in _numbers_by_pack(refs).items():
        files = CollectionFiles(path)
        runs += _loaded(files.recordings(numbers), on_fault)
        rows |= (_tried(on_fault, read_table, files.table) or {}) if files.table.exists() else {}
    return _entries(levels, runs, rows)


def _numbers_by_pack(refs: Iterable[LevelRef]) -> dict[Path, set[int]]:
    numbers: dict[Path, set[int]] = {}
    for ref in refs:
        if ref.number is not None:
            numbers.setdefault(ref.path, set()).add(ref.number)
    return numbers


def _tried(on_fault: OnFault, task: Callable[..., Any], *arguments: Any) -> Any:
    """Return the result of a task; report a fault of what it reads and return None."""
    try:
        return task(*arguments)
    except FormatError as fault:
        on_fault(fault)
        return None


def _known_runs(levels: Sequence[Level], on_fault: OnFault) -> list[GalleryRun]:
    known = known_solutions_of(levels)
    solved = [level for level in levels if level.name in known]
    found = [_tried(on_fault, solution_of, level, known[level.name]) for level in solved]
    return [run for run in found if run is not None]


def _runs_at(path: Path, on_fault: OnFault) -> list[GalleryRun]:
    files = _tried(on_fault, recording_files, path) or []
    if not files and path.is_dir():
        on_fault(RecordingError(str(path), "folder", "at least one recording (.replay or attract file)", "none in it"))
    return _loaded(files, on_fault)


def _loaded(files: Iterable[Path], on_fault: OnFault) -> list[GalleryRun]:
    found = [_tried(on_fault, load_run, file) for file in files]
    return [run for run in found if run is not None]


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
    by_level: dict[str, list[GalleryRun]] = {level.raw.digest: [] for level in levels}
    for run in runs:
        if run.level.digest in by_level:
            by_level[run.level.digest].append(run)
    pages = page_names([level.name for level in levels])
    return [
        Entry(
            page,
            level,
            facts_of(level.raw, rows.get(level.raw.digest)),
            tuple(without_copies(by_level[level.raw.digest])),
        )
        for page, level in zip(pages, levels, strict=True)
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
