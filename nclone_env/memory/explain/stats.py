"""Statistics: pure functions from Measurements to Stats, the plain data of the reports.

Sizes are in bytes, rates in bytes per 1,000 steps.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from nclone_env._table import format_bytes
from nclone_env.memory.judge import (
    FALLS,
    MIN_SNAPSHOTS,
    Growth,
    Verdict,
    combined_verdict,
    growing_alone,
    growths_of,
    judged_steps,
    largest_fall,
    least_squares,
)
from nclone_env.memory.measure.measurements import (
    COMPILED_CODE,
    INTERPRETER,
    LIBRARIES,
    NATIVE,
    WORKER,
    Advice,
    AllocatingLine,
    FunctionTime,
    Measurements,
    OwnedNode,
    Place,
    SizePoint,
    SourceLine,
)

TOP_LINES = 15
_LEAST_SHARE = 0.1
"""Of the native memory, or that of workers, that grew: lines with less are noise."""
_CULPRITS, _CULPRIT_SHARE = 3, 0.02
"""Lines that are named first, and the share of the fastest one's rate that they have at least."""
_EXPLAINED = 0.5  # of the growth of traced memory
TOP_FUNCTIONS = 30
MIN_TIME_SHARE = 0.001  # of the profiled time; functions below it are not listed
_MOST_ADVICE = 3
_MORE_ENVIRONMENTS = "--num-envs"
"""Begins the option of the one piece of advice that takes memory: what it takes is little for what it gives."""
_LEAST_SAVED = 0.05
"""Of the memory that grows with the environments: less is not worth a sentence."""
_COPIES = re.compile(r"(.+) x (\d+)")


@dataclass(frozen=True)
class PerEnvironment:
    """Bytes of each further environment: slopes over the fresh processes, and what the owners report."""

    measured: float
    """Of the resident memory."""
    error: float
    """Three standard errors of ``measured``."""
    committed: float
    """Of the reported arrays, in committed pages."""
    workers: float
    python: float
    """Of Python objects and arrays that no owner reports, traced by tracemalloc."""
    reported: float
    """As the owners report them, committed or not."""
    once: float
    """Bytes that do not depend on the number of environments, besides those of libraries and compiled code."""

    @property
    def unexplained(self) -> float:
        """Measured in this process, but neither reported nor traced."""
        return self.measured - self.committed - self.python - self.workers


@dataclass(frozen=True)
class GrownLine:
    """A line whose live memory grew: of the user where there is one, else the one that allocated."""

    file: str
    line: int
    behind: str
    """``file:line`` that allocated most of it, where that is another line, or ``NATIVE`` or ``WORKER``; else empty."""
    rate: float
    """Bytes per 1,000 steps."""
    error: float
    """Three times its largest fall, as a rate; 0 where there were too few snapshots of lines to tell."""
    grown_bytes: int
    grown_blocks: int
    callers: tuple[str, ...]
    places: tuple[Place, ...] = ()
    """All that allocate on behalf of the line."""
    keeper: str = ""

    @property
    def place(self) -> str:
        """Return ``file:line``."""
        return f"{self.file}:{self.line}"


@dataclass(frozen=True)
class LiveLine:
    """A source line with live memory at the end."""

    file: str
    line: int
    live_bytes: int
    blocks: int
    callers: tuple[str, ...]


@dataclass(frozen=True)
class Speed:
    """Steps per second, environment steps where they are counted, and the time of single steps."""

    plain: float
    profiled: float
    median_seconds: float
    p95_seconds: float


@dataclass(frozen=True)
class StepPeak:
    """Bytes that a step allocates at most above its start, after the warm-up; they are free again at its end."""

    median: float
    largest: int


@dataclass(frozen=True)
class Churn:
    """What a step allocates, freed again or not, by memray."""

    blocks: float
    allocated_bytes: float
    steps: int
    """Over which both are averaged."""
    lines: tuple[AllocatingLine, ...]
    """The lines that allocated most, over all of these steps."""


