"""Writing reports: text, JSON, a page of HTML, and the files of cProfile and memray; nothing is measured here.

Two reports in JSON are compared row by row. What a target will take is told before it is made.
"""

import dataclasses
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from nclone_env._files import open_regular, write_file
from nclone_env._table import format_bytes, table
from nclone_env.errors import ConfigError, Within, check_value, optional_module, plain, shortened
from nclone_env.memory.owners import folded, owned_nodes, owner_rows
from nclone_env.memory.sections import (
    HEIGHT,
    WIDTH,
    Row,
    Section,
    memory_sections,
    run,
    summary,
    text_of,
    time_sections,
    worst_chart,
)
from nclone_env.memory.sizes import Target, estimated
from nclone_env.memory.stats import Stats

MEMORY_REPORT, TIME_REPORT, TIME_PROFILE = "memory_profiling_report.txt", "profiling_stats.txt", "profiling_stats.prof"
JSON_REPORT, HTML_REPORT = "memory_profiling_report.json", "memory_profiling_report.html"
FLAME_GRAPH = "memray_flamegraph.html"
JSON_FORMAT, JSON_VERSION = "nclone_env memory profile", 3
_MOST_BYTES, _MOST_DEPTH, _MOST_SHOWN = 1 << 23, 64, 200
"""Of a profile that is read: bytes, levels of owners, and characters of a name."""
_SIZE, _COUNT, _DEPTH = (
    Annotated[float, Within(-(2**63), 2**63)],
    Annotated[int, Within(0, 2**31)],
    Annotated[int, Within(0, _MOST_DEPTH)],
)
_JSON_KEYS = (
    *("name", "unit", "facts", "machine", "settings", "verdict", "growths", "per_environment", "sizes", "owners"),
    *("stages", "warm_up_steps", "snapshots", "traced", "largest_lines", "grown_lines", "step_peak", "churn", "phases"),
    *("advice", "keepers", "judged", "tracing", "loading"),
    *("by_cumulative", "by_own", "speed", "env_steps"),
)
_TEMPLATE = Path(__file__).with_name("report.html.jinja")


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


class Estimate(NamedTuple):
    """What a target will take."""

    text: str
    """Its tree, as a table."""
    each: float
    """Bytes of each environment."""
    shared: int


def estimate(target: Target, num_envs: int, allowed: str) -> Estimate:
    """Measure one and two environments in fresh processes, and continue to any number; ``allowed`` is for the text."""
    tree = estimated(target, num_envs)
    title = f"Estimate: {target.name}, {num_envs:,} environments (libraries and compiled code come on top)"
    cells, columns = owner_rows(list(folded(owned_nodes(tree))), num_envs)
    each, shared = tree.bytes_where(shared=False) / num_envs, tree.bytes_where(shared=True)
    parts = f"{format_bytes(each)} for each, {format_bytes(shared)} shared"
    note = f"{format_bytes(tree.total_bytes)} in all: {parts}; {allowed}"
    return Estimate(text_of([Section(title, cells, columns, (note,))]), each, shared)


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
    page: str = environment.from_string(_TEMPLATE.read_text()).render(
        title=answer.title,
        verdict=stats.verdict,
        cards=[(name, texts) for name, texts in cards(answer.rows) if not (name == "peak" and first)],
        worst=worst_chart(stats),
        shown=sections[:first],
        folded=[*sections[first:], *time_sections(stats)],
        width=WIDTH,
        height=HEIGHT,
    )
    return page


def cards(rows: Iterable[Row]) -> list[tuple[str, list[str]]]:
    """Return (name, texts) of the rows of the answer; a row without a name continues the one before."""
    found: list[tuple[str, list[str]]] = []
    for name, text in rows:
        if name:
            found.append((name, []))
        found[-1][1].append(text)
    return found


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
        yield f"growth per 1,000 {unit}s, {_shown(line['file'])}:{_shown(line['line'])}", line["rate"]
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
