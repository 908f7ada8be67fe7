"""The report as one page of HTML that needs no network: treemap of bytes, growth, bytes per environment, time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from nclone_env.memory.formatting import format_bytes, format_seconds, location
from nclone_env.memory.growth import Growth
from nclone_env.memory.recording import FunctionTime, OwnedNode
from nclone_env.memory.stats import Stats
from nclone_env.memory.svg import Chart, Line
from nclone_env.memory.text import QUANTITIES, folded, memory_text, summary_text

_STYLE = """
:root { color-scheme: light dark; --text: #1c2530; --quiet: #5d6b7a; --line: #d5dce3; --card: #f6f8fa; --page: #ffffff;
  --first: #1f6fb2; --second: #c2571a; --good: #1d7a46; --bad: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --text: #e4e9ee; --quiet: #9aa8b5; --line: #36414c; --card: #1a2129;
  --page: #11161b; --first: #6db3ee; --second: #f0955a; --good: #5ec98d; --bad: #f2857e; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1080px; padding: 16px; font: 15px/1.5 system-ui, sans-serif; color: var(--text);
  background: var(--page); }
h1 { font-size: 22px; margin: 8px 0; } h2 { font-size: 17px; margin: 28px 0 8px; }
p { margin: 4px 0; } .quiet { color: var(--quiet); }
.verdict { font-weight: 700; } .flat { color: var(--good); } .growing { color: var(--bad); }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); gap: 10px; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 6px; padding: 10px 12px; }
.card b { display: block; font-size: 19px; }
.charts { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 400px), 1fr)); gap: 14px; }
figure { margin: 0; } figcaption { font-weight: 600; }
svg { width: 100%; height: auto; display: block; } svg text { font-size: 12px; fill: var(--quiet); }
svg .grid { stroke: var(--line); } polyline { fill: none; stroke-width: 2; }
polyline.first { stroke: var(--first); } polyline.second { stroke: var(--second); }
circle.first { fill: var(--first); } circle.second { fill: var(--second); }
polyline.fit { stroke: var(--second); stroke-dasharray: 5 4; } polygon.band { fill: var(--second); opacity: 0.18; }
.legend span { margin-right: 16px; } .legend .first { color: var(--first); }
.legend .second, .legend .fit, .legend .band { color: var(--second); }
.node { min-width: 0; flex-basis: 0; } .row { display: flex; }
.node { overflow: hidden; }
.node > .name { background: color-mix(in srgb, var(--first) 22%, var(--page)); height: 38px;
  font-size: 12px; line-height: 1.5; box-shadow: inset -1px -1px 0 var(--page); }
