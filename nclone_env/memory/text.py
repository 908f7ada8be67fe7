"""Stats as text: the answer first, then what it follows from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nclone_env.memory.formatting import format_bytes, format_seconds, location, table
from nclone_env.memory.growth import MIN_SNAPSHOTS, STANDARD_ERRORS, WARM_UP_SHARE, Growth
from nclone_env.memory.recording import FunctionTime, OwnedNode
from nclone_env.memory.stats import GrownLine, PerEnvironment, Stats

_SMALL_SHARE = 0.01  # of the bytes that the owners report; smaller rows are folded
_CALLERS = 4  # of a line, in the report

QUANTITIES = {
    "traced": "live memory of Python and NumPy, traced by tracemalloc",
    "native": "blocks in use, counted by the C library's allocator",
    "process": "PSS without file pages and without the arrays of owners",
    "workers": "PSS without file pages of child processes",
    "owners": "bytes that the owners report",
}


def memory_text(stats: Stats) -> str:
    """Return the memory report, the answer first."""
    sections = (
        _result(stats),
        _head(stats),
        _sizes(stats),
        _owners(stats),
        _stages(stats),
        _growth(stats),
        _snapshots(stats),
        _phases(stats),
        _churn(stats),
        _largest(stats),
        _grown(stats),
        _glossary(),
    )
    return "\n\n".join("\n".join(section) for section in sections if section) + "\n"


def summary_text(stats: Stats) -> str:
    """Return the answer in a few lines."""
    return "\n".join(_result(stats))


def time_text(stats: Stats) -> str:
    """Return the report of time by function."""
    speed = stats.speed
    assert speed is not None
    what = "environment steps/s" if stats.env_steps else f"{stats.unit}s/s"
    rows = [("without profiling", f"{speed.plain:,.0f}"), ("under cProfile", f"{speed.profiled:,.0f}")]
    head = (
        f"Time profile: {stats.name}",
        *table(("", what), rows),
        f"  {_a(stats.unit)} takes {format_seconds(speed.median_seconds)} (median), "
        f"{format_seconds(speed.p95_seconds)} (95th percentile), without profiling",
        f"  cProfile slows the steps down by a factor of {speed.plain / speed.profiled:.2f}: "
        "read the times below as proportions.",
    )
    sections = (
        head,
        ("Functions by cumulative time (including callees)", *_functions(stats, stats.by_cumulative)),
        ("Functions by own time", *_functions(stats, stats.by_own)),
        _head(stats),
    )
    return "\n\n".join("\n".join(section) for section in sections) + "\n"


def _result(stats: Stats) -> Iterator[str]:
    found = stats.per_environment
    yield f"Memory profile: {_subject(stats)}"
    yield f"  growth   {stats.verdict.upper()}{_blame(stats)}"
    if found is not None:
        yield (
            f"  memory   {format_bytes(found.measured)} measured for each further environment, "
            f"{format_bytes(found.reported)} reported by the owners"
        )
    elif stats.owners:
        each = stats.owners[0].environment_bytes / max(1, stats.settings.num_envs)
        yield f"  memory   {format_bytes(each)} per environment, as reported by the owners"
    if stats.owners and stats.owners[0].shared_bytes:
        yield f"           {format_bytes(stats.owners[0].shared_bytes)} shared by all environments"
    if stats.peak_bytes:
        yield f"  peak     {format_bytes(stats.peak_bytes)} resident"
    if stats.step_peak is not None:
        yield (
            f"  churn    at most {format_bytes(stats.step_peak.median)} at a time in {_a(stats.unit)} (median), "
            f"{format_bytes(stats.step_peak.largest)} in the worst one, freed at its end"
        )
    if stats.churn is not None:
        yield f"           {stats.churn.blocks:,.0f} allocations, {format_bytes(stats.churn.allocated_bytes)} in all"
    if stats.speed is not None:
        what = "environment steps/s" if stats.env_steps else f"{stats.unit}s/s"
        yield (
            f"  speed    {stats.speed.plain:,.0f} {what}; {_a(stats.unit)} takes "
            f"{format_seconds(stats.speed.median_seconds)} (median), {format_seconds(stats.speed.p95_seconds)} (p95)"
        )


def _a(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def _subject(stats: Stats) -> str:
    count = stats.settings.num_envs
    return f"{stats.name}, {count:,} environment{'s' * (count != 1)}" if count else stats.name


def _blame(stats: Stats) -> str:
    """Return which quantities grow by how much, or why there is no verdict."""
    growing = [item for item in stats.growths if item.verdict == "growing"]
    if growing:
        rates = (f"{item.quantity} {format_bytes(item.slope, sign=True)}" for item in growing)
        return f": {', '.join(rates)} per 1,000 {stats.unit}s"
    if stats.verdict == "undecided":
        snapshots = min((item.snapshots for item in stats.growths), default=0)
        return f": {snapshots} snapshots after the warm-up, at least {MIN_SNAPSHOTS} required; take more steps"
    return ""


def _head(stats: Stats) -> Iterator[str]:
    machine, settings = stats.machine, stats.settings
    facts = (
        ("profiled", _subject(stats)),
        *stats.facts,
        ("steps", f"{settings.steps:,} {stats.unit}s per pass, {len(stats.snapshots)} snapshots"),
        ("machine", f"{machine.processor}, {machine.cores} cores, {machine.system}"),
        ("versions", ", ".join((machine.python, *(f"{name} {version}" for name, version in machine.packages)))),
    )
    width = max(len(name) for name, _ in facts)
    yield "Run"
    yield from (f"  {name.ljust(width)}  {text}" for name, text in facts)


def _glossary() -> tuple[str, ...]:
    return (
        "Glossary (1 KB is 1,024 bytes)",
        "  RSS        resident set size of the process",
        "  PSS        proportional set size: pages shared by several processes count in proportion",
        "  data       PSS without file-backed pages (program code), which vary as other processes start or end",
        "  committed  in pages that were written: the system provides a page when it is first written",
        *(f"  {name.ljust(9)}  {text}" for name, text in QUANTITIES.items()),
    )


def _sizes(stats: Stats) -> Iterator[str]:
    found = stats.per_environment
    if found is None:
        return
    yield "Memory of each further environment, fitted to fresh processes"
    yield from table(("", "bytes", ""), [(name, size, "") for name, size in _parts(found)])
    plain = [point for point in stats.sizes if point.python_bytes is None]
    rows = [
        (f"{point.num_envs:,}", *map(format_bytes, (point.data_bytes, point.committed_bytes, point.owned_bytes)))
        for point in plain
    ]
    yield ""
    yield from table(("environments", "data", "committed", "reported"), rows)
    yield f"  Besides that once: {format_bytes(found.once)}."


def _parts(found: PerEnvironment) -> Iterator[tuple[str, str]]:
    share = found.unexplained / found.measured if found.measured else 0.0
    apart = (found.reported - found.measured) / found.measured if found.measured else 0.0
    yield f"measured (+- {format_bytes(found.error)})", format_bytes(found.measured)
    yield "  arrays of owners, committed", format_bytes(found.committed)
    yield "  other Python and NumPy memory", format_bytes(found.python)
    if found.workers:
        yield "  worker processes", format_bytes(found.workers)
    yield f"  unexplained ({share:.1%})", format_bytes(found.unexplained)
    yield f"reported by the owners ({apart:+.1%})", format_bytes(found.reported)


def _owners(stats: Stats) -> Iterator[str]:
    if not stats.owners:
        return
    rows = [
        (
            "  " * node.depth + node.name + (" (mapped file)" if node.mapped else ""),
            _or_dash(node.shared_bytes),
            _or_dash(node.environment_bytes),
            _or_dash(node.environment_bytes / stats.settings.num_envs),
            "-" if node.mapped else _or_dash(node.committed_bytes),
        )
        for node in folded(stats.owners)
    ]
    titles = ("owner", "shared", f"all {stats.settings.num_envs:,}", "per environment", "committed")
    yield "Memory by owner, as reported (a row includes the rows indented below it; small rows are folded)"
    yield from table(titles, rows)


def folded(owners: Sequence[OwnedNode]) -> Iterator[OwnedNode]:
    """Yield the rows of a tree with small leaves of one parent folded into a row.

    A row is small below one hundredth of both the shared and the other bytes of the root.
    """
    root = owners[0]
    limits = _SMALL_SHARE * root.shared_bytes, _SMALL_SHARE * root.environment_bytes
    pending: list[OwnedNode] = []
    for node, following in zip(owners, (*owners[1:], None)):
        leaf = following is None or following.depth <= node.depth
        small = leaf and node.depth > 0 and node.shared_bytes <= limits[0] and node.environment_bytes <= limits[1]
        if pending and (not small or pending[0].depth != node.depth):
            yield _fold(pending)
            pending = []
        if small:
            pending.append(node)
        else:
            yield node
    if pending:
        yield _fold(pending)


def _fold(nodes: Sequence[OwnedNode]) -> OwnedNode:
    if len(nodes) == 1:
        return nodes[0]
    return OwnedNode(
        depth=nodes[0].depth,
        name=f"{len(nodes)} small parts",
        shared_bytes=sum(node.shared_bytes for node in nodes),
        environment_bytes=sum(node.environment_bytes for node in nodes),
        committed_bytes=sum(node.committed_bytes for node in nodes),
        mapped=False,
    )


def _or_dash(count: float) -> str:
    return format_bytes(count) if count else "-"


def _stages(stats: Stats) -> Iterator[str]:
    if not stats.stages:
        return
    rows, before = [], 0
    for stage in stats.stages:
        change = format_bytes(stage.pss_bytes - before, sign=True)
        peak = format_bytes(stage.peak_bytes) if stage.peak_bytes else "-"
        rows.append((f"{stage.name}: {stage.how}", format_bytes(stage.pss_bytes), change, peak))
        before = stage.pss_bytes
    yield "Stages of the process (peak: largest RSS during the stage)"
    yield from table(("stage", "PSS", "change", "peak"), rows)


def _growth(stats: Stats) -> Iterator[str]:
    yield f"Growth: {stats.verdict}"
    rows = [_growth_row(item) for item in stats.growths]
    unit = f"bytes per 1,000 {stats.unit}s"
    yield from table((unit, "snapshots", "slope", "error", "floor", "change", "verdict"), rows)
    yield ""
    yield f"  Fitted are the snapshots from {stats.warm_up_steps:,.0f} on; the first {WARM_UP_SHARE:.0%} are warm-up."
    yield "  Slope: a line is fitted to each half of them; the smaller slope counts, so that a single jump does not."
    yield f"  Error: {STANDARD_ERRORS:g} standard errors of that slope. Floor: variation without a leak."
    yield "  Growing: the slope exceeds the larger of error and floor. Change: first to last snapshot, jumps included."


def _growth_row(item: Growth) -> tuple[str, ...]:
    if item.verdict == "undecided":
        return (item.quantity, f"{item.snapshots}", *("-",) * 4, item.verdict)
    slope, change = format_bytes(item.slope, sign=True), format_bytes(item.change, sign=True)
    return (
        item.quantity,
        f"{item.snapshots}",
        slope,
        format_bytes(item.error),
        format_bytes(item.floor),
        change,
        item.verdict,
    )


def _snapshots(stats: Stats) -> Iterator[str]:
    rows = [
        (
            f"{item.step:,.0f}" + (" *" if item.step < stats.warm_up_steps else ""),
            *map(format_bytes, (item.rss_bytes, item.pss_bytes, item.data_bytes)),
            format_bytes(item.native_bytes) if item.native_bytes >= 0 else "-",
            format_bytes(item.owned_bytes),
            format_bytes(item.committed_bytes),
        )
        for item in stats.snapshots
    ]
    yield f"Snapshots (* warm-up, not fitted; RSS, PSS and data from {stats.machine.resident_source})"
    yield from table((stats.unit, "RSS", "PSS", "data", "native", "reported", "committed"), rows)


def _phases(stats: Stats) -> Iterator[str]:
    if not stats.phases:
        return
    whole = stats.phases[0].seconds
    rows = [(item.name, format_seconds(item.seconds), f"{item.seconds / whole:.1%}") for item in stats.phases]
    yield f"Time by phase of {_a(stats.unit)} (medians; what is measured as a difference may be slightly negative)"
    yield from table(("phase", "time", "share"), rows)


def _churn(stats: Stats) -> Iterator[str]:
    if stats.churn is None:
        return
    steps = stats.churn.steps
    rows = []
    for line in stats.churn.lines:
        place = location(f"{line.file}:{line.line}")
        rows.append((place, f"{line.blocks / steps:,.2f}", format_bytes(line.allocated_bytes / steps)))
        rows += _called_by(line.callers)
    yield f"Allocations of {_a(stats.unit)}, freed again or not (memray, means of {steps:,} {stats.unit}s)"
    yield from table(("line", "blocks", "bytes"), rows or [("none", "-", "-")])


def _largest(stats: Stats) -> Iterator[str]:
    if not stats.traced:
        return
    yield f"Largest lines at the end (tracemalloc: {format_bytes(stats.traced[-1].traced_bytes)} in all)"
    rows = []
    for line in stats.largest_lines:
        rows.append((location(f"{line.file}:{line.line}"), format_bytes(line.live_bytes), f"{line.blocks:,}"))
        rows += _called_by(line.callers)
    yield from table(("line", "live", "blocks"), rows or [("none", "-", "-")])


def _grown(stats: Stats) -> Iterator[str]:
    if not stats.grown_lines:
        return
    yield "Lines that grew most after the warm-up (tracemalloc)"
    rows = []
    for line in stats.grown_lines:
        rows.append(_grown_row(line))
        rows += _called_by(line.callers)
    yield from table(("line", "growth", "blocks"), rows)


def _grown_row(line: GrownLine) -> tuple[str, str, str]:
    place = location(f"{line.file}:{line.line}")
    return place, format_bytes(line.grown_bytes, sign=True), f"{line.grown_blocks:+,}"


def _called_by(callers: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    for place in callers[:_CALLERS]:
        yield f"  < {location(place)}", "", ""


def _functions(stats: Stats, functions: Sequence[FunctionTime]) -> list[str]:
    steps = stats.settings.steps
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
    return table(("function", "calls", "own s", "own us/step", "cumulative s", "cumulative us/step"), rows)
