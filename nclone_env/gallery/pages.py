"""The pages of a gallery: the list of levels, and a page for each level, with a player if there are runs on it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from nclone_env.constants import WORLD_WIDTH
from nclone_env.gallery.collect import Exhibit
from nclone_env.gallery.facts import seconds
from nclone_env.gallery.markup import Markup, escaped, fill, joined, script_data
from nclone_env.gallery.runs import Run
from nclone_env.gallery.tracks import STEPS, Tracks
from nclone_env.render.beams import BEAM_COLOURS, BEAM_WIDTHS
from nclone_env.render.sprites import SHEET_COLUMNS, SPRITE
from nclone_env.replay.verify import STATE_NAMES

MAGNIFICATION = 4
"""Pixels of a sprite per pixel of the world."""
_EMPTY = Markup("")
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


def index_page(title: str, exhibits: Sequence[Exhibit]) -> Markup:
    """Return the list of levels."""
    runs = sum(len(exhibit.runs) for exhibit in exhibits)
    several = len({exhibit.level.raw.author for exhibit in exhibits}) > 1
    return fill(
        "index",
        title=title,
        count=_counted(len(exhibits), "level"),
        runs=f" · {_counted(runs, 'run')}" if runs else "",
        orders=joined(_orders(exhibits)),
        cards=joined(_card(number, exhibit, several) for number, exhibit in enumerate(exhibits)),
    )


def level_page(
    gallery: str, exhibit: Exhibit, before: Exhibit | None, after: Exhibit | None, tracks: Sequence[Tracks]
) -> Markup:
    """Return the page of a level.

    Args:
        gallery: title of the gallery.
        exhibit: the level.
        before: the level before it.
        after: the level after it.
        tracks: those of its runs, in the same order.
    """
    title, page = exhibit.title, exhibit.page
    byline = " · ".join(part for part in (exhibit.level.name, exhibit.level.raw.author) if part and part != title)
    return fill(
        "level",
        gallery=gallery,
        title=title,
        byline=byline,
        previous=_link(before, "← previous", "prev"),
        next=_link(after, "next →", "next"),
        stage=fill("player" if tracks else "picture", page=page, title=title),
        runs=fill("runs", rows=joined(_run_rows(exhibit))) if tracks else _EMPTY,
        facts=joined(_facts(exhibit)),
        scripts=_scripts(exhibit, tracks) if tracks else _EMPTY,
    )


def _orders(exhibits: Sequence[Exhibit]) -> Iterator[Markup]:
    """Yield the orders that tell levels apart."""
    useless = set()
    if not any(exhibit.best for exhibit in exhibits):
        useless |= {"shortest", "longest"}
    if all(exhibit.facts.difficulty is None for exhibit in exhibits):
        useless |= {"easiest", "hardest"}
    for value, text in _ORDERS.items():
        if value not in useless:
            yield Markup(f'<option value="{value}">{text}</option>')


def _card(number: int, exhibit: Exhibit, several_authors: bool) -> Markup:
    facts, best = exhibit.facts, exhibit.best
    searched = (exhibit.title, exhibit.level.name, exhibit.level.raw.author, *facts.kinds, *facts.known.values())
    return fill(
        "card",
        order=number,
        page=exhibit.page,
        title=exhibit.title,
        text=" ".join(searched).lower(),
        line=" · ".join(_card_line(exhibit, several_authors)),
        gold=facts.gold,
        entities=facts.entities,
        runs=len(exhibit.runs),
        frames=best.frames if best else "",
        difficulty="" if facts.difficulty is None else facts.difficulty,
    )


def _card_line(exhibit: Exhibit, several_authors: bool) -> Iterator[str]:
    """Yield what stands below the title of a card."""
    facts = exhibit.facts
    if exhibit.best:
        yield f"▶ {seconds(exhibit.best.frames)}"
    elif exhibit.runs:
        yield f"▶ {_counted(len(exhibit.runs), 'run')}"
    if facts.difficulty is not None:
        yield f"difficulty {facts.difficulty}"
    if facts.gold:
        yield f"{facts.gold} gold"
    if several_authors and exhibit.level.raw.author:
        yield exhibit.level.raw.author
    elif not exhibit.runs:
        yield _counted(facts.entities, "entity", "entities")


def _link(exhibit: Exhibit | None, text: str, relation: str) -> Markup:
    if exhibit is None:
        return _EMPTY
    return Markup(f'<a rel="{relation}" href="{exhibit.page}.html" title="{escaped(exhibit.title)}">{text}</a>')


def _run_rows(exhibit: Exhibit) -> Iterator[Markup]:
    for number, run in enumerate(exhibit.runs):
        yield fill(
            "run",
            number=number,
            checked="" if number else " checked",
            label=run.label,
            end=run.end,
            time=seconds(run.frames),
            gold=f"{run.gold}/{exhibit.facts.gold}",
        )


def _facts(exhibit: Exhibit) -> Iterator[Markup]:
    facts, best = exhibit.facts, exhibit.best
    shown = {"Author": exhibit.level.raw.author} if exhibit.level.raw.author else {}
    if best:
        shown["Solution"] = f"{seconds(best.frames)} ({best.frames} frames)"
    if facts.difficulty is not None:
        shown["Difficulty"] = f"{facts.difficulty} of 100"
    shown |= {"Size": f"{facts.columns} × {facts.rows} cells", **facts.known}
    shown |= {kind.capitalize(): str(count) for kind, count in facts.kinds.items()}
    for name, value in shown.items():
        yield Markup(f"<dt>{escaped(name)}</dt><dd>{escaped(value)}</dd>")


def _scripts(exhibit: Exhibit, tracks: Sequence[Tracks]) -> Markup:
    """Return the data of the player and its scripts."""
    data = Markup(f'<script type="application/json" id="data">{script_data(_data(exhibit, tracks))}</script>')
    return joined([data, *(Markup(f'<script src="../assets/{name}.js"></script>') for name in _SCRIPTS)])


def _data(exhibit: Exhibit, tracks: Sequence[Tracks]) -> dict[str, Any]:
    """Return what the player reads; ``tracks.js`` and ``scene.js`` name the parts."""
    beams = [
        {"colour": f"rgb({red},{green},{blue})", "width": width}
        for (red, green, blue), width in zip(BEAM_COLOURS, BEAM_WIDTHS, strict=True)
    ]
    return {
        "walls": f"{exhibit.page}.webp",
        "sprites": "../assets/sprites.webp",
        "side": MAGNIFICATION * SPRITE,
        "sprite": SPRITE,
        "columns": SHEET_COLUMNS,
        "width": WORLD_WIDTH,
        "view": exhibit.facts.view._asdict(),
        "steps": STEPS,
        "beams": beams,
        "states": STATE_NAMES,
        "gold": exhibit.facts.gold,
        "things": tracks[0].things,
        "shooters": tracks[0].shooters,
        "start": tracks[0].start.tolist(),
        "runs": [_run_data(run, each) for run, each in zip(exhibit.runs, tracks, strict=True)],
    }


def _run_data(run: Run, tracks: Tracks) -> dict[str, Any]:
    return {"label": run.label, "frames": tracks.frames, "tracks": tracks.texts()}


def _counted(count: int, one: str, many: str | None = None) -> str:
    return f"{count:,} {one if count == 1 else many or f'{one}s'}"
