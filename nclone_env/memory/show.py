"""The report: sections made from the statistics, the answer in a few lines first, as text, JSON and a page of HTML.

Charts of bytes are points and ticks in pixels of a drawing area that the template of the page frames with text. The
area is small enough that the text stays readable on a phone. Two reports in JSON are compared row by row. Nothing is
measured here.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
import sysconfig
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, zip_longest
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from nclone_env._files import open_regular, write_file
from nclone_env._table import format_bytes, is_numeric, table
from nclone_env.errors import ConfigError, Within, check_value, optional_module, plain, shortened
from nclone_env.memory.explain.stats import GrownLine, LiveLine, PerEnvironment, Stats, culprits
from nclone_env.memory.judge import (
    FALLS,
    MIN_SNAPSHOTS,
    PARTS,
    RISES,
    Growth,
    decided_at,
    growing_alone,
    judged_steps,
    least_span,
    series,
)
from nclone_env.memory.measure.measurements import (
    FIRST_STEPS,
    MADE,
    NATIVE,
    STEPS,
    TIME_UNIT,
    WARM_UP_SHARE,
    WORKER,
    AllocatingLine,
    FunctionTime,
    OwnedNode,
)

Row = Sequence[str]
Point = tuple[float, float]
WIDTH, HEIGHT = 384, 196
"""Of the drawing area of a chart."""
_TICKS = 4
_LOCATION_WIDTH = 56
_PACKAGE_FOLDER = Path(__file__).parents[2]
_CALLERS = 4  # of a line, in the report
_SMALL_SHARE = 0.01  # of the bytes of the root; smaller rows are folded
_LATER = (MADE, FIRST_STEPS, STEPS, "after")
"""Stages in which what is profiled exists; those before them are parts of the peak."""
_ENVIRONMENTS = ("vector environment", "environments", "environment")
_TRAINING = "training run"
MEMORY_REPORT, TIME_REPORT, TIME_PROFILE = "memory_profiling_report.txt", "profiling_stats.txt", "profiling_stats.prof"
JSON_REPORT, HTML_REPORT = "memory_profiling_report.json", "memory_profiling_report.html"
FLAME_GRAPH = "memray_flamegraph.html"
JSON_FORMAT, JSON_VERSION = "nclone_env memory profile", 3
_MOST_BYTES, _MOST_DEPTH, _MOST_SHOWN = 1 << 23, 64, 200
"""Of a profile that is read: bytes, levels of owners, and characters of a name."""
_SIZE = Annotated[float, Within(-(2**63), 2**63)]
_COUNT, _DEPTH = Annotated[int, Within(0, 2**31)], Annotated[int, Within(0, _MOST_DEPTH)]
_JSON_KEYS = (
    *("name", "unit", "facts", "machine", "settings", "verdict", "growths", "per_environment", "sizes", "owners"),
    *("stages", "warm_up_steps", "snapshots", "traced", "largest_lines", "grown_lines", "step_peak", "churn", "phases"),
    *("advice", "keepers", "judged", "tracing", "loading"),
    *("by_cumulative", "by_own", "speed", "env_steps"),
)
_TEMPLATE = Path(__file__).with_name("show.html.jinja")


class Section(NamedTuple):
    """A part of the report; one without rows was not measured."""

    title: str
    rows: Sequence[Row]
    columns: Row = ()
    """Titles of the columns; empty: each row is a name and a text."""
    notes: Sequence[str] = ()
    """Lines below the rows."""
    shares: Sequence[float] = ()
    """Length of the bar behind each row, 0..1, in HTML; empty: no bars."""
    charts: Sequence[Chart] = ()
    """Pictures above the rows, in HTML."""

    def sides(self) -> list[str]:
        """Return the class of each column in HTML: ``number`` if it is aligned on the right, else nothing."""
        _, *others = zip_longest(self.columns, *self.rows, fillvalue="")
        return ["", *("number" if is_numeric(cells) else "" for _, *cells in others)]


def text_of(sections: Iterable[Section]) -> str:
    """Return sections as text, with an empty line between two."""
    return "\n\n".join("\n".join(_lines(section)) for section in sections)


def _lines(section: Section) -> Iterator[str]:
    yield section.title
    if section.columns:
        titles, *lines = table(section.columns, section.rows)
        lines = [titles, "-" * max(map(len, (titles, *lines))), *lines, *("",) * bool(section.notes)]
    else:
        width = max(len(name) for name, _ in section.rows)
        lines = [f"{name:<{width}}  {text}" for name, text in section.rows]
    yield from (f"  {line}".rstrip() for line in (*lines, *section.notes))


class Line(NamedTuple):
    """A series of a chart."""

    name: str
    style: str
    """Class of the style sheet: ``first``, ``fit`` or ``band``."""
    points: Sequence[Point]


class Chart(NamedTuple):
    """Axes and series, in pixels from the upper left corner of the drawing area."""

    caption: str
    x_name: str
    x_ticks: Sequence[tuple[float, str]]
    y_ticks: Sequence[tuple[float, str]]
    lines: Sequence[Line]


def chart(caption: str, x_name: str, lines: Sequence[Line], signed: bool = False) -> Chart:
    """Draw series of (x, bytes), or of changes of bytes if ``signed``; otherwise the vertical axis begins at 0."""
    points = [point for line in lines for point in line.points]
    x_low, x_high = _span([x for x, _ in points])
    y_low, y_high = _span([y for _, y in points] + [0.0] * (not signed))

    def across(x: float) -> float:
        return round((x - x_low) / (x_high - x_low) * WIDTH, 1)

    def down(y: float) -> float:
        return round((y_high - y) / (y_high - y_low) * HEIGHT, 1)

    unit = 1024 ** max(0, int(math.log(max(abs(y_low), abs(y_high)), 1024)))  # round numbers of the larger bound's unit
    sizes = [tick * unit for tick in ticks(y_low / unit, y_high / unit)]
    return Chart(
        caption,
        x_name,
        [(across(tick), f"{tick:,.0f}") for tick in ticks(x_low, x_high)],
        [(down(size), format_bytes(size, sign=signed and size != 0)) for size in sizes],
        [line._replace(points=[(across(x), down(y)) for x, y in line.points]) for line in lines],
    )


def ticks(low: float, high: float) -> list[float]:
    """Return round numbers between two bounds, about four of them."""
    raw = (high - low) / _TICKS
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= raw)
    first = math.ceil(low / step)
    return [number * step for number in range(first, math.floor(high / step) + 1)]


def _span(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    margin = max((high - low) * 0.04, 1.0)
    return (low if low == 0 else low - margin), high + margin


def format_seconds(seconds: float) -> str:
    """Format a time with a unit: us, ms or s, three significant digits."""
    for factor, unit in ((1e6, "us"), (1e3, "ms")):
        if abs(seconds) * factor < 1000:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds:.3g} s"


def location(place: str) -> str:
    """Return ``file:line`` relative to the folder of installed packages, truncated on the left."""
    for folder in (sysconfig.get_path("purelib"), sysconfig.get_path("stdlib"), str(_PACKAGE_FOLDER)):
        if place.startswith(folder + os.sep):
            place = place[len(folder) + 1 :]
            break
    return place if len(place) <= _LOCATION_WIDTH else "..." + place[3 - _LOCATION_WIDTH :]


def memory_sections(stats: Stats) -> list[Section]:
    """Return the report of memory."""
    makers = (
        *(summary, peak_section, run, _sizes, _owners, _stages, _growths, _snapshots),
        *(_phases, _churn, _largest, _grown),
    )
    return [section for make in makers if (section := make(stats)).rows]


def time_sections(stats: Stats) -> list[Section]:
    """Return the report of time by function; empty if it was not measured."""
    speed = stats.speed
    if speed is None or not stats.by_own:
        return []
    notes = (
        f"{step_times(stats)}, without profiling",
        f"cProfile slows the steps down by a factor of {speed.plain / speed.profiled:.2f}: "
        "read the times below as proportions.",
    )
    rows = [("without profiling", f"{speed.plain:,.0f}"), ("under cProfile", f"{speed.profiled:,.0f}")]
    return [
        Section(f"Time profile: {stats.measurements.name}", rows, ("", rate(stats)), notes),
        _functions(
            "Functions by cumulative time (including callees)", stats, stats.by_cumulative, "cumulative_seconds"
        ),
        _functions("Functions by own time", stats, stats.by_own, "own_seconds"),
    ]


def summary(stats: Stats) -> Section:
    """Return the answer."""
    rows = [
        ("" if number else name, text) for name, texts in answers(stats).items() for number, text in enumerate(texts)
    ]
    return Section(f"Memory profile: {subject(stats)}", rows)


def answers(stats: Stats) -> dict[str, list[str]]:
    """Return the parts of the answer by name, a text for each line."""
    found = {
        "growth": [f"{stats.verdict.upper()}{_blame(stats)}"],
        "grew": list(_culprits(stats)) if any(item.rises for item in stats.growths) else [],
        "memory": list(_memory(stats)),
        "peak": [f"{format_bytes(stats.peak_bytes)} resident"] if stats.peak_bytes else [],
        "advice": [advice.text for advice in stats.measurements.advice],
        "churn": list(_freed(stats)),
        "speed": [f"{stats.speed.plain:,.0f} {rate(stats)}; {step_times(stats)}"] if stats.speed is not None else [],
    }
    return {name: texts for name, texts in found.items() if texts}


def _memory(stats: Stats) -> Iterator[str]:
    found, owners = stats.per_environment, stats.measurements.owners
    if found is not None:
        yield (
            f"{format_bytes(found.measured)} measured for each further environment, "
            f"{format_bytes(found.reported)} reported by the owners"
        )
    elif owners:
        count, reported = stats.measurements.settings.num_envs, owners[0].environment_bytes
        each = f"{format_bytes(reported / count)} per environment" if count else format_bytes(reported)
        yield f"{each}, as reported by the owners"
    if owners and owners[0].shared_bytes:
        yield f"{format_bytes(owners[0].shared_bytes)} shared by all environments"


def _freed(stats: Stats) -> Iterator[str]:
    if stats.step_peak is not None:
        yield (
            f"at most {format_bytes(stats.step_peak.median)} at a time in {article(stats.measurements.unit)} (median), "
            f"{format_bytes(stats.step_peak.largest)} in the worst one, freed at its end"
        )
    if stats.churn is not None:
        yield f"{stats.churn.blocks:,.0f} allocations, {format_bytes(stats.churn.allocated_bytes)} in all"


def rate(stats: Stats) -> str:
    """Return the unit of a speed."""
    return "environment steps/s" if stats.measurements.env_steps else f"{stats.measurements.unit}s/s"


def step_times(stats: Stats) -> str:
    """Return the times of a step, without profiling."""
    assert stats.speed is not None
    median, p95 = format_seconds(stats.speed.median_seconds), format_seconds(stats.speed.p95_seconds)
    return f"{article(stats.measurements.unit)} takes {median} (median), {p95} (p95)"


def article(noun: str) -> str:
    """Return a noun with its indefinite article."""
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def subject(stats: Stats) -> str:
    """Return what is profiled, with the number of environments."""
    name, count = stats.measurements.name, stats.measurements.settings.num_envs
    return f"{name}, {count:,} environment{'s' * (count != 1)}" if count else name


def _blame(stats: Stats) -> str:
    growing = [item for item in stats.growths if item.verdict == "growing"]
    if growing:
        rates = (
            f"{item.quantity} {format_bytes(item.slope, sign=True)} {per(stats)} "
            f"({format_bytes(item.change, sign=True)} in {_part(stats, [item])})"
            for item in growing
        )
        return f": {', '.join(rates)}"
    if stats.verdict == "undecided":
        return f": {_doubt(stats)}"
    margins = {item.quantity: format_bytes(item.margin) for item in stats.growths}
    process = margins.get("process")  # where small objects of Python are, which are no blocks of the C library
    native = margins.get("native", process if "traced" in margins else None)
    found = {"": margins.get("traced", process), "native code": native, "worker processes": margins.get("workers")}
    if stats.measurements.tracing is not None:
        found[f"after {_place(stats, stats.measurements.tracing[1])}, without tracing"] = margins.get("process")
    (_, most), *others = ((name, margin) for name, margin in found.items() if margin is not None)
    more = f" ({', '.join(f'{name}: {margin}' for name, margin in others)})" if others else ""
    taken = [(item, item.before) for item in stats.growths if item.before]
    before = f"; before that {_risen(stats, taken, max(item.first for item, _ in taken))}" if taken else ""
    until_end = [item for item in stats.growths if stats.measurements.tracing is None or item.quantity != "traced"]
    part = _part(stats, until_end or stats.growths)
    return f": more than {most} {per(stats)} would have shown{more}, in {part}{before}"


def _part(stats: Stats, growths: Sequence[Growth]) -> str:
    """Return the shortest part that was judged of some quantities, and the whole."""
    part, whole = min(item.last - item.first for item in growths), stats.measurements.settings.steps
    if stats.measurements.unit == TIME_UNIT:
        return f"{part / 1000:.1f} of {whole / 1000:.1f} s"
    return f"{part:,.0f} of {whole:,} {stats.measurements.unit}s"


def _place(stats: Stats, step: float) -> str:
    unit = stats.measurements.unit
    return f"{step / 1000:,.0f} s" if unit == TIME_UNIT else f"{step:,.0f} {unit}s"


def _doubt(stats: Stats) -> str:
    found = stats.measurements
    first, last = judged_steps(found)
    longer = "run it longer" if found.unit == TIME_UNIT else "take more steps"
    least = least_span(found)
    if last - first < least:
        loading = f", imports and compilation took {found.loading:.0%} of the run" if found.loading > 0.1 else ""
        there = max(0, last - first) // 100 / 10
        return f"{there:.1f} s to judge, at least {least / 1000:.1f} s required{loading}; {longer}"
    rises = [item for item in stats.growths if item.verdict == "undecided" and item.rises]
    if not rises:
        snapshots = min((item.snapshots for item in stats.growths), default=0)
        return f"{snapshots} snapshots after the warm-up, at least {MIN_SNAPSHOTS} required; {longer}"
    until = decided_at(stats.growths, found.settings.steps)
    how = f"run it {_place(stats, until)} or longer" if found.unit == TIME_UNIT else f"take {_place(stats, until)}"
    listed = _risen(stats, [(item, item.change) for item in rises], max(item.since for item in rises))
    return f"{listed}: taken once or ever more slowly, or a leak; {how}: a leak rises again"


def _risen(stats: Stats, rises: Sequence[tuple[Growth, int]], last: float) -> str:
    """Return what rose by how much until when; not what is memory of larger objects of Python."""
    traced = max((change for item, change in rises if item.quantity == "traced"), default=0)
    parts = [
        f"{item.quantity} {format_bytes(change, sign=True)}"
        for item, change in rises
        if item.quantity == "traced" or item.quantity not in ("native", "process") or change > 2 * traced
    ]
    at = _place(stats, last) if stats.measurements.unit == TIME_UNIT else f"{stats.measurements.unit} {last:,.0f}"
    return f"{', '.join(parts)} until {at}"


def per(stats: Stats) -> str:
    """Return the unit of time of rates."""
    unit = stats.measurements.unit
    return "per second" if unit == TIME_UNIT else f"per 1,000 {unit}s"


def _culprits(stats: Stats) -> Iterator[str]:
    """Yield the lines that grew most, and what keeps their memory.

    Where traced memory is flat, those of Python took what holds the growing memory, or are noise.
    Of processes that grow alone they hold nothing.
    """
    rising = {item.quantity for item in stats.growths if item.rises}
    untraced, least = (NATIVE, WORKER), -math.inf if "traced" in rising else RISES if rising - {"workers"} else math.inf
    lines = [line for line in stats.grown_lines if line.behind in untraced or line.grown_blocks >= least]
    for line in culprits(lines):
        behind = f", in {location(line.behind)}" if line.behind else ""
        growth = f"{format_bytes(line.rate, sign=True)} {per(stats)} ({format_bytes(line.grown_bytes, sign=True)})"
        yield f"{location(line.place)} {growth}{behind}"
        if line.keeper:
            yield f"  kept by {line.keeper}"
    kinds, keepers = {line.behind for line in lines}, stats.measurements.keepers
    if NATIVE not in kinds:
        graphs = (keeper for keeper in keepers if keeper.line == NATIVE)
        yield from (f"memory of {NATIVE}: kept by {keeper.name} ({keeper.kind})" for keeper in graphs)
    processes = [f"{keeper.name} {keeper.kind}" for keeper in keepers if keeper.line == WORKER]
    yield from processes
    seen = {"owners", "files", *["traced"] * bool(kinds.difference(untraced)), *["process"] * bool(kinds)}
    seen |= {"native"} if NATIVE in kinds else set()
    seen |= {"workers"} if WORKER in kinds or processes else set()
    unseen = growing_alone(stats.growths).keys() - seen
    if unseen:
        yield f"{', '.join(sorted(unseen))}: no line was seen taking it"


def peak_section(stats: Stats) -> Section:
    """Return the peak by part; no rows if it is not known."""
    parts = list(peak_parts(stats))
    whole = max(1, stats.peak_bytes)
    rows = [(name, format_bytes(size), f"{size / whole:.0%}" if size > whole / 200 else "<1%") for name, size in parts]
    workers = max((item.worker_bytes for item in stats.measurements.snapshots), default=0)
    notes = [f"Worker processes take {format_bytes(workers)} besides, without file pages."] if workers else []
    title = f"Peak by part: {format_bytes(stats.peak_bytes)} resident"
    return Section(title, rows, ("part", "resident", "share"), notes, [size / whole for _, size in parts])


def peak_parts(stats: Stats) -> Iterator[tuple[str, int]]:
    """Yield the name and the bytes of each part of the peak; their sum is the peak."""
    measured, left = stats.measurements, stats.peak_bytes
    for stage in measured.stages:
        size = min(left, stage.rss_bytes - (stats.peak_bytes - left))
        if stage.name not in _LATER and size > 0:
            yield "before the program" if stage.name == "before" else stage.name, size
            left -= size
    for name, size in _owned(stats):
        if min(size, left):
            yield name, min(size, left)
        left -= min(size, left)
    if left:
        yield "the rest" if measured.owners else "the program", left


def _owned(stats: Stats) -> Iterator[tuple[str, int]]:
    owners, snapshots = stats.measurements.owners, stats.measurements.snapshots
    if not owners:
        yield "environments", max((item.committed_bytes for item in snapshots), default=0)
    elif owners[0].name == _TRAINING:
        environments = sum(node.committed_bytes for node in _topmost(owners))
        yield "environments", environments
        yield "trainer", owners[0].committed_bytes - environments
    else:
        yield "environments", owners[0].committed_bytes


def _topmost(owners: Sequence[OwnedNode]) -> Iterator[OwnedNode]:
    inside = None
    for node in owners:
        if inside is not None and node.depth > inside:
            continue
        inside = node.depth if node.name in _ENVIRONMENTS else None
        if inside is not None:
            yield node


def run(stats: Stats) -> Section:
    """Return what a figure depends on."""
    found = stats.measurements
    machine = found.machine
    steps = f"{found.settings.steps:,} {found.unit}s per pass, {len(found.snapshots)} snapshots"
    rows = (
        ("profiled", subject(stats)),
        *found.facts,
        ("steps", steps),
        ("machine", f"{machine.processor}, {machine.cores} cores, {machine.system}"),
        ("versions", ", ".join((machine.python, *(f"{name} {version}" for name, version in machine.packages)))),
    )
    return Section("Run", rows)


def _sizes(stats: Stats) -> Section:
    found = stats.per_environment
    rows = [] if found is None else list(_parts(found))
    notes = [] if found is None else [f"Besides that once: {format_bytes(found.once)}."]
    return Section("Memory of each further environment, fitted to fresh processes", rows, ("", "bytes"), notes)


def _parts(found: PerEnvironment) -> Iterator[Row]:
    share = found.unexplained / found.measured if found.measured else 0.0
    apart = (found.reported - found.measured) / found.measured if found.measured else 0.0
    yield f"measured (+- {format_bytes(found.error)})", format_bytes(found.measured)
    yield "  arrays of owners, committed", format_bytes(found.committed)
    yield "  other Python and NumPy memory", format_bytes(found.python)
    if found.workers:
        yield "  worker processes", format_bytes(found.workers)
    yield f"  unexplained ({share:.1%})", format_bytes(found.unexplained)
    yield f"reported by the owners ({apart:+.1%})", format_bytes(found.reported)


def owner_rows(owners: Sequence[OwnedNode], num_envs: int) -> tuple[list[tuple[str, ...]], tuple[str, ...]]:
    """Return a row for each node of a tree, and the titles of the columns."""
    rows: list[tuple[str, ...]] = []
    for node in owners:
        name = "  " * node.depth + node.name + (" (mapped file)" if node.mapped else "")
        sizes = (node.shared_bytes, node.environment_bytes, node.environment_bytes / max(1, num_envs))
        rows.append((name, *map(or_dash, sizes)))
    return rows, ("owner", "shared", f"all {num_envs:,}", "per environment")


def folded(owners: Sequence[OwnedNode]) -> Iterator[OwnedNode]:
    """Yield the rows of a tree with small leaves of one parent folded into a row.

    A row is small below one hundredth of both the shared and the other bytes of the root.
    """

    def depth_if_small(pair: tuple[OwnedNode, OwnedNode | None]) -> int:
        node, following = pair
        is_leaf = following is None or following.depth <= node.depth
        is_small = (
            node.shared_bytes <= _SMALL_SHARE * owners[0].shared_bytes
            and node.environment_bytes <= _SMALL_SHARE * owners[0].environment_bytes
        )
        return node.depth if is_leaf and is_small else 0

    for depth, pairs in groupby(zip(owners, (*owners[1:], None)), depth_if_small):
        nodes = [node for node, _ in pairs]
        if not depth or len(nodes) == 1:
            yield from nodes
        else:
            sizes = ((node.shared_bytes, node.environment_bytes, node.committed_bytes) for node in nodes)
            shared, own, committed = map(sum, zip(*sizes))
            yield OwnedNode(depth, f"{len(nodes)} small parts", shared, own, committed, mapped=False)


def or_dash(count: float) -> str:
    """Format a number of bytes, 0 as a dash."""
    return format_bytes(count) if count else "-"


def _owners(stats: Stats) -> Section:
    owners = list(folded(stats.measurements.owners))
    rows, columns = owner_rows(owners, stats.measurements.settings.num_envs)
    committed = ["-" if node.mapped else or_dash(node.committed_bytes) for node in owners]
    sizes = [node.shared_bytes + node.environment_bytes for node in owners]
    title = "Memory by owner, as reported (a row includes the rows indented below it; small rows are folded)"
    cells = [(*row, cell) for row, cell in zip(rows, committed)]
    return Section(title, cells, (*columns, "committed"), shares=[size / max(1, sizes[0]) for size in sizes])


def _stages(stats: Stats) -> Section:
    rows, before = [], 0
    for stage in stats.measurements.stages:
        change = format_bytes(stage.pss_bytes - before, sign=True)
        rows.append((f"{stage.name}: {stage.how}", format_bytes(stage.pss_bytes), change, or_dash(stage.peak_bytes)))
        before = stage.pss_bytes
    columns = ("stage", "PSS", "change", "peak")
    return Section("Stages of the process (peak: largest RSS during the stage)", rows, columns)


def _growths(stats: Stats) -> Section:
    first, last = judged_steps(stats.measurements)
    notes = [
        f"Judged are the snapshots from {first:,.0f} to {last:,.0f}, in {PARTS} parts; before them are "
        f"{WARM_UP_SHARE:.0%} of warm-up.",
        f"Change: bytes kept in the last part beyond those kept in the first. Error: {FALLS} times the largest fall.",
        "Flat: the change is at most the floor and one fall. Growing: it exceeds floor and error, and goes on.",
    ]
    if stats.measurements.tracing is not None:
        end = _place(stats, stats.measurements.tracing[1])
        notes.append(f"Nothing grew while memory was traced, until {end}: tracing is slow.")
    return Section(
        f"Growth: {stats.verdict}",
        [_growth_row(item) for item in stats.growths],
        (f"bytes {per(stats)}", "snapshots", "slope", "error", "floor", "change", "verdict"),
        notes,
        charts=[_growth_chart(stats, item) for item in stats.growths if item.verdict == "flat" or item.rises],
    )


def _growth_row(item: Growth) -> Row:
    if item.verdict == "undecided" and not item.rises:
        return (item.quantity, f"{item.snapshots}", *("-",) * 4, item.verdict)
    slope, change = format_bytes(item.slope, sign=True), format_bytes(item.change, sign=True)
    error, floor = format_bytes(item.error), format_bytes(item.floor)
    return item.quantity, f"{item.snapshots}", slope, error, floor, change, item.verdict


def _growth_chart(stats: Stats, item: Growth) -> Chart:
    """Return the change since the first fitted snapshot, the slope, and the band in which a slope means nothing."""
    points = series(stats.measurements)[item.quantity]
    start = next(y for x, y in points if x >= item.first)
    span = (item.last - item.first) / 1000
    band = [(item.first, 0.0), (item.last, item.margin * span), (item.last, -item.margin * span)]
    fit = [(item.first, 0.0), (item.last, item.slope * span)]
    change = [(x, y - start) for x, y in points]
    lines = [Line("margin", "band", band), Line("slope", "fit", fit), Line("change", "first", change)]
    return chart(f"{item.quantity}: {item.verdict}", f"{stats.measurements.unit}s", lines, signed=True)


def _snapshots(stats: Stats) -> Section:
    found = stats.measurements
    first, last = judged_steps(found)
    rows = [
        (
            f"{item.step:,.0f}" + ("" if first <= item.step <= last else " *"),
            *map(format_bytes, (item.rss_bytes, item.pss_bytes, item.data_bytes)),
            format_bytes(item.native_bytes) if item.native_bytes >= 0 else "-",
            *map(format_bytes, (item.owned_bytes, item.committed_bytes)),
        )
        for item in found.snapshots
    ]
    title = f"Snapshots (* not fitted; RSS, PSS and data from {found.machine.resident_source})"
    return Section(title, rows, (found.unit, "RSS", "PSS", "data", "native", "reported", "committed"))


def _phases(stats: Stats) -> Section:
    phases = stats.measurements.phases
    shares = [item.seconds / phases[0].seconds for item in phases]
    rows = [(item.name, format_seconds(item.seconds), f"{share:.1%}") for item, share in zip(phases, shares)]
    medians = "medians; what is measured as a difference may be slightly negative"
    title = f"Time by phase of {article(stats.measurements.unit)} ({medians})"
    return Section(title, rows, ("phase", "time", "share"), shares=shares)


def _churn(stats: Stats) -> Section:
    if stats.churn is None:
        return Section("", ())
    unit, steps = stats.measurements.unit, stats.churn.steps
    title = f"Allocations of {article(unit)}, freed again or not (memray, means of {steps:,} {unit}s)"
    lines = stats.churn.lines
    cells = [(f"{line.blocks / steps:,.2f}", format_bytes(line.allocated_bytes / steps)) for line in lines]
    return Section(title, _line_rows(lines, cells), ("line", "blocks", "bytes"))


def _largest(stats: Stats) -> Section:
    traced = stats.measurements.traced
    if not traced:
        return Section("", ())
    when = "at the end" if stats.measurements.tracing is None else "when tracing ended"
    title = f"Largest lines {when} (tracemalloc: {format_bytes(traced[-1].traced_bytes)} in all)"
    cells = [(format_bytes(line.live_bytes), f"{line.blocks:,}") for line in stats.largest_lines]
    return Section(title, _line_rows(stats.largest_lines, cells), ("line", "live", "blocks"))


def _grown(stats: Stats) -> Section:
    rows = [
        row
        for line in stats.grown_lines
        for row in _grown_rows(line, format_bytes(line.rate, sign=True), format_bytes(line.error))
    ]
    title = f"Lines that grew (tracemalloc; bytes {per(stats)}; the user's own line first)"
    return Section(title, rows, ("line", "rate", "error", "growth", "blocks"))


def _grown_rows(line: GrownLine, rate: str, error: str) -> Iterator[Row]:
    growth = format_bytes(line.grown_bytes, sign=True)
    yield location(line.place), rate, error if line.error else "-", growth, f"{line.grown_blocks:+,}"
    if line.keeper:
        yield (f"  kept by {line.keeper}",)
    if line.behind:
        yield (f"  in {location(line.behind)}",)
    yield from _call_rows(line.callers)


def _line_rows(lines: Sequence[LiveLine | AllocatingLine], cells: Sequence[tuple[str, str]]) -> list[Row]:
    rows: list[Row] = []
    for line, rest in zip(lines, cells):
        rows += (location(f"{line.file}:{line.line}"), *rest), *_call_rows(line.callers)
    return rows or [("none", "-", "-")]


def _call_rows(callers: Sequence[str]) -> list[Row]:
    return [(f"  < {location(place)}",) for place in callers[:_CALLERS]]


def _functions(title: str, stats: Stats, functions: Sequence[FunctionTime], field: str) -> Section:
    steps, whole = stats.measurements.settings.steps, stats.measurements.profiled_seconds
    rows = [
        (
            f"{item.name} ({location(f'{item.file}:{item.line}')})" if item.line else item.name,
            f"{item.calls:,}",
            f"{item.own_seconds:.4f}",
            f"{item.own_seconds / steps * 1e6:,.2f}",
            f"{item.cumulative_seconds:.4f}",
            f"{item.cumulative_seconds / steps * 1e6:,.2f}",
        )
        for item in functions
    ]
    columns = ("function", "calls", "own s", "own us/step", "cumulative s", "cumulative us/step")
    return Section(title, rows, columns, shares=[getattr(item, field) / whole for item in functions])


def write_reports(stats: Stats, folder: Path, as_json: bool = False, as_html: bool = False) -> tuple[Path, ...]:
    """Write the reports to a folder, which is created if it is missing, each atomically; return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    recorded = stats.measurements.allocations
    files = {
        MEMORY_REPORT: memory_text(stats).encode(),
        TIME_REPORT: time_text(stats).encode(),
        TIME_PROFILE: stats.measurements.profile,
        FLAME_GRAPH: recorded.flame_graph if recorded else b"",
        JSON_REPORT: json_text(stats).encode() if as_json else b"",
        HTML_REPORT: html_text(stats).encode() if as_html else b"",
    }
    written = {folder / name: content for name, content in files.items() if content}
    for path, content in written.items():
        write_file(path, content)
    return tuple(written)


