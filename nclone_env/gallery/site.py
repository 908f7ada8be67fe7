"""Writing a gallery: pages and pictures go to a hidden folder, which then takes the place of the old one."""

import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from nclone_env._files import replace_folder, temporary_beside
from nclone_env.errors import ConfigError
from nclone_env.gallery.entries import Entry
from nclone_env.gallery.pages import ASSETS, MAGNIFICATION, index_page, level_page
from nclone_env.gallery.tracks import Tracks, shown_frames
from nclone_env.game import NINJA, RUNNING
from nclone_env.level import LevelSet, pack
from nclone_env.render import (
    FACES_RIGHT,
    SHEET_COLUMNS,
    SPRITE,
    all_glyphs,
    encoded,
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


class LevelFiles(NamedTuple):
    """What a gallery has for one level."""

    files: Mapping[str, bytes]
    """Contents by name."""
    runs: Sequence[int]
    """Numbers of the runs of the entry that are shown."""
    faults: Sequence[Sequence[str]]
    """Of the others: label, what was expected and what came."""


def write_site(output: Path, title: str, entries: Sequence[Entry], written: Iterable[LevelFiles]) -> None:
    """Write a gallery, all of it or nothing.

    Args:
        output: folder of the site, or a symbolic link to it; an older gallery there is replaced.
        entries: its levels, at least one.

    Raises:
        OSError: if it cannot be written; what was there is unchanged.
    """
    output = Path(os.path.realpath(output))  # a link stays, and its target is replaced
    output.parent.mkdir(parents=True, exist_ok=True)
    with temporary_beside(output, folder=True) as folder:
        _write_assets(folder / "assets")
        (folder / "levels").mkdir()
        shown = []
        for entry, level in zip(entries, written, strict=True):
            shown.append(replace(entry, runs=tuple(entry.runs[number] for number in level.runs)))
            for name, data in level.files.items():
                (folder / "levels" / name).write_bytes(data)
        (folder / "index.html").write_text(index_page(title, shown), encoding="utf-8")
        replace_folder(folder, output)


def check_output(output: Path, force: bool) -> None:
    """Check that a gallery can be written to a folder without loss of other files.

    Raises:
        ConfigError: if something is there that is no gallery, a link that leads to itself, a gallery with other files
            next to its own, or a gallery and not ``force``.
    """
    if Path(os.path.realpath(output)).is_symlink():
        raise ConfigError(f"output: expected a new folder or a gallery, got {output}, a symbolic link to itself")
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


def level_files(title: str, entry: Entry, before: Entry | None, after: Entry | None) -> LevelFiles:
    """Return the files of one level of a gallery."""
    shown: list[int] = []
    faults: list[tuple[str, str, str]] = []
    levels = pack([entry.level])
    for number, run in enumerate(entry.runs):
        most = shown_frames(levels, len(run.inputs))
        if most < len(run.inputs):
            faults.append((run.label, f"at most {most:,} frames for a player of this level", f"{len(run.inputs):,}"))
        else:
            shown.append(number)
    entry = replace(entry, runs=tuple(entry.runs[number] for number in shown))
    tracks = [Tracks(levels, run.inputs) for run in entry.runs]
    page = level_page(title, entry, before, after, tracks)
    files = {f"{entry.page}.html": page.encode(), **_pictures(entry, levels if tracks else None)}
    for number, run in enumerate(entry.runs, start=1):
        recording = Recording.of(entry.level, run.inputs, {"level": entry.level.name})
        files[f"{entry.page}-{number}{RECORDING_SUFFIX}"] = write_recording(recording)
    return LevelFiles(files, shown, faults)


def _pictures(entry: Entry, levels: LevelSet | None) -> dict[str, bytes]:
    """Return the small picture for the index, and the large one: for a player the walls alone, else the level."""
    facts = entry.facts
    large = poster = level_picture(entry.level, facts.zoom, crop=True)
    if levels is not None:
        poster = with_path(poster, path_of(levels, entry.runs[0].inputs), facts.zoom, facts.area, _PATH)
        large = walls_picture(levels.arrays, Session(levels, max_frames=1).worlds, 0, facts.zoom, facts.area)
    small = reduced(poster, facts.size(_THUMBNAIL))
    return {f"{entry.page}-small.webp": encoded(small, ".webp"), f"{entry.page}.webp": encoded(large, ".webp")}


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