@dataclass(frozen=True)
class Stats:
    """The contents of the reports: the measurements, and what follows from them.

    Parts that were not measured are empty or None.
    """

    measurements: Measurements
    verdict: Verdict
    growths: tuple[Growth, ...]
    per_environment: PerEnvironment | None
    largest_lines: tuple[LiveLine, ...]
    grown_lines: tuple[GrownLine, ...]
    step_peak: StepPeak | None
    churn: Churn | None
    by_cumulative: tuple[FunctionTime, ...]
    by_own: tuple[FunctionTime, ...]
    speed: Speed | None

    @property
    def peak_bytes(self) -> int:
        """Largest RSS from the first environment on."""
        before = (INTERPRETER, LIBRARIES, COMPILED_CODE)
        return max((stage.peak_bytes for stage in self.measurements.stages if stage.name not in before), default=0)


def compute_stats(measured: Measurements) -> Stats:
    """Return what follows from measurements."""
    growths = growths_of(measured)
    lines = all_grown_lines(measured, growths)
    growths = without_filling(growths, lines, measured)
    return Stats(
        measurements=measured,
        verdict=combined_verdict(growths),
        growths=growths,
        per_environment=per_environment(measured.sizes),
        largest_lines=largest_lines(measured.lines),
        grown_lines=lines,
        step_peak=step_peak(measured.step_peaks, measured.settings.warm_up_steps),
        churn=churn(measured),
        by_cumulative=_top(measured.functions, "cumulative_seconds", measured.profiled_seconds),
        by_own=_top(measured.functions, "own_seconds", measured.profiled_seconds),
        speed=speed(measured),
    )


def per_environment(sizes: Sequence[SizePoint]) -> PerEnvironment | None:
    """Fit the bytes of each further environment; None without measurements of several sizes."""
    plain = [point for point in sizes if point.python_bytes is None]
    traced = [(point.num_envs, point.python_bytes) for point in sizes if point.python_bytes is not None]
    if len(plain) < 2:
        return None
    sizes_of = [(each.num_envs, each.data_bytes, each.committed_bytes, each.worker_bytes) for each in plain]
    counts, data, committed, workers = np.array(sizes_of, dtype=np.float64).T
    measured, error = least_squares(counts, data)
    (few, least), (many, most) = traced[0], traced[-1]
    return PerEnvironment(
        measured=measured,
        error=3 * error,
        committed=least_squares(counts, committed)[0],
        workers=least_squares(counts, workers)[0],
        python=(most - least) / max(1, many - few),
        reported=(plain[-1].owned_bytes - plain[0].owned_bytes) / (plain[-1].num_envs - plain[0].num_envs),
        once=float(data.mean() - measured * counts.mean()),
    )


def speed(measured: Measurements) -> Speed | None:
    """Return steps per second with and without profiling; None if no step was timed."""
    seconds = np.array(measured.step_seconds)
    if not len(seconds):
        return None
    counted = len(seconds) * max(1, measured.env_steps)
    profiled = counted / measured.profiled_seconds if measured.profiled_seconds else 0.0
    return Speed(counted / seconds.sum(), profiled, float(np.median(seconds)), float(np.quantile(seconds, 0.95)))


def step_peak(peaks: Sequence[int], warm_up: float) -> StepPeak | None:
    """Return the peaks of the steps after the warm-up; None if none was measured."""
    kept = np.array(peaks[int(warm_up) :])
    return StepPeak(float(np.median(kept)), int(kept.max())) if len(kept) else None


def churn(measured: Measurements) -> Churn | None:
    """Return the allocations of a step; None if they were not recorded."""
    if measured.allocations is None:
        return None
    lines, steps, _ = measured.allocations
    most = sorted(lines, key=lambda line: (-line.allocated_bytes, line.file, line.line))[:TOP_LINES]
    blocks, size = sum(line.blocks for line in lines), sum(line.allocated_bytes for line in lines)
    return Churn(blocks / steps, size / steps, steps, tuple(most))


