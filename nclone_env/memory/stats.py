"""Statistics: pure functions from a Recording to Stats, the plain data of the reports.

Sizes are in bytes, rates in bytes per 1,000 vector steps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from nclone_env.memory.recording import (
    ENVIRONMENTS,
    FunctionTime,
    Machine,
    ProfileSettings,
    Recording,
    Resident,
    SourceLine,
    Traced,
)
from nclone_env.memory_tree import MemoryNode

Verdict = Literal["flat", "growing", "undecided"]

STANDARD_ERRORS = 3.0  # a slope within this many standard errors of zero is noise
TRACED_FLOOR = 2 * 1024  # bytes by which Python's caches and free lists may vary over the fitted steps
RESIDENT_FLOOR = 128 * 1024  # bytes over the fitted steps: 32 pages, since allocators grow by arenas
MIN_SNAPSHOTS = 4
TOP_LINES = 15
TOP_FUNCTIONS = 30
MIN_TIME_SHARE = 0.001  # of the profiled time; functions below it are not listed


@dataclass(frozen=True)
class OwnerRow:
    """One node of the memory tree of the environments."""

    depth: int
    name: str
    shared_bytes: int
    """Bytes of this owner and its children that all environments share."""
    environment_bytes: int
    """Bytes of this owner and its children that grow with the number of environments, over all environments."""
    per_env_bytes: float
    """``environment_bytes`` per environment."""


@dataclass(frozen=True)
class Share:
    """A named part of the resident memory."""

    name: str
    share_bytes: int
    how: str


@dataclass(frozen=True)
class Accounting:
    """Measured memory compared with accounted memory.

    A byte is accounted for if an object reports it, or if it was added to the PSS by a stage before the first
    environment.
    """

    parts: tuple[Share, ...]
    """The stages before the environments, and the bytes reported by the environments."""
    measured_bytes: int
    """PSS after the environments were created."""
    environments_measured_bytes: int
    """PSS added by the environments."""
    accounted_bytes: int
    unaccounted_bytes: int
    """Measured minus accounted; negative if reported memory was not newly resident."""


@dataclass(frozen=True)
class Growth:
    """Least-squares fit of one quantity over the snapshots after the warm-up, and its verdict."""

    quantity: str
    snapshots: int
    first_step: int
    last_step: int
    slope: float
    """Bytes per 1,000 steps."""
    margin: float
    """Noise margin in bytes per 1,000 steps: the larger of ``error_margin`` and ``floor_margin``."""
    error_margin: float
    """Three standard errors of the slope."""
    floor_margin: float
    """The fixed floor divided by the number of fitted steps."""
    first_half_slope: float
    second_half_slope: float
    verdict: Verdict


@dataclass(frozen=True)
class GrownLine:
    """A source line whose live memory grew between the first snapshot after the warm-up and the last."""

    file: str
    line: int
    grown_bytes: int
    grown_blocks: int


@dataclass(frozen=True)
class Speed:
    """Environment steps per second (vector steps times environments, including resets)."""

    plain: float
    profiled: float


@dataclass(frozen=True)
class Stats:
    """The contents of the reports."""

    machine: Machine
    settings: ProfileSettings
    owners: tuple[OwnerRow, ...]
    accounting: Accounting
    warm_up_steps: int
    resident: tuple[Resident, ...]
    traced: tuple[Traced, ...]
    growths: tuple[Growth, ...]
    verdict: Verdict
    largest_lines: tuple[SourceLine, ...]
    grown_lines: tuple[GrownLine, ...]
    by_cumulative: tuple[FunctionTime, ...]
    by_own: tuple[FunctionTime, ...]
    speed: Speed


def compute(recording: Recording) -> Stats:
    """Return the statistics of a recording."""
    settings = recording.settings
    warm_up = settings.warm_up_steps
    growths = (
        growth("traced", [(r.step, r.traced_bytes) for r in recording.traced], warm_up, TRACED_FLOOR),
        growth("data", [(r.step, r.data_bytes) for r in recording.resident], warm_up, RESIDENT_FLOOR),
    )
    env_steps = settings.steps * settings.num_envs
    return Stats(
        machine=recording.machine,
        settings=settings,
        owners=owner_rows(recording.memory, settings.num_envs),
        accounting=accounting(recording),
        warm_up_steps=warm_up,
        resident=recording.resident,
        traced=recording.traced,
        growths=growths,
        verdict=combined_verdict(growths),
        largest_lines=largest_lines(recording.last_lines),
        grown_lines=grown_lines(recording.first_lines, recording.last_lines),
        by_cumulative=_top(recording.functions, "cumulative_seconds", recording.profiled_seconds),
        by_own=_top(recording.functions, "own_seconds", recording.profiled_seconds),
        speed=Speed(env_steps / recording.plain_seconds, env_steps / recording.profiled_seconds),
    )


def owner_rows(root: MemoryNode, num_envs: int) -> tuple[OwnerRow, ...]:
    """Return one row per node of the tree, parents first."""
    rows = []
    for depth, node in root.walk():
        own = node.bytes_where(shared=False)
        rows.append(OwnerRow(depth, _owner_name(node), node.bytes_where(shared=True), own, own / num_envs))
    return tuple(rows)


def _owner_name(node: MemoryNode) -> str:
    return f"{node.name} (mapped file)" if node.mapped else node.name


def accounting(recording: Recording) -> Accounting:
    """Compare the PSS after creating the environments with the earlier stages and the reported bytes."""
    shares, before = [], 0
    for stage in recording.stages:
        if stage.name != ENVIRONMENTS:
            shares.append(Share(stage.name, stage.pss_bytes - before, stage.how))
            before = stage.pss_bytes
    shares.append(Share(ENVIRONMENTS, recording.memory.total_bytes, "sum of the bytes reported by their owners"))
    measured = next(stage.pss_bytes for stage in recording.stages if stage.name == ENVIRONMENTS)
    accounted = sum(share.share_bytes for share in shares)
    return Accounting(tuple(shares), measured, measured - before, accounted, measured - accounted)


def growth(quantity: str, points: Sequence[tuple[int, int]], warm_up: int, floor_bytes: int) -> Growth:
    """Fit a line to the points (step, bytes) after the warm-up and derive a verdict.

    The verdict is growing if the slope exceeds the noise margin and each half of the snapshots alone has a slope
    above the floor margin, so that a single jump does not count as growth. It is undecided with fewer than four
    snapshots.
    """
    kept = np.array([point for point in points if point[0] >= warm_up], dtype=np.float64).reshape(-1, 2)
    if len(kept) < MIN_SNAPSHOTS:
        last = int(kept[-1, 0]) if len(kept) else warm_up
        return Growth(
            quantity=quantity,
            snapshots=len(kept),
            first_step=warm_up,
            last_step=last,
            slope=0.0,
            margin=0.0,
            error_margin=0.0,
            floor_margin=0.0,
            first_half_slope=0.0,
            second_half_slope=0.0,
            verdict="undecided",
        )
    steps, values = kept[:, 0] / 1000.0, kept[:, 1]
    slope, standard_error = least_squares(steps, values)
    middle = len(kept) // 2
    first_half, _ = least_squares(steps[: middle + 1], values[: middle + 1])
    second_half, _ = least_squares(steps[middle:], values[middle:])
    floor_margin = floor_bytes / float(steps[-1] - steps[0])
    error_margin = STANDARD_ERRORS * standard_error
    growing = slope > max(error_margin, floor_margin) and min(first_half, second_half) > floor_margin
    return Growth(
        quantity=quantity,
        snapshots=len(kept),
        first_step=int(kept[0, 0]),
        last_step=int(kept[-1, 0]),
        slope=slope,
        margin=max(error_margin, floor_margin),
        error_margin=error_margin,
        floor_margin=floor_margin,
        first_half_slope=first_half,
        second_half_slope=second_half,
        verdict="growing" if growing else "flat",
    )


def least_squares(x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Return the slope of the fit to n points, (n,) float64 each, and its standard error (0 for two points)."""
    dx = x - x.mean()
    spread = float(dx @ dx)
    slope = float(dx @ y) / spread
    residual = y - y.mean() - slope * dx
    freedom = len(x) - 2
    return slope, math.sqrt(float(residual @ residual) / freedom / spread) if freedom else 0.0


def combined_verdict(growths: Sequence[Growth]) -> Verdict:
    """Return growing if any quantity grows, undecided if any is undecided, else flat."""
    found = {item.verdict for item in growths}
    order: tuple[Verdict, ...] = ("growing", "undecided", "flat")
    return next(verdict for verdict in order if verdict in found)


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
            grown.append(GrownLine(line.file, line.line, by, blocks))
    return tuple(sorted(grown, key=lambda line: (-line.grown_bytes, line.file, line.line))[:TOP_LINES])


def _top(functions: Sequence[FunctionTime], field: str, whole: float) -> tuple[FunctionTime, ...]:
    """Return the functions with the most time in ``field``, without those below ``MIN_TIME_SHARE`` of ``whole``."""
    relevant = [item for item in functions if getattr(item, field) >= MIN_TIME_SHARE * whole]
    return tuple(sorted(relevant, key=lambda item: -getattr(item, field))[:TOP_FUNCTIONS])