def write_report(stats: Stats, folder: Path, as_json: bool = False, as_html: bool = False) -> str:
    """Write the reports to a folder; return the answer and their paths."""
    paths = write_reports(stats, folder, as_json, as_html)
    return f"\n{text_of([summary(stats)])}\nwrote {', '.join(map(str, paths))}\n"


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


def html_text(stats: Stats) -> str:
    """Return the report as one page of HTML that needs no network; MissingExtraError if Jinja2 is not installed."""
    jinja2 = optional_module("jinja2", "profile")
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    answer, *sections = memory_sections(stats)
    first = [section.title for section in sections].index("Run")  # those before it are on the first screen
    worst = max((item for item in stats.growths if item.rises), key=lambda item: item.change, default=None)
    page: str = environment.from_string(_TEMPLATE.read_text()).render(
        title=answer.title,
        verdict=stats.verdict,
        cards=[(name, texts) for name, texts in answers(stats).items() if not (name == "peak" and first)],
        worst=worst and _growth_chart(stats, worst),
        shown=sections[:first],
        folded=[*sections[first:], *time_sections(stats)],
        width=WIDTH,
        height=HEIGHT,
    )
    return page


@dataclass(frozen=True)
class Change:
    """A quantity of two profiles, in bytes."""

    row: str
    before: float | None
    """None: the first profile lacks the row."""
    after: float | None

    @property
    def increase(self) -> float:
        """Bytes by which the second profile is larger."""
        return (self.after or 0.0) - (self.before or 0.0)

    def exceeds(self, percent: float, least_bytes: float, either: bool = False) -> bool:
        """Return whether it grew, or changed in ``either`` way, by more than a share of the first and some bytes."""
        change = abs(self.increase) if either else self.increase
        return change > max(least_bytes, percent / 100 * (self.before or 0.0))