def largest_lines(lines: Sequence[SourceLine]) -> tuple[LiveLine, ...]:
    """Return the lines with the most live memory at the end, largest first."""
    found: dict[tuple[str, int], LiveLine] = {}
    for line in sorted(lines, key=lambda line: -line.live_bytes[-1]):
        old = found.get((line.file, line.line)) or LiveLine(line.file, line.line, 0, 0, line.callers)
        size, blocks = old.live_bytes + line.live_bytes[-1], old.blocks + line.blocks[-1]
        found[line.file, line.line] = replace(old, live_bytes=size, blocks=blocks)
    live = (line for line in found.values() if line.live_bytes)
    return tuple(sorted(live, key=lambda line: (-line.live_bytes, line.file, line.line))[:TOP_LINES])


def traced_lines(measured: Measurements, growths: Sequence[Growth]) -> tuple[GrownLine, ...]:
    """Return the lines that grew by tracemalloc, fastest first.

    If those that rose steadily explain too little of traced memory that grows, all that rose are returned: something
    of them leaks, though their few snapshots are too noisy to tell.
    """
    bounds = whole = judged_steps(measured, "traced")
    rising = [item for item in growths if item.quantity == "traced" and item.rises]
    for item in rising:  # a jump in the last part is in no level of it
        if sum(item.first <= step <= item.last for step in measured.line_steps) >= MIN_SNAPSHOTS:
            bounds = item.first, item.last
    found = grown_lines(measured.lines, measured.line_steps, *bounds)
    if sum(line.rate for line in found) >= _EXPLAINED * sum(item.slope for item in rising):
        return found
    return grown_lines(measured.lines, measured.line_steps, *whole, steady=False)


def grown_lines(
    lines: Sequence[SourceLine], steps: Sequence[float], first: float, last: float, steady: bool = True
) -> tuple[GrownLine, ...]:
    """Return the lines whose live memory, at each of ``steps``, grew from ``first`` to ``last``, fastest first.

    Steps outside count if there are fewer than two inside. ``steady`` leaves out noise and single jumps.
    """
    until = sum(step <= last for step in steps)
    kept = [number for number in range(until) if steps[number] >= first]
    if len(kept) < 2:
        kept = list(range(until if until >= 2 else len(steps)))[-2:]
    if len(kept) < 2:
        return ()
    groups: dict[str, list[SourceLine]] = {}
    for line in lines:
        groups.setdefault(line.own or f"{line.file}:{line.line}", []).append(line)
    places = [steps[number] for number in kept]
    found = (_grown_line(name, group, kept, places, steady) for name, group in groups.items())
    grown = [line for line in found if line is not None]
    return tuple(sorted(grown, key=lambda line: (-line.rate, line.file, line.line))[:TOP_LINES])


