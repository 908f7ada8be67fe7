"""The report as a page: the answer on the first screen, all else folded."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from nclone_env._optional import optional_module
from nclone_env.memory.charts import HEIGHT, WIDTH
from nclone_env.memory.formatting import format_bytes
from nclone_env.memory.section import Row
from nclone_env.memory.sections import memory_sections, time_sections
from nclone_env.memory.stats import Stats

_TEMPLATE = Path(__file__).with_name("report.html.jinja")
_FOLDED_FROM = "Run"
"""Title of the first section that is not on the first screen."""
_PEAK = "peak"
"""Part of the answer that a section of the first screen has in detail."""


class Card(NamedTuple):
    """A part of the answer."""

    name: str
    texts: list[str]


def html_text(stats: Stats) -> str:
    """Return the report as one page of HTML that needs no network.

    Raises:
        MissingExtraError: if Jinja2 is not installed.
    """
    answer, *sections = memory_sections(stats)
    first = [section.title for section in sections].index(_FOLDED_FROM)
    page: str = page_template().render(
        title=answer.title,
        verdict=stats.verdict,
        cards=[card for card in cards(answer.rows) if not (card.name == _PEAK and first)],
        floors=[(item.quantity, format_bytes(item.margin)) for item in stats.growths if item.margin],
        shown=sections[:first],
        folded=[*sections[first:], *time_sections(stats)],
        width=WIDTH,
        height=HEIGHT,
    )
    return page


def cards(rows: Iterable[Row]) -> list[Card]:
    """Return the rows of the answer by name; a row without a name continues the one before."""
    found: list[Card] = []
    for name, text in rows:
        if name:
            found.append(Card(name, []))
        found[-1].texts.append(text)
    return found


def page_template() -> Any:
    """Return the template of the page.

    Raises:
        MissingExtraError: if Jinja2 is not installed.
    """
    jinja2 = optional_module("jinja2", "profile")
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    return environment.from_string(_TEMPLATE.read_text())
