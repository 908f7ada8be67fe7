"""Writing a gallery: pages and pictures go to a hidden folder, which then takes the place of the old one.

The pages, a list of levels and a page for each level with a player if there are runs on it, are made from the templates
in ``assets``. What comes from level files is text: it is escaped and never obeyed.
"""

import html
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from string import Template
from typing import Any, NamedTuple

import numpy as np

from nclone_env._files import LOCK, expanded, replace_folder, temporary_beside
from nclone_env.errors import ConfigError
from nclone_env.gallery.entries import Entry, GalleryRun
from nclone_env.gallery.tracks import STEPS, Tracks, shown_frames
from nclone_env.game import FRAMES_PER_SECOND
from nclone_env.level import LevelSet, pack
from nclone_env.render import encoded, level_picture, sprite_sheet, walls_picture, with_path
from nclone_env.replay import RECORDING_SUFFIX, STATE_NAMES, Recording, write_recording
from nclone_env.sim import Session

ASSETS = Path(__file__).with_name("assets")
MAGNIFICATION = 4
"""Pixels of a sprite per pixel of the world."""
_SCRIPTS = ("tracks", "scene", "player")
_ORDERS = {
    "order": "as given",
    "title": "title",
    "shortest": "shortest solution",
    "longest": "longest solution",
    "gold": "most gold",
    "entities": "most entities",
    "easiest": "easiest",
    "hardest": "hardest",
}
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


def write_site(output: str | Path, title: str, entries: Sequence[Entry], written: Iterable[LevelFiles]) -> None:
    """Write a gallery, all of it or nothing.

    Args:
        output: folder of the site, or a symbolic link to it; an older gallery there is replaced.
        entries: its levels, at least one.
    """
    output = Path(os.path.realpath(expanded(output)))  # a link stays, and its target is replaced
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


def check_output(output: str | Path, force: bool) -> None:
    """Check that a gallery can be written to a folder without loss of other files."""
    output = expanded(output)
    if Path(os.path.realpath(output)).is_symlink():
        raise ConfigError(f"output: expected a new folder or a gallery, got {output}, a symbolic link to itself")
    names = {path.name for path in output.iterdir()} - {LOCK} if output.is_dir() else {output.name}
    if not output.exists() or not names:
        return
    index = output / "index.html"
    if not index.is_file() or MARK not in index.read_text(encoding="utf-8", errors="replace")[:2000]:
        raise ConfigError(f"output: expected a new folder or a gallery, got {output} with other files; choose another")
    others = sorted(names - _OWN)
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
    small = encoded(poster, ".webp", facts.size(_THUMBNAIL))
    return {f"{entry.page}-small.webp": small, f"{entry.page}.webp": encoded(large, ".webp")}


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
    sheet = sprite_sheet(MAGNIFICATION)
    (folder / "sprites.webp").write_bytes(encoded(sheet.picture, ".webp"))
    (folder / "icon.png").write_bytes(encoded(sheet.ninja, ".png"))


class Markup(str):
    """HTML that stays as it is; any other text is escaped."""

    __slots__ = ()


_NOTHING = Markup("")


def fill(template: str, **values: object) -> Markup:
    """Return a template of the folder ``assets`` with placeholders, such as ``$title``, replaced by values as text."""
    return Markup(_template(template).substitute({name: escaped(value) for name, value in values.items()}))


def joined(parts: Any) -> Markup:
    """Return fragments of HTML in one."""
    return Markup("\n".join(parts))


def escaped(value: object) -> Markup:
    """Return text as HTML, also for attributes in double quotes; characters that cannot be shown become spaces."""
    if isinstance(value, Markup):
        return value
    return Markup(html.escape("".join(each if each.isprintable() else " " for each in str(value))))


