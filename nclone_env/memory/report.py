"""Writing reports: text, JSON, HTML, and the files of cProfile and memray; nothing is measured here."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

from nclone_env._files import write_file
from nclone_env.memory.html import html_text
from nclone_env.memory.stats import Stats
from nclone_env.memory.text import memory_text, time_text

MEMORY_REPORT, TIME_REPORT, TIME_PROFILE, JSON_REPORT, HTML_REPORT, FLAME_GRAPH = (
    "memory_profiling_report.txt",
    "profiling_stats.txt",
    "profiling_stats.prof",
    "memory_profiling_report.json",
    "memory_profiling_report.html",
    "memray_flamegraph.html",
)
JSON_FORMAT, JSON_VERSION = "nclone_env memory profile", 2


def write_reports(
    stats: Stats,
    folder: Path,
    as_json: bool = False,
    as_html: bool = False,
    profile: bytes = b"",
    flame_graph: bytes = b"",
) -> tuple[Path, ...]:
    """Write the reports to a folder, each atomically, and return their paths.

    Args:
        stats: statistics to report.
        folder: created if it does not exist.
        as_json: also write the statistics as JSON.
        as_html: also write a page of HTML.
        profile: the profile of cProfile, written for ``pstats`` and ``snakeviz``; empty: none.
        flame_graph: the page of memray; empty: none.
    """
    folder.mkdir(parents=True, exist_ok=True)
    files = {MEMORY_REPORT: memory_text(stats).encode()}
    if stats.by_own:
        files[TIME_REPORT] = time_text(stats).encode()
    if profile:
        files[TIME_PROFILE] = profile
    if flame_graph:
        files[FLAME_GRAPH] = flame_graph
    if as_json:
        files[JSON_REPORT] = json_text(stats).encode()
    if as_html:
        files[HTML_REPORT] = html_text(stats).encode()
    for name, content in files.items():
        write_file(folder / name, content)
    return tuple(folder / name for name in files)


def json_text(stats: Stats) -> str:
    """Return the statistics as JSON; keys are field names, sizes are in bytes, times in seconds."""
    content = {"format": JSON_FORMAT, "version": JSON_VERSION, **dataclasses.asdict(stats)}
    return json.dumps(content, indent=2) + "\n"