.name span { display: block; margin-left: 5px; overflow: hidden; white-space: nowrap; text-overflow: ellipsis; }
.node .node > .name { background: color-mix(in srgb, var(--first) 32%, var(--page)); }
.node .node .node > .name { background: color-mix(in srgb, var(--second) 24%, var(--page)); }
.node .node .node .node > .name { background: color-mix(in srgb, var(--second) 36%, var(--page)); }
.bars { display: grid; grid-template-columns: minmax(0, 1fr) 72px; gap: 3px 10px; font-size: 13px; }
.bars .bar { position: relative; background: var(--card); overflow: hidden; white-space: nowrap; padding: 0 6px; }
.bars .bar i { position: absolute; inset: 0 auto 0 0; background: color-mix(in srgb, var(--first) 30%, transparent); }
.bars .bar span { position: relative; } .bars .number { text-align: right; font-variant-numeric: tabular-nums; }
pre { overflow-x: auto; font-size: 12px; background: var(--card); border: 1px solid var(--line); padding: 10px; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 2px 16px; margin: 0; } dd { margin: 0; }
"""


def html_text(stats: Stats) -> str:
    """Return the page."""
    title = summary_text(stats).splitlines()[0]
    body = "\n".join(part for section in _sections(stats) for part in section)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>\n{body}\n</body></html>\n"
    )


def _sections(stats: Stats) -> Iterator[Iterator[str]]:
    yield _head(stats)
    yield _sizes(stats)
    yield _owners(stats)
    yield _growths(stats)
    yield _phases(stats)
    yield _functions(stats)
    yield _facts(stats)


def _head(stats: Stats) -> Iterator[str]:
    title, verdict, *_ = summary_text(stats).splitlines()
    yield f"<h1>{escape(title)}</h1>"
    yield f'<p class="verdict {stats.verdict}">{escape(verdict.strip())}</p>'
    cards = "".join(f'<div class="card">{escape(name)}<b>{escape(value)}</b></div>' for name, value in _cards(stats))
    yield f'<div class="cards">{cards}</div>'


def _cards(stats: Stats) -> Iterator[tuple[str, str]]:
    if stats.per_environment is not None:
        yield "each further environment, measured", format_bytes(stats.per_environment.measured)
        yield "reported by its owners", format_bytes(stats.per_environment.reported)
    elif stats.owners and stats.settings.num_envs:
        yield "each environment, reported", format_bytes(stats.owners[0].environment_bytes / stats.settings.num_envs)
    if stats.owners and stats.owners[0].shared_bytes:
        yield "shared by all environments", format_bytes(stats.owners[0].shared_bytes)
    if stats.peak_bytes:
        yield "largest resident size", format_bytes(stats.peak_bytes)
    if stats.step_peak is not None:
        yield f"allocated at a time in a {stats.unit}", format_bytes(stats.step_peak.median)
    if stats.speed is not None:
        yield ("environment steps/s" if stats.env_steps else f"{stats.unit}s/s"), f"{stats.speed.plain:,.0f}"
        yield f"median time of a {stats.unit}", format_seconds(stats.speed.median_seconds)


def _sizes(stats: Stats) -> Iterator[str]:
    plain = [point for point in stats.sizes if point.python_bytes is None]
    if len(plain) < 2:
        return
    yield "<h2>Memory by number of environments</h2>"
    sizes = {
        "first": ("measured", [(point.num_envs, point.data_bytes) for point in plain]),
        "second": ("reported by owners", [(point.num_envs, point.owned_bytes) for point in plain]),
    }
    lines = [Line(style, points, name, marks=True) for style, (name, points) in sizes.items()]
    chart = Chart(lines, "environments, each number in a fresh process", from_zero=True)
    found = stats.per_environment
    caption = "" if found is None else f"unexplained: {format_bytes(found.unexplained)} of each environment"
    yield f'<div class="charts"><figure><figcaption>{escape(caption)}</figcaption>{chart.svg()}</figure></div>'


def _owners(stats: Stats) -> Iterator[str]:
    if not stats.owners:
        return
    rows = list(folded(stats.owners))
    if rows[0].environment_bytes:
        each = format_bytes(rows[0].environment_bytes / max(1, stats.settings.num_envs))
        yield f"<h2>Bytes of the environments by owner, {escape(each)} each</h2>"
        yield "".join(_icicle(rows, 0, shared=False, divisor=max(1, stats.settings.num_envs)))
    if rows[0].shared_bytes:
        yield f"<h2>Bytes that all environments share, {escape(format_bytes(rows[0].shared_bytes))}</h2>"
        yield "".join(_icicle(rows, 0, shared=True, divisor=1))


def _icicle(rows: Sequence[OwnedNode], index: int, *, shared: bool, divisor: int) -> Iterator[str]:
    """Yield nested boxes whose widths are proportional to their bytes."""
    node = rows[index]
    size = node.shared_bytes if shared else node.environment_bytes
    if not size:
        return
    text = f"{node.name}, {format_bytes(size / divisor)}"
    yield f'<div class="node" style="flex-grow:{size}" title="{escape(text)}"><div class="name">'
    yield f"<span>{escape(node.name)}</span><span>{format_bytes(size / divisor)}</span></div>"
    yield '<div class="row">'
    for child in range(index + 1, len(rows)):
        if rows[child].depth <= node.depth:
            break
        if rows[child].depth == node.depth + 1:
            yield from _icicle(rows, child, shared=shared, divisor=divisor)
    yield "</div></div>"


def _growths(stats: Stats) -> Iterator[str]:
    yield f"<h2>Growth: {stats.verdict}</h2>"
    yield '<div class="charts">'
    for item in stats.growths:
        points = _series(stats, item.quantity)
        if item.verdict == "undecided" or not points:
            continue
        rate = f"{format_bytes(item.slope, sign=True)} per 1,000, margin {format_bytes(item.margin)}"
        chart = Chart(_growth_lines(item, points), f"{stats.unit}s", signed=True)
        yield f'<figure><figcaption>{item.quantity}: <span class="{item.verdict}">{item.verdict}</span></figcaption>'
        yield f'<p class="quiet">{escape(QUANTITIES[item.quantity])}; {escape(rate)}</p>{chart.svg()}</figure>'
    yield "</div>"


def _growth_lines(item: Growth, points: Sequence[tuple[float, float]]) -> tuple[Line, ...]:
    """Return the change since the first fitted snapshot, the slope, and the band in which a slope means nothing."""
    start = next(y for x, y in points if x >= item.first)
    span = (item.last - item.first) / 1000
    band = [(item.first, 0.0), (item.last, item.margin * span), (item.last, -item.margin * span)]
    fit = [(item.first, 0.0), (item.last, item.slope * span)]
    change = [(x, y - start) for x, y in points]
    return (Line("band", band, "margin"), Line("fit", fit, "slope"), Line("first", change, "change"))


def _series(stats: Stats, quantity: str) -> list[tuple[float, float]]:
    if quantity == "traced":
        return [(item.step, item.traced_bytes) for item in stats.traced]
    values = {
        "native": lambda item: item.native_bytes,
        "process": lambda item: item.data_bytes - item.committed_bytes,
        "workers": lambda item: item.worker_bytes,
        "owners": lambda item: item.owned_bytes,
    }
    return [(item.step, values[quantity](item)) for item in stats.snapshots]


def _phases(stats: Stats) -> Iterator[str]:
    if not stats.phases:
        return
    whole, *parts = stats.phases
    yield f"<h2>Time by phase of a {stats.unit}, {escape(format_seconds(whole.seconds))}</h2>"
    yield from _bars([(item.name, item.seconds / whole.seconds, format_seconds(item.seconds)) for item in parts])


def _functions(stats: Stats) -> Iterator[str]:
    if not stats.by_own:
        return
    whole = sum(item.own_seconds for item in stats.by_own)
    shares = [(_function(item), item.own_seconds / whole) for item in stats.by_own[:15]]
    yield "<h2>Time by function</h2>"
    yield '<p class="quiet">own time under cProfile, which slows Python code down: read it as proportions</p>'
    yield from _bars([(name, share, f"{share:.1%}") for name, share in shares])


def _bars(rows: Sequence[tuple[str, float, str]]) -> Iterator[str]:
    """Yield a bar for each name, share between 0 and 1, and text of the number."""
    yield '<div class="bars">'
    for name, share, number in rows:
        yield f'<div class="bar"><i style="width:{max(0.0, share):.1%}"></i><span>{escape(name)}</span></div>'
        yield f'<div class="number">{escape(number)}</div>'
    yield "</div>"


def _function(item: FunctionTime) -> str:
    return f"{item.name} ({location(f'{item.file}:{item.line}')})" if item.line else item.name


def _facts(stats: Stats) -> Iterator[str]:
    yield "<h2>Run</h2><dl>"
    packages = ", ".join(f"{name} {version}" for name, version in stats.machine.packages)
    machine = f"{stats.machine.processor}, {stats.machine.cores} cores, {stats.machine.system}"
    for name, value in (*stats.facts, ("machine", machine), ("versions", f"{stats.machine.python}, {packages}")):
        yield f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>"
    yield "</dl>"
    yield f"<details><summary>All numbers</summary><pre>{escape(memory_text(stats))}</pre></details>"
