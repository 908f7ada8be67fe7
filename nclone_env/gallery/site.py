"""Writing a gallery: pages and pictures go to a hidden folder, which then takes the place of the old one."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from nclone_env._files import replace_folder, temporary_beside
from nclone_env.constants import RUNNING
from nclone_env.cores import available_cores
from nclone_env.errors import ConfigError, RecordingError
from nclone_env.gallery.entries import Entry, OnFault
from nclone_env.gallery.markup import ASSETS
from nclone_env.gallery.pages import MAGNIFICATION, index_page, level_page
from nclone_env.gallery.runs import GalleryRun
from nclone_env.gallery.tracks import Tracks, shown_frames
from nclone_env.kinds import NINJA
from nclone_env.level import LevelSet, pack
from nclone_env.render import (
    FACES_RIGHT,
    SHEET_COLUMNS,
    SPRITE,
    all_glyphs,
    level_picture,
    reduced,
    sprite_sheet,
    walls_picture,
    with_path,
    write_picture,
)
from nclone_env.replay import RECORDING_SUFFIX, Recording, write_recording
from nclone_env.sim import Session

MARK = '<meta name="generator" content="nclone-env gallery">'
"""An element that identifies the index of a gallery."""
_THUMBNAIL = 0.5  # of the large picture
_PATH = (31, 111, 168)
_STATIC = (".css", ".js")
_OWN = {"index.html", "assets", "levels"}
"""Files and folders of a gallery."""


def write_site(
    output: Path, title: str, entries: Sequence[Entry], on_fault: OnFault, on_level: Callable[[], None]
) -> list[Entry]:
    """Write a gallery, all of it or nothing.

    Args:
        output: folder of the site, or a symbolic link to it; an older gallery there is replaced.
        title: of the gallery.
        entries: its levels, at least one.
        on_fault: called with each error of a run, which is left out.
        on_level: called after each level.

    Returns:
        The levels, each with the runs that are shown.

    Raises:
        OSError: if it cannot be written; what was there is unchanged.
    """
    all_glyphs()  # once, before there are threads
    output = Path(os.path.realpath(output))  # a link stays, and its target is replaced
    output.parent.mkdir(parents=True, exist_ok=True)
    with temporary_beside(output, folder=True) as folder:
        _write_assets(folder / "assets")
        (folder / "levels").mkdir()
        writer = _Writer(folder / "levels", title, entries, on_fault)
        with ThreadPoolExecutor(available_cores()) as executor:
            shown = []
            try:
                for entry in executor.map(writer, range(len(entries))):
                    shown.append(entry)
                    on_level()
            finally:
                executor.shutdown(cancel_futures=True)
        (folder / "index.html").write_text(index_page(title, shown), encoding="utf-8")
        replace_folder(folder, output)
    return shown


def check_output(output: Path, force: bool) -> None:
    """Check that a gallery can be written to a folder without loss of other files.

    Raises:
        ConfigError: if something is there that is no gallery, a gallery with other files next to its own, or a gallery
            and not ``force``.
    """
    if not output.exists() or (output.is_dir() and not any(output.iterdir())):
        return
    index = output / "index.html"
    if not index.is_file() or MARK not in index.read_text(encoding="utf-8", errors="replace")[:2000]:
        raise ConfigError(f"output: expected a new folder or a gallery, got {output} with other files; choose another")
    others = sorted({path.name for path in output.iterdir()} - _OWN)
    if others:
        which = f"{others[0]!r}" + (f" and {len(others) - 1} more" if len(others) > 1 else "")
        raise ConfigError(f"output: expected a gallery alone, got {output} with {which}; move that, or choose another")
    if not force:
        raise ConfigError(f"output: {output} is a gallery already; --force replaces it")


@dataclass(frozen=True)
class _Writer:
    """Writes the files of one level; call it with its number. It is called by several threads."""

    folder: Path
    title: str
    entries: Sequence[Entry]
    on_fault: OnFault

    def __call__(self, number: int) -> Entry:
        """Return the entry with those of its runs that are shown."""
        entry = self.entries[number]
        tracks: list[Tracks] = []
        levels: LevelSet | None = None
        if entry.runs:
            levels = pack([entry.level])
            entry = replace(entry, runs=tuple(self._short(levels, entry.runs)))
            tracks = [Tracks(levels, run.inputs) for run in entry.runs]
        self._write_pictures(entry, levels if tracks else None)
        self._write_recordings(entry)
        before = self.entries[number - 1] if number else None
        after = self.entries[number + 1] if number + 1 < len(self.entries) else None
        page = level_page(self.title, entry, before, after, tracks)
        (self.folder / f"{entry.page}.html").write_text(page, encoding="utf-8")
        return entry

    def _short(self, levels: LevelSet, runs: Sequence[GalleryRun]) -> Iterator[GalleryRun]:
        """Yield the runs that are not too long to be shown; report the others."""
        for run in runs:
            most = shown_frames(levels, len(run.inputs))
            if most < len(run.inputs):
                expected = f"at most {most:,} frames for a player of this level"
                self.on_fault(RecordingError(run.label, "inputs", expected, f"{len(run.inputs):,}"))
            else:
                yield run

    def _write_pictures(self, entry: Entry, levels: LevelSet | None) -> None:
        """Write the small picture for the index, and the large one: for a player the walls alone, else the level."""
        facts = entry.facts
        large = poster = level_picture(entry.level, facts.zoom, crop=True)
        if levels is not None:
            poster = with_path(poster, path_of(levels, entry.runs[0].inputs), facts.zoom, facts.area, _PATH)
            large = walls_picture(levels.arrays, Session(levels, max_frames=1).worlds, 0, facts.zoom, facts.area)
        write_picture(self.folder / f"{entry.page}-small.webp", reduced(poster, facts.size(_THUMBNAIL)))
        write_picture(self.folder / f"{entry.page}.webp", large)

    def _write_recordings(self, entry: Entry) -> None:
        """Write the recording of each run, to be downloaded."""
        for number, run in enumerate(entry.runs, start=1):
            recording = Recording.of(entry.level, run.inputs, {"level": entry.level.name})
            (self.folder / f"{entry.page}-{number}{RECORDING_SUFFIX}").write_bytes(write_recording(recording))


def path_of(levels: LevelSet, inputs: np.ndarray) -> np.ndarray:
    """Return where the ninja of a run is, (T, 2) float64 world pixels."""
    ninjas = Session(levels).record(inputs, entities=False).ninjas
    return np.stack([ninjas["x"], ninjas["y"]], axis=1)


def _write_assets(folder: Path) -> None:
    """Write style, scripts, sprites and the icon."""
    folder.mkdir()
    for path in ASSETS.iterdir():
        if path.suffix in _STATIC:
            shutil.copyfile(path, folder / path.name)
    sheet, side = sprite_sheet(MAGNIFICATION), MAGNIFICATION * SPRITE
    write_picture(folder / "sprites.webp", sheet)
    row, column = divmod(int(all_glyphs().appearances[NINJA, FACES_RIGHT, RUNNING]), SHEET_COLUMNS)
    write_picture(folder / "icon.png", sheet[row * side :, column * side :][:side, :side])