def load_profile(path: Path) -> dict[str, Any]:
    """Read a profile that was written with ``--json``."""
    how = "write one with nclone-env profile ... --json"
    try:
        with open_regular(path, _MOST_BYTES) as file:
            content = json.loads(file.read())
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror or error}; {how}") from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: expected a memory profile as JSON, got {shortened(str(error))}; {how}") from error
    found = (content.get("format"), content.get("version")) if isinstance(content, dict) else (content, None)
    if found[0] != JSON_FORMAT:
        raise ConfigError(f"{path}: expected the format {JSON_FORMAT!r}, got {shortened(found[0])}; {how}")
    if found[1] != JSON_VERSION:
        raise ConfigError(
            f"{path}: expected version {JSON_VERSION} of the format, got {shortened(found[1])}, whose fields have "
            f"other meanings; {how}"
        )
    profile: dict[str, Any] = content
    try:
        for name, size in rows(profile):
            check_value(name, _SIZE, size)
        list(different_settings(profile, {**profile, "facts": [], "name": "", "unit": ""}))
    except (ArithmeticError, LookupError, TypeError, ValueError, AttributeError) as error:
        got = plain(shortened(str(error)))
        raise ConfigError(f"{path}: expected all parts of a memory profile, got others ({got}); {how}") from error
    return profile