def _grown_line(
    name: str, group: Sequence[SourceLine], kept: Sequence[int], steps: Sequence[float], steady: bool
) -> GrownLine | None:
    """Add up the memory of all places behind a line, as the verdict does; None if it did not grow."""
    sizes = [sum(line.live_bytes[number] for line in group) for number in kept]
    by = sizes[-1] - sizes[0]
    if by <= 0:
        return None
    fell, error = largest_fall(np.array(sizes)), 0.0
    if len(steps) >= MIN_SNAPSHOTS and steady:
        error = FALLS * fell / (steps[-1] - steps[0]) * 1000
        if by <= fell or not sizes[0] < sizes[len(sizes) // 2] < sizes[-1]:  # noise, or a single jump
            return None
    most = max(group, key=lambda line: line.live_bytes[kept[-1]] - line.live_bytes[kept[0]])
    behind = f"{most.file}:{most.line}"
    file, _, number = name.rpartition(":")
    return GrownLine(
        file=file,
        line=int(number),
        behind="" if behind == name else behind,
        rate=by / (steps[-1] - steps[0]) * 1000,
        error=error,
        grown_bytes=by,
        grown_blocks=sum(line.blocks[kept[-1]] - line.blocks[kept[0]] for line in group),
        callers=most.callers,
        places=tuple(Place(line.file, line.line, line.own) for line in group),
    )


def culprits(lines: Sequence[GrownLine]) -> tuple[GrownLine, ...]:
    """Return the few lines that matter of those that grew."""
    return tuple(line for line in lines[:_CULPRITS] if line.rate > _CULPRIT_SHARE * lines[0].rate)


def all_grown_lines(measured: Measurements, growths: Sequence[Growth]) -> tuple[GrownLine, ...]:
    """Return the lines that grew by tracemalloc and by the allocator, fastest first, with their keepers.

    A line may grow by both.
    """
    both = (*traced_lines(measured, growths), *untraced_lines(measured, growths))
    keepers = {keeper.line: f"{keeper.name} ({keeper.kind})" for keeper in measured.keepers}
    lines = sorted(both, key=lambda line: (-line.rate, line.file, line.line))
    names = ((NATIVE, line.place) if line.behind == NATIVE else (line.place,) for line in lines)
    kept = (next((keepers[name] for name in those if name in keepers), "") for those in names)
    return tuple(replace(line, keeper=keeper) for line, keeper in zip(lines, kept))[:TOP_LINES]


def without_filling(
    growths: Sequence[Growth], lines: Sequence[GrownLine], measured: Measurements
) -> tuple[Growth, ...]:
    """Return growths, undecided where containers that will stop to grow keep half of what grew."""
    filling = {keeper.line for keeper in measured.keepers if keeper.is_filling}
    rate = sum(line.rate for line in lines if line.place in filling)
    return tuple(
        replace(item, verdict="undecided") if item.verdict == "growing" and rate >= _EXPLAINED * item.slope else item
        for item in growths
    )


def untraced_lines(measured: Measurements, growths: Sequence[Growth]) -> Iterator[GrownLine]:
    """Yield the lines that share the growth of native memory and of worker processes."""
    quantities, growing = {NATIVE: "native", WORKER: "workers"}, growing_alone(growths, undecided=True)
    for behind, place, share in measured.untraced:
        whole = growing.get(quantities[behind])
        if whole is not None and share >= _LEAST_SHARE:
            file, _, line = place.rpartition(":")
            change = round(share * whole.change)
            yield GrownLine(file, int(line), behind, share * whole.slope, share * whole.error, change, 0, ())


def _top(functions: Sequence[FunctionTime], field: str, whole: float) -> tuple[FunctionTime, ...]:
    relevant = [item for item in functions if getattr(item, field) >= MIN_TIME_SHARE * whole]
    return tuple(sorted(relevant, key=lambda item: -getattr(item, field))[:TOP_FUNCTIONS])


def chosen(candidates: Iterable[Advice], owners: Sequence[OwnedNode]) -> tuple[Advice, ...]:
    """Return the pieces of advice that save most; none that takes memory, but that on more environments."""
    least = _LEAST_SAVED * owners[0].environment_bytes if owners else 0.0
    kept = [item for item in candidates if item.saved_bytes > least or item.option.startswith(_MORE_ENVIRONMENTS)]
    return tuple(sorted(kept, key=lambda advice: -advice.saved_bytes)[:_MOST_ADVICE])


def copies(owners: Sequence[OwnedNode], name: str) -> Iterator[tuple[int, int]]:
    """Yield (number of copies, bytes of all) of the arrays with a name."""
    return ((count, size) for array, count, size in _pools(owners) if array == name)


def _pools(owners: Sequence[OwnedNode]) -> Iterator[tuple[str, int, int]]:
    """Yield (name, number of copies, bytes of all) of arrays, which pools write as ``name x 2``."""
    for node in owners:
        found = _COPIES.fullmatch(node.name)
        if not node.shared_bytes:
            yield found[1] if found else node.name, int(found[2]) if found else 1, node.environment_bytes


def of_kept_results(owners: Sequence[OwnedNode]) -> Iterator[Advice]:
    """Yield advice on results of a vector environment that are alive at the same time, for any code."""
    pools = [(count, size) for _, count, size in _pools(owners)]
    kept = max((count for count, _ in pools), default=0)
    saved = sum(size * (count - 1) // count for count, size in pools if count)
    if kept > 1:
        yield Advice(
            "out=",
            saved,
            f"out= of step saves {format_bytes(saved)}: {kept} batches of observations are alive at the same time, and "
            "with arrays of its own the loop needs one.",
        )
    finals = sum(node.environment_bytes for node in owners if node.name == "final observations")
    if finals:
        yield Advice(
            "final_obs",
            finals,
            f'Copy what is needed of info["final_obs"] before the next step: {format_bytes(finals)} of final '
            "observations are kept.",
        )
