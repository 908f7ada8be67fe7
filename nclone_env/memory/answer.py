"""The summary of a report: the answer in a few lines."""

from collections.abc import Iterator

from nclone_env.memory.growth import MIN_SNAPSHOTS, judged_steps
from nclone_env.memory.measurements import NATIVE, TIME_UNIT, WORKER
from nclone_env.memory.section import Row, Section, format_bytes, format_seconds, location
from nclone_env.memory.stats import Stats, culprits


def summary(stats: Stats) -> Section:
    """Return the answer."""
    return Section(f"Memory profile: {subject(stats)}", list(_answers(stats)))


def _answers(stats: Stats) -> Iterator[Row]:
    found, owners = stats.per_environment, stats.measurements.owners
    yield "growth", f"{stats.verdict.upper()}{_blame(stats)}"
    if any(item.rises for item in stats.growths):
        yield from _culprits(stats)
    if found is not None:
        yield (
            "memory",
            f"{format_bytes(found.measured)} measured for each further environment, "
            f"{format_bytes(found.reported)} reported by the owners",
        )
    elif owners:
        count, reported = stats.measurements.settings.num_envs, owners[0].environment_bytes
        each = f"{format_bytes(reported / count)} per environment" if count else format_bytes(reported)
        yield "memory", f"{each}, as reported by the owners"
    if owners and owners[0].shared_bytes:
        yield "", f"{format_bytes(owners[0].shared_bytes)} shared by all environments"
    if stats.peak_bytes:
        yield "peak", f"{format_bytes(stats.peak_bytes)} resident"
    for number, advice in enumerate(stats.measurements.advice):
        yield "" if number else "advice", advice.text
    if stats.step_peak is not None:
        yield (
            "churn",
            f"at most {format_bytes(stats.step_peak.median)} at a time in {article(stats.measurements.unit)} (median), "
            f"{format_bytes(stats.step_peak.largest)} in the worst one, freed at its end",
        )
    if stats.churn is not None:
        yield "", f"{stats.churn.blocks:,.0f} allocations, {format_bytes(stats.churn.allocated_bytes)} in all"
    if stats.speed is not None:
        step = f"{article(stats.measurements.unit)} takes {step_times(stats)}"
        yield "speed", f"{stats.speed.plain:,.0f} {rate(stats)}; {step}"


def rate(stats: Stats) -> str:
    """Return the unit of a speed."""
    return "environment steps/s" if stats.measurements.env_steps else f"{stats.measurements.unit}s/s"


def step_times(stats: Stats) -> str:
    """Return the times of a step, without profiling."""
    assert stats.speed is not None
    median, p95 = format_seconds(stats.speed.median_seconds), format_seconds(stats.speed.p95_seconds)
    return f"{median} (median), {p95} (p95)"


def article(noun: str) -> str:
    """Return a noun with its indefinite article."""
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def subject(stats: Stats) -> str:
    """Return what is profiled, with the number of environments."""
    name, count = stats.measurements.name, stats.measurements.settings.num_envs
    return f"{name}, {count:,} environment{'s' * (count != 1)}" if count else name


def _blame(stats: Stats) -> str:
    """Return which quantities grow by how much, how much growth would have shown, or why there is no verdict."""
    growing = [item for item in stats.growths if item.verdict == "growing"]
    if growing:
        rates = (f"{item.quantity} {format_bytes(item.slope, sign=True)}" for item in growing)
        return f": {', '.join(rates)} {per(stats)}"
    if stats.verdict == "undecided":
        return f": {_doubt(stats)}"
    margins = {item.quantity: format_bytes(item.margin) for item in stats.growths}
    native = margins.get("native", margins.get("process"))
    found = {"": margins.get("traced"), "native code": native, "worker processes": margins.get("workers")}
    (_, most), *others = ((name, margin) for name, margin in found.items() if margin is not None)
    more = f" ({', '.join(f'{name}: {margin}' for name, margin in others)})" if others else ""
    return f": more than {most} {per(stats)} would have shown{more}"


def _doubt(stats: Stats) -> str:
    found = stats.measurements
    first, last = judged_steps(found)
    if found.unit == TIME_UNIT and last - first < 1000:
        loading = f", imports and compilation took {found.loading:.0%} of the run" if found.loading > 0.1 else ""
        return f"{(last - first) / 1000:.1f} s to judge, at least 1 s required{loading}; run it longer"
    snapshots = min((item.snapshots for item in stats.growths), default=0)
    longer = "run it longer" if found.unit == TIME_UNIT else "take more steps"
    rises = (f"{item.quantity} {format_bytes(item.change, sign=True)}" for item in stats.growths if item.rises)
    if listed := ", ".join(rises):
        return f"{listed} in a few jumps, or ever more slowly: caches and compiled code, or a rare leak; {longer}"
    return f"{snapshots} snapshots after the warm-up, at least {MIN_SNAPSHOTS} required; {longer}"


def per(stats: Stats) -> str:
    """Return the unit of time of rates."""
    unit = stats.measurements.unit
    return "per second" if unit == TIME_UNIT else f"per 1,000 {unit}s"


def _culprits(stats: Stats) -> Iterator[Row]:
    """Yield the lines that grew most, and what keeps their memory."""
    title = "grew"
    for line in culprits(stats.grown_lines):
        behind = f", in {location(line.behind)}" if line.behind else ""
        yield title, f"{location(line.place)} {format_bytes(line.rate, sign=True)} {per(stats)}{behind}"
        title = ""
        if line.keeper:
            yield "", f"  kept by {line.keeper}"
    if not any(line.behind == NATIVE for line in stats.grown_lines):
        graphs = (keeper for keeper in stats.measurements.keepers if keeper.line == NATIVE)
        yield from (("", f"memory of {NATIVE}: kept by {keeper.name} ({keeper.kind})") for keeper in graphs)
    processes = (keeper for keeper in stats.measurements.keepers if keeper.line == WORKER)
    yield from ((title, f"{keeper.name} {keeper.kind}") for keeper in processes)
