"""Writing reports: text, JSON, the page, and the files of cProfile and memray; nothing is measured here."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

from nclone_env._files import write_file
from nclone_env.memory.page import html_text
from nclone_env.memory.section import text_of
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


def write_reports(stats: Stats, folder: Path, as_json: bool = False, as_html: bool = False) -> tuple[Path, ...]:
    """Write the reports to a folder, each atomically, and return their paths.

    Args:
        stats: statistics to report.
        folder: created if it does not exist.
        as_json: also write the statistics as JSON.
        as_html: also write a page of HTML.

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
