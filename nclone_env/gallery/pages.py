"""The pages of a gallery: the list of levels, and a page for each level, with a player if there are runs on it.

They are made from the templates in ``assets``. What comes from level files is text: it is escaped and never obeyed.
"""

import html
import json
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from string import Template
from typing import Any

from nclone_env.gallery.entries import Entry, GalleryRun
from nclone_env.gallery.tracks import STEPS, Tracks
from nclone_env.game import FRAMES_PER_SECOND
from nclone_env.render import BEAM_COLOURS, BEAM_WIDTHS, SHEET_COLUMNS, SPRITE
from nclone_env.replay import STATE_NAMES

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


class Markup(str):
    """HTML that stays as it is; any other text is escaped."""

    __slots__ = ()


def fill(template: str, **values: object) -> Markup:
    """Return a template of the folder ``assets`` with its placeholders replaced, such as ``$title``.

    Args:
        template: name of the file, without suffix.
        **values: the text of each placeholder; other values are converted to text.
    """
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


_EMPTY = Markup("")


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
    """Return the page of a level.

    Args:
        tracks: those of its runs, in the same order.
    """
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
        runs=fill("runs", rows=joined(_run_rows(entry))) if tracks else _EMPTY,
        facts=joined(_facts(entry)),
        scripts=_scripts(entry, tracks) if tracks else _EMPTY,
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
        return _EMPTY
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
    beams = [
        {"colour": f"rgb({red},{green},{blue})", "width": width}
        for (red, green, blue), width in zip(BEAM_COLOURS, BEAM_WIDTHS, strict=True)
    ]
    return {
        "walls": f"{entry.page}.webp",
        "sheet": "../assets/sprites.webp",
        "side": MAGNIFICATION * SPRITE,
        "sprite": SPRITE,
        "columns": SHEET_COLUMNS,
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
