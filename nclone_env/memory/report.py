"""Reporting: format Stats as text and JSON; nothing is measured here."""

from __future__ import annotations

import dataclasses
import json
import os
import sysconfig
from collections.abc import Sequence
from pathlib import Path

from nclone_env._files import write_file
from nclone_env.memory.recording import WARM_UP_SHARE, FunctionTime
from nclone_env.memory.stats import (
    MIN_SNAPSHOTS,
    RESIDENT_FLOOR,
    STANDARD_ERRORS,
    TRACED_FLOOR,
    Growth,
    Stats,
)

MEMORY_REPORT, PROFILE_REPORT, JSON_REPORT = (
    "memory_profiling_report.txt",
    "profiling_stats.txt",
    "memory_profiling_report.json",
)
JSON_FORMAT, JSON_VERSION = "nclone_env memory profile", 1
_LOCATION_WIDTH = 56
_PACKAGE_FOLDER = Path(__file__).parents[2]


def write_reports(stats: Stats, folder: Path, as_json: bool = False) -> tuple[Path, ...]:
    """Write the reports to a folder, each atomically, and return their paths.

    Args:
        stats: statistics to report.
        folder: created if it does not exist.
        as_json: also write the statistics as JSON.
    """
    folder.mkdir(parents=True, exist_ok=True)
    pages = {MEMORY_REPORT: memory_text(stats), PROFILE_REPORT: profile_text(stats)}
    if as_json:
        pages[JSON_REPORT] = json_text(stats)
    for name, text in pages.items():
        write_file(folder / name, text.encode())
    return tuple(folder / name for name in pages)


def json_text(stats: Stats) -> str:
    """Return the statistics as JSON; keys are field names, sizes are in bytes, times in seconds."""
    content = {"format": JSON_FORMAT, "version": JSON_VERSION, **dataclasses.asdict(stats)}
    return json.dumps(content, indent=2) + "\n"


def memory_text(stats: Stats) -> str:
    """Return the memory report."""
    sections = (
        _head("Memory profile", stats),
        _result(stats),
        _glossary(),
        _owners(stats),
        _accounting(stats),
        _snapshots(stats),
        _growth(stats),
        _largest(stats),
        _grown(stats),
    )
    return "\n\n".join("\n".join(section) for section in sections) + "\n"


def summary_text(stats: Stats) -> str:
    """Return a summary of a few lines."""
    return "\n".join(_result(stats))


def profile_text(stats: Stats) -> str:
    """Return the report of time by function."""
    ratio = stats.speed.plain / stats.speed.profiled
    speed = (
        "Throughput (1 environment step = one action of one environment)",
        *table(
            ("", "env steps/s"),
            (
                ("without profiling (pass 1)", f"{stats.speed.plain:,.0f}"),
                ("under cProfile (pass 3)", f"{stats.speed.profiled:,.0f}"),
            ),
        ),
        f"cProfile slows the steps down by a factor of {ratio:.2f}: read the times below as proportions.",
    )
    sections = (
        _head("Time profile", stats),
        speed,
        ("Functions by cumulative time (including callees)", *_functions(stats, stats.by_cumulative)),
        ("Functions by own time", *_functions(stats, stats.by_own)),
    )
    return "\n\n".join("\n".join(section) for section in sections) + "\n"


def format_bytes(count: float, sign: bool = False) -> str:
    """Format a number of bytes with a binary unit: B, KB (one decimal), MB or GB (two decimals).

    Args:
        count: bytes.
        sign: prefix non-negative numbers with a plus sign.
    """
    value, unit = abs(count), "B"
    if value < 0.05:
        return "0 B"
    for larger in ("KB", "MB", "GB"):
        if value < 1023.95:
            break
        value, unit = value / 1024, larger
    places = {"B": int(value != round(value)), "KB": 1}.get(unit, 2)
    digits = f"{value:,.{places}f}"
    prefix = "-" if count < 0 else "+" if sign else ""
    return f"{prefix}{digits} {unit}"