def comparison(before: Path, after: Path, percent: float, least_bytes: float) -> tuple[str, int]:
    """Return the differences of two profiles as text, and the number of rows that increased beyond a tolerance."""
    first, second = load_profile(before), load_profile(after)
    changes = compare(first, second)
    exceeded = sum(change.exceeds(percent, least_bytes) for change in changes)
    lines = [f"different settings: {line}" for line in different_settings(first, second)]
    lines.append(comparison_text(changes, percent, least_bytes))
    if exceeded:
        lines.append(f"{exceeded} rows increased by more than {percent:g} % and {least_bytes:g} B")
    return "\n".join(lines), exceeded


def compare(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[Change, ...]:
    """Return all rows of two profiles: bytes per environment, shared, of each owner, peaks and growth, by line."""
    first, second = dict(rows(before)), dict(rows(after))
    return tuple(Change(name, first.get(name), second.get(name)) for name in dict.fromkeys((*first, *second)))


def rows(profile: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Yield (name, bytes) of everything in a profile that is compared."""
    unit = _shown(profile["unit"])
    fitted = profile["per_environment"]
    if fitted is not None:
        yield "measured for each further environment", fitted["measured"]
        yield "reported for each further environment", fitted["reported"]
    if profile["step_peak"] is not None:
        yield f"allocated and freed by a {unit}, at most", profile["step_peak"]["largest"]
    for line in profile["grown_lines"] if profile["verdict"] == "growing" else ():  # else it is noise
        behind = f" in {line['behind']}" if line["behind"] in (NATIVE, WORKER) else ""
        yield f"growth per 1,000 {unit}s, {_shown(line['file'])}:{_shown(line['line'])}{behind}", line["rate"]
    for growth in profile["growths"]:
        yield f"growth per 1,000 {unit}s, {_shown(growth['quantity'])}", max(0.0, growth["slope"] - growth["floor"])
    num_envs = profile["settings"]["num_envs"]
    check_value("num_envs", _COUNT, num_envs)
    path: list[str] = []
    for node in profile["owners"]:
        check_value("depth", _DEPTH, node["depth"])
        path = [*path[: node["depth"]], _shown(node["name"])]
        place = " / ".join(path)
        if node["environment_bytes"]:
            yield f"{place}, per environment", node["environment_bytes"] / max(1, num_envs)
        if node["shared_bytes"]:
            yield f"{place}, shared", node["shared_bytes"]


def different_settings(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each fact in which two profiles differ: then a change may be no fault of the code."""
    for name in ("name", "unit"):
        if before[name] != after[name]:
            yield _difference(name, before[name], after[name])
    first, second = dict(before["facts"]), dict(after["facts"])
    first["environments"], second["environments"] = (p["settings"]["num_envs"] for p in (before, after))
    for name in dict.fromkeys((*first, *second)):
        if first.get(name) != second.get(name):
            yield _difference(name, first.get(name, "-"), second.get(name, "-"))


def _difference(name: object, before: object, after: object) -> str:
    return f"{_shown(name)}: {_shown(before)} -> {_shown(after)}"


def _shown(value: object) -> str:
    """Return a value of a profile as text that a terminal can show."""
    return plain(str(value)[:_MOST_SHOWN])


def comparison_text(changes: Sequence[Change], percent: float, least_bytes: float) -> str:
    """Return a table of the rows that changed by more than a share and a number of bytes."""
    shown = [change for change in changes if change.exceeds(percent, least_bytes, either=True)]
    if not shown:
        return f"no row changed by more than {percent:g} % and {format_bytes(least_bytes)} ({len(changes)} rows)"
    cells = [
        (
            change.row,
            *("-" if size is None else format_bytes(size) for size in (change.before, change.after)),
            format_bytes(change.increase, sign=True),
            f"{change.increase / change.before:+.1%}" if change.before else "new",
        )
        for change in sorted(shown, key=lambda change: -abs(change.increase))
    ]
    return "\n".join(table(("row", "before", "after", "change", ""), cells))
