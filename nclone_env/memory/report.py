"""Writing reports: text, JSON, a page of HTML, and the files of cProfile and memray; nothing is measured here."""

import dataclasses
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from nclone_env._files import write_file
from nclone_env.errors import optional_module
from nclone_env.memory.answer import per
from nclone_env.memory.section import HEIGHT, WIDTH, Row, format_bytes, text_of
from nclone_env.memory.sections import memory_sections, run, time_sections
from nclone_env.memory.stats import Stats

MEMORY_REPORT, TIME_REPORT, TIME_PROFILE, JSON_REPORT, HTML_REPORT, FLAME_GRAPH = (
    "memory_profiling_report.txt",
    "profiling_stats.txt",
    "profiling_stats.prof",
    "memory_profiling_report.json",
    "memory_profiling_report.html",
    "memray_flamegraph.html",
)
JSON_FORMAT, JSON_VERSION = "nclone_env memory profile", 3
_JSON_KEYS = (
    *("name", "unit", "facts", "machine", "settings", "verdict", "growths", "per_environment", "sizes", "owners"),
    *("stages", "warm_up_steps", "snapshots", "traced", "largest_lines", "grown_lines", "step_peak", "churn", "phases"),
    *("advice", "keepers", "judged", "loading"),
    *("by_cumulative", "by_own", "speed", "env_steps"),
)
_TEMPLATE = Path(__file__).with_name("report.html.jinja")
_FOLDED_FROM = "Run"
"""Title of the first section that is not on the first screen."""
_PEAK = "peak"
"""Part of the answer that a section of the first screen has in detail."""


def write_reports(stats: Stats, folder: Path, as_json: bool = False, as_html: bool = False) -> tuple[Path, ...]:
    """Write the reports to a folder, each atomically, and return their paths.

    Args:
        folder: created if it does not exist.

    Raises:
        MissingExtraError: if there is to be a page and Jinja2 is not installed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    files = {
        MEMORY_REPORT: memory_text(stats).encode(),
        TIME_REPORT: time_text(stats).encode(),
        TIME_PROFILE: stats.measurements.profile,
        FLAME_GRAPH: stats.measurements.flame_graph,
        JSON_REPORT: json_text(stats).encode() if as_json else b"",
        HTML_REPORT: html_text(stats).encode() if as_html else b"",
    }
    written = {folder / name: content for name, content in files.items() if content}
    for path, content in written.items():
        write_file(path, content)
    return tuple(written)


def memory_text(stats: Stats) -> str:
    """Return the report of memory as text."""
    return text_of(memory_sections(stats)) + "\n"


def time_text(stats: Stats) -> str:
    """Return the report of time by function as text; empty if it was not measured."""
    sections = time_sections(stats)
    return text_of([*sections, run(stats)]) + "\n" if sections else ""


def json_text(stats: Stats) -> str:
    """Return the statistics as JSON; keys are field names, sizes are in bytes, times in seconds."""
    found = dataclasses.asdict(stats)
    found |= found.pop("measurements")
    found["warm_up_steps"] = stats.measurements.settings.warm_up_steps
    content = {"format": JSON_FORMAT, "version": JSON_VERSION, **{key: found[key] for key in _JSON_KEYS}}
    return json.dumps(content, indent=2) + "\n"


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
        per=per(stats),
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