def table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Format a table: first column left-aligned, others right-aligned, a rule below the titles."""
    widths = [max(len(row[i]) for row in (titles, *rows)) for i in range(len(titles))]
    lines = []
    for row in (titles, ["-" * width for width in widths], *rows):
        cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:]))]
        lines.append(("  " + "  ".join(cells)).rstrip())
    return lines


def _head(title: str, stats: Stats) -> tuple[str, ...]:
    machine, settings = stats.machine, stats.settings
    facts = (
        ("environments", f"{settings.num_envs}"),
        ("steps", f"{settings.steps:,} vector steps per pass, a snapshot every {settings.interval:,}"),
        ("actions", f"uniform random, seed {settings.seed}"),
        ("levels", ", ".join(settings.levels) or "not specified"),
        ("observations", ", ".join(settings.observations) or "not specified"),
        ("machine", f"{machine.processor}, {machine.cores} cores, {machine.system}"),
        (
            "versions",
            ", ".join((machine.python, *(f"{name} {version}" for name, version in machine.packages))),
        ),
    )
    width = max(len(name) for name, _ in facts)
    return (title, "=" * len(title), *(f"  {name.ljust(width)}  {text}" for name, text in facts))


def _result(stats: Stats) -> tuple[str, ...]:
    total = stats.owners[0]
    own, shared = format_bytes(total.per_env_bytes), format_bytes(total.shared_bytes)
    return (
        "Result",
        f"  memory   {own} per environment, {shared} shared by all {stats.settings.num_envs}",
        f"  growth   {stats.verdict.upper()}",
        *(f"             {item.quantity.ljust(6)}  {_rate(item)}" for item in stats.growths),
        f"  speed    {stats.speed.plain:,.0f} environment steps/s",
    )


def _glossary() -> tuple[str, ...]:
    return (
        "Glossary (1 KB is 1,024 bytes)",
        "  traced  memory traced by tracemalloc, without the profiler itself",
        "  RSS     resident set size of the process",
        "  PSS     proportional set size: pages shared by several processes count in proportion",
        "  data    PSS without file-backed pages (program code), which vary as other processes start or end",
    )


def _rate(item: Growth) -> str:
    if item.verdict == "undecided":
        return f"undecided ({item.snapshots} snapshots after warm-up, at least {MIN_SNAPSHOTS} required)"
    return f"{format_bytes(item.slope, sign=True)} per 1,000 steps (noise margin {format_bytes(item.margin)})"


def _owners(stats: Stats) -> tuple[str, ...]:
    rows = [
        (
            "  " * row.depth + row.name,
            _or_dash(row.shared_bytes),
            _or_dash(row.environment_bytes),
            _or_dash(row.per_env_bytes),
        )
        for row in stats.owners
    ]
    titles = ("owner", "shared", f"all {stats.settings.num_envs} environments", "per environment")
    return (
        "Memory by owner, as reported by the environments (a row includes the rows indented below it)",
        *table(titles, rows),
    )


def _or_dash(count: float) -> str:
    return format_bytes(count) if count else "-"


def _accounting(stats: Stats) -> tuple[str, ...]:
    account = stats.accounting
    rows = [(part.name, format_bytes(part.share_bytes), part.how) for part in account.parts]
    rows += [
        ("accounted", format_bytes(account.accounted_bytes), "sum of the above"),
        ("measured", format_bytes(account.measured_bytes), "PSS after the environments were created"),
        ("unaccounted", format_bytes(account.unaccounted_bytes, sign=True), "measured - accounted"),
    ]
    width = max(len(row[1]) for row in rows)
    lines = (f"  {name.ljust(14)}  {size.rjust(width)}  {how}" for name, size, how in rows)
    added = format_bytes(account.environments_measured_bytes, sign=True)
    reported = format_bytes(account.parts[-1].share_bytes)
    return (
        "Accounted and measured memory",
        *lines,
        f"  Creating the environments changed the PSS by {added}; they report {reported}. The PSS can rise by less:",
        "  pages never written are not resident, and memory freed by the warm-up environment is reused.",
    )


def _snapshots(stats: Stats) -> tuple[str, ...]:
    rows = [
        (
            f"{traced.step:,}" + (" *" if traced.step < stats.warm_up_steps else ""),
            format_bytes(traced.traced_bytes),
            f"{traced.blocks:,}",
            format_bytes(resident.rss_bytes),
            format_bytes(resident.pss_bytes),
            format_bytes(resident.data_bytes),
        )
        for traced, resident in zip(stats.traced, stats.resident)
    ]
    return (
        f"Snapshots (* warm-up, not fitted; all but traced from {stats.machine.resident_source})",
        *table(("step", "traced", "blocks", "RSS", "PSS", "data"), rows),
    )


def _growth(stats: Stats) -> tuple[str, ...]:
    rows = [
        (
            item.quantity,
            f"{item.snapshots}",
            *(format_bytes(value, sign=True) for value in (item.slope, item.first_half_slope, item.second_half_slope)),
            format_bytes(item.error_margin),
            format_bytes(item.floor_margin),
            item.verdict,
        )
        for item in stats.growths
    ]
    titles = (
        "bytes per 1,000 steps",
        "snapshots",
        "slope",
        "first half",
        "second half",
        "error",
        "floor",
        "verdict",
    )
    return (
        f"Growth: {stats.verdict}",
        *table(titles, rows),
        "",
        f"  Method: a least-squares fit to the snapshots from step {stats.warm_up_steps:,} on; "
        f"the first {WARM_UP_SHARE:.0%} of the steps are warm-up.",
        "  Growing: the slope exceeds the noise margin, and each half of the snapshots alone rises faster",
        "  than the floor (a single jump is not growth). The noise margin is the larger of",
        f"    error: {STANDARD_ERRORS:g} standard errors of the slope, and",
        f"    floor: {format_bytes(TRACED_FLOOR)} (traced) or {format_bytes(RESIDENT_FLOOR)} (data) "
        "divided by the number of fitted steps.",
        f"  Otherwise flat; undecided with fewer than {MIN_SNAPSHOTS} snapshots. "
        "The overall verdict is growing if any quantity grows.",
        "  Growth below the margin is not detected: profile more steps to narrow it.",
    )


def _largest(stats: Stats) -> tuple[str, ...]:
    rows = [
        (_location(line.file, line.line), format_bytes(line.live_bytes), f"{line.blocks:,}")
        for line in stats.largest_lines
    ]
    return (
        f"Largest lines at step {stats.settings.steps:,} (tracemalloc, memory allocated in the traced pass)",
        *table(("line", "live", "blocks"), rows or [("none", "-", "-")]),
    )


def _grown(stats: Stats) -> tuple[str, ...]:
    rows = [
        (
            _location(line.file, line.line),
            format_bytes(line.grown_bytes, sign=True),
            f"{line.grown_blocks:+,}",
        )
        for line in stats.grown_lines
    ]
    first = next((item.step for item in stats.traced if item.step >= stats.warm_up_steps), stats.warm_up_steps)
    return (
        f"Lines with the most growth from step {first:,} to step {stats.settings.steps:,} (tracemalloc)",
        *table(("line", "growth", "blocks"), rows or [("none", "-", "-")]),
    )


def _functions(stats: Stats, functions: Sequence[FunctionTime]) -> list[str]:
    steps = stats.settings.steps
    rows = [
        (
            f"{item.name} ({_location(item.file, item.line)})" if item.line else item.name,
            f"{item.calls:,}",
            f"{item.own_seconds:.4f}",
            f"{item.own_seconds / steps * 1e6:,.2f}",
            f"{item.cumulative_seconds:.4f}",
            f"{item.cumulative_seconds / steps * 1e6:,.2f}",
        )
        for item in functions
    ]
    return table(("function", "calls", "own s", "own us/step", "cumulative s", "cumulative us/step"), rows)


def _location(file: str, line: int) -> str:
    """Return file:line, relative to the folder of installed packages and truncated on the left."""
    for folder in (sysconfig.get_path("purelib"), sysconfig.get_path("stdlib"), str(_PACKAGE_FOLDER)):
        if file.startswith(folder + os.sep):
            file = file[len(folder) + 1 :]
            break
    text = f"{file}:{line}"
    return text if len(text) <= _LOCATION_WIDTH else "..." + text[3 - _LOCATION_WIDTH :]