def script_data(value: Any) -> Markup:
    """Return JSON that is inert within a ``script`` element: it contains no ``<``."""
    return Markup(json.dumps(value, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c"))


@lru_cache
def _template(name: str) -> Template:
    return Template((ASSETS / f"{name}.html").read_text(encoding="utf-8"))


def seconds(frames: int) -> str:
    """Return frames as seconds, to the millisecond."""
    return f"{frames / FRAMES_PER_SECOND:.3f} s"


def index_page(title: str, entries: Sequence[Entry]) -> Markup:
    """Return the list of levels."""
    runs = sum(len(entry.runs) for entry in entries)
    several = len({entry.level.raw.author for entry in entries}) > 1
    return fill(
        "index",
        head=fill("head", title=title, root=""),
        title=title,
        count=_counted(len(entries), "level"),
        runs=f" · {_counted(runs, 'run')}" if runs else "",
        orders=joined(_orders(entries)),
        cards=joined(_card(number, entry, several) for number, entry in enumerate(entries)),
    )


def level_page(
    gallery: str, entry: Entry, before: Entry | None, after: Entry | None, tracks: Sequence[Tracks]
) -> Markup:
    """Return the page of a level with the tracks of its runs."""
    title = entry.title
    byline = " · ".join(part for part in (entry.level.name, entry.level.raw.author) if part and part != title)
    return fill(
        "level",
        head=fill("head", title=f"{title} · {gallery}", root="../"),
        gallery=gallery,
        title=title,
        byline=byline,
        previous=_link(before, "← previous", "prev"),
        next=_link(after, "next →", "next"),
        stage=_stage(entry, "player" if tracks else "picture"),
        runs=fill("runs", rows=joined(_run_rows(entry))) if tracks else _NOTHING,
        facts=joined(_facts(entry)),
        scripts=_scripts(entry, tracks) if tracks else _NOTHING,
    )


def _stage(entry: Entry, name: str) -> Markup:
    """Return the picture of a level, or the player of its runs."""
    sizes = {
        f"{side}{times}": value for times in (1, 2) for side, value in zip("wh", entry.facts.size(times), strict=True)
    }
    return fill(name, page=entry.page, title=entry.title, **sizes)


def _orders(entries: Sequence[Entry]) -> Iterator[Markup]:
    """Yield the orders that tell levels apart."""
    useless = set()
    if not any(entry.best for entry in entries):
        useless |= {"shortest", "longest"}
    if all(entry.facts.difficulty is None for entry in entries):
        useless |= {"easiest", "hardest"}
    for value, text in _ORDERS.items():
        if value not in useless:
            yield Markup(f'<option value="{value}">{text}</option>')


def _card(number: int, entry: Entry, several_authors: bool) -> Markup:
    facts, best = entry.facts, entry.best
    searched = (entry.title, entry.level.name, entry.level.raw.author, *facts.kinds, *facts.known.values())
    return fill(
        "card",
        order=number,
        page=entry.page,
        title=entry.title,
        width=facts.size(0.5)[0],
        height=facts.size(0.5)[1],
        text=" ".join(searched).lower(),
        line=" · ".join(_card_line(entry, several_authors)),
        gold=facts.gold,
        entities=facts.entities,
        runs=len(entry.runs),
        frames=best.frames if best else "",
        difficulty="" if facts.difficulty is None else facts.difficulty,
    )


def _card_line(entry: Entry, several_authors: bool) -> Iterator[str]:
    """Yield what stands below the title of a card."""
    facts = entry.facts
    if entry.best:
        yield f"▶ {seconds(entry.best.frames)}"
    elif entry.runs:
        yield f"▶ {_counted(len(entry.runs), 'run')}"
    if facts.difficulty is not None:
        yield f"difficulty {facts.difficulty}"
    if facts.gold:
        yield f"{facts.gold} gold"
    if several_authors and entry.level.raw.author:
        yield entry.level.raw.author
    elif not entry.runs:
        yield _counted(facts.entities, "entity", "entities")


def _link(entry: Entry | None, text: str, relation: str) -> Markup:
    if entry is None:
        return _NOTHING
    return Markup(f'<a rel="{relation}" href="{entry.page}.html" title="{escaped(entry.title)}">{text}</a>')


def _run_rows(entry: Entry) -> Iterator[Markup]:
    for number, run in enumerate(entry.runs):
        yield fill(
            "run",
            number=number,
            file=f"{entry.page}-{number + 1}.replay",
            checked="" if number else " checked",
            label=run.label,
            end=run.end,
            time=seconds(run.frames),
            gold=f"{run.gold}/{entry.facts.gold}",
        )


def _facts(entry: Entry) -> Iterator[Markup]:
    facts, best = entry.facts, entry.best
    shown = {"Author": entry.level.raw.author} if entry.level.raw.author else {}
    if best:
        shown["Solution"] = f"{seconds(best.frames)} ({best.frames} frames)"
    if facts.difficulty is not None:
        shown["Difficulty"] = f"{facts.difficulty} of 100"
    shown |= {"Size": f"{facts.columns} × {facts.rows} cells", **facts.known}
    shown |= {kind.capitalize(): str(count) for kind, count in facts.kinds.items()}
    for name, value in shown.items():
        yield Markup(f"<dt>{escaped(name)}</dt><dd>{escaped(value)}</dd>")


def _scripts(entry: Entry, tracks: Sequence[Tracks]) -> Markup:
    """Return the data of the player and its scripts."""
    data = Markup(f'<script type="application/json" id="data">{script_data(_data(entry, tracks))}</script>')
    return joined([data, *(Markup(f'<script src="../assets/{name}.js"></script>') for name in _SCRIPTS)])


def _data(entry: Entry, tracks: Sequence[Tracks]) -> dict[str, Any]:
    """Return what the player reads; ``tracks.js`` and ``scene.js`` name the parts."""
    sheet = sprite_sheet(MAGNIFICATION)
    beams = [{"colour": f"rgb({red},{green},{blue})", "width": width} for width, (red, green, blue) in sheet.beams]
    return {
        "walls": f"{entry.page}.webp",
        "sheet": "../assets/sprites.webp",
        "side": MAGNIFICATION * sheet.side,
        "sprite": sheet.side,
        "columns": sheet.columns,
        "area": entry.facts.area._asdict(),
        "steps": STEPS,
        "beams": beams,
        "states": STATE_NAMES,
        "gold": entry.facts.gold,
        "sprites": tracks[0].sprites,
        "shooters": tracks[0].shooters,
        "start": tracks[0].start.tolist(),
        "runs": [_run_data(run, each) for run, each in zip(entry.runs, tracks, strict=True)],
    }


def _run_data(run: GalleryRun, tracks: Tracks) -> dict[str, Any]:
    return {"label": run.label, "frames": tracks.frames, "tracks": tracks.texts()}


def _counted(count: int, one: str, many: str | None = None) -> str:
    return f"{count:,} {one if count == 1 else many or f'{one}s'}"
