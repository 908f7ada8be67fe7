"""Statistics: pure functions from a Recording to Stats, the plain data of the reports.

Sizes are in bytes, rates in bytes per 1,000 steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nclone_env.memory.growth import Growth, Verdict, combined_verdict, growth, least_squares
from nclone_env.memory.recording import (
    COMPILED_CODE,
    INTERPRETER,
    LIBRARIES,
    AllocatingLine,
    FunctionTime,
    Machine,
    OwnedNode,
    PhaseTime,
    ProfileSettings,
    Recording,
    SizePoint,
    Snapshot,
    SourceLine,
    Stage,
    Traced,
)

_OWNED_SHARE = 0.01
"""Share of the reported bytes by which they may vary: memory for final observations follows the episodes that end."""
TOP_LINES = 15
TOP_FUNCTIONS = 30
MIN_TIME_SHARE = 0.001  # of the profiled time; functions below it are not listed


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
    """Of child processes."""
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
    """A source line whose live memory grew between the first snapshot after the warm-up and the last."""

    file: str
    line: int
    grown_bytes: int
    grown_blocks: int
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
    """Allocations of a step."""
    allocated_bytes: float
    """Bytes of a step."""
    steps: int
    """Steps over which both are averaged."""
    lines: tuple[AllocatingLine, ...]
    """The lines that allocated most, over all of these steps."""


@dataclass(frozen=True)
class Stats:
    """The contents of the reports. What a kind of run does not measure is empty or None."""

    name: str
    unit: str
    facts: tuple[tuple[str, str], ...]
    machine: Machine
    settings: ProfileSettings
    verdict: Verdict
    growths: tuple[Growth, ...]
    per_environment: PerEnvironment | None
    sizes: tuple[SizePoint, ...]
    owners: tuple[OwnedNode, ...]
    stages: tuple[Stage, ...]
    warm_up_steps: float
    snapshots: tuple[Snapshot, ...]
    traced: tuple[Traced, ...]
    largest_lines: tuple[SourceLine, ...]
    grown_lines: tuple[GrownLine, ...]
    step_peak: StepPeak | None
    churn: Churn | None
    phases: tuple[PhaseTime, ...]
    by_cumulative: tuple[FunctionTime, ...]
    by_own: tuple[FunctionTime, ...]
    speed: Speed | None
    env_steps: int

    @property
    def peak_bytes(self) -> int:
        """Largest RSS from the first environment on."""
        before = (INTERPRETER, LIBRARIES, COMPILED_CODE)
        return max((stage.peak_bytes for stage in self.stages if stage.name not in before), default=0)


def compute(recording: Recording) -> Stats:
    """Return the statistics of a recording."""
    warm_up = recording.settings.warm_up_steps
    growths = growths_of(recording)
    return Stats(
        name=recording.name,
        unit=recording.unit,
        facts=recording.facts,
        machine=recording.machine,
        settings=recording.settings,
        verdict=combined_verdict(growths),
        growths=growths,
        per_environment=per_environment(recording.sizes),
        sizes=recording.sizes,
        owners=recording.owners,
        stages=recording.stages,
        warm_up_steps=warm_up,
        snapshots=recording.snapshots,
        traced=recording.traced,
        largest_lines=largest_lines(recording.last_lines),
        grown_lines=grown_lines(recording.first_lines, recording.last_lines),
        step_peak=step_peak(recording.step_peaks, warm_up),
        churn=churn(recording),
        phases=recording.phases,
        by_cumulative=_top(recording.functions, "cumulative_seconds", recording.profiled_seconds),
        by_own=_top(recording.functions, "own_seconds", recording.profiled_seconds),
        speed=speed(recording),
        env_steps=recording.env_steps,
    )


def growths_of(recording: Recording) -> tuple[Growth, ...]:
    """Return the growth of every quantity that was measured.

    Resident memory is judged without the arrays of owners: that their pages are committed one by one is no growth, and
    that they become larger shows in what the owners report.
    """
    snapshots, traced, warm_up = recording.snapshots, recording.traced, recording.settings.warm_up_steps
    steps = [item.step for item in snapshots]
    columns = {
        "native": [item.native_bytes for item in snapshots],
        "process": [item.data_bytes - item.committed_bytes for item in snapshots],
        "workers": [item.worker_bytes for item in snapshots],
        "owners": [item.owned_bytes for item in snapshots],
    }
    found = [
        growth(name, steps, values, warm_up, int(_OWNED_SHARE * values[-1]) if name == "owners" else None)
        for name, values in columns.items()
        if max(values, default=0) > 0
    ]
    if traced:
        places, sizes = [item.step for item in traced], [item.traced_bytes for item in traced]
        found.insert(0, growth("traced", places, sizes, warm_up, recording.traced_floor))
    return tuple(found)


def per_environment(sizes: Sequence[SizePoint]) -> PerEnvironment | None:
    """Fit the bytes of each further environment; None without measurements of several sizes."""
    plain = [point for point in sizes if point.python_bytes is None]
    traced = [(point.num_envs, point.python_bytes) for point in sizes if point.python_bytes is not None]
    if len(plain) < 2:
        return None
    counts = np.array([point.num_envs for point in plain], dtype=np.float64)
    data = np.array([point.data_bytes for point in plain], dtype=np.float64)
    committed = np.array([point.committed_bytes for point in plain], dtype=np.float64)
    workers = np.array([point.worker_bytes for point in plain], dtype=np.float64)
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


def speed(recording: Recording) -> Speed | None:
    """Return steps per second with and without profiling; None if no step was timed."""
    seconds = np.array(recording.step_seconds)
    if not len(seconds):
        return None
    counted = len(seconds) * max(1, recording.env_steps)
    profiled = counted / recording.profiled_seconds if recording.profiled_seconds else 0.0
    return Speed(counted / seconds.sum(), profiled, float(np.median(seconds)), float(np.quantile(seconds, 0.95)))


def step_peak(peaks: Sequence[int], warm_up: float) -> StepPeak | None:
    """Return the peaks of the steps after the warm-up; None if none was measured."""
    kept = np.array(peaks[int(warm_up) :])
    return StepPeak(float(np.median(kept)), int(kept.max())) if len(kept) else None


def churn(recording: Recording) -> Churn | None:
    """Return the allocations of a step; None if they were not recorded."""
    lines, steps = recording.allocating_lines, recording.allocation_steps
    if not steps:
        return None
    most = sorted(lines, key=lambda line: (-line.allocated_bytes, line.file, line.line))[:TOP_LINES]
    blocks, size = sum(line.blocks for line in lines), sum(line.allocated_bytes for line in lines)
    return Churn(blocks / steps, size / steps, steps, tuple(most))


def largest_lines(lines: Sequence[SourceLine]) -> tuple[SourceLine, ...]:
    """Return the lines with the most live memory, largest first."""
    return tuple(sorted(lines, key=lambda line: (-line.live_bytes, line.file, line.line))[:TOP_LINES])


def grown_lines(first: Sequence[SourceLine], last: Sequence[SourceLine]) -> tuple[GrownLine, ...]:
    """Return the lines whose live memory grew from ``first`` to ``last``, most grown first."""
    before = {(line.file, line.line): line for line in first}
    grown = []
    for line in last:
        old = before.get((line.file, line.line))
        by, blocks = (
            (line.live_bytes - old.live_bytes, line.blocks - old.blocks) if old else (line.live_bytes, line.blocks)
        )
        if by > 0:
            grown.append(GrownLine(line.file, line.line, by, blocks, line.callers))
    return tuple(sorted(grown, key=lambda line: (-line.grown_bytes, line.file, line.line))[:TOP_LINES])


def _top(functions: Sequence[FunctionTime], field: str, whole: float) -> tuple[FunctionTime, ...]:
    """Return the functions with the most time in ``field``, without those below ``MIN_TIME_SHARE`` of ``whole``."""
    relevant = [item for item in functions if getattr(item, field) >= MIN_TIME_SHARE * whole]
    return tuple(sorted(relevant, key=lambda item: -getattr(item, field))[:TOP_FUNCTIONS])
