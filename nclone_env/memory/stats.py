"""Statistics: pure functions from a Recording to Stats, plain data that a reporter prints.

Sizes are bytes, rates are bytes per 1,000 steps of the whole batch.
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

STANDARD_ERRORS = 3.0  # a slope within so many standard errors of zero is noise
TRACED_FLOOR = 2 * 1024  # bytes over the kept steps that caches and free lists of Python may move
RESIDENT_FLOOR = 128 * 1024  # bytes over the kept steps: 32 pages, allocators grow by arenas
FEWEST_SNAPSHOTS = 4
TOP_LINES = 15
TOP_FUNCTIONS = 30
LEAST_SHARE = 0.001  # of the profiled time; functions below it are not listed


@dataclass(frozen=True)
class OwnerRow:
    """One owner of memory in the tree that the environments report."""

    depth: int
    name: str
    shared_bytes: int
    """Bytes of this owner and its parts that all environments share."""
    environment_bytes: int
    """Bytes of this owner and its parts that grow with the number of environments, for all of them."""
    per_env_bytes: float
    """``environment_bytes`` of one environment."""


@dataclass(frozen=True)
class Share:
    """A named part of the resident memory."""

    name: str
    share_bytes: int
    how: str


@dataclass(frozen=True)
class Accounting:
    """Measured memory set against what can be accounted for.

    A byte is accounted for by an object that reports it, or by the PSS that a stage before the first
    environment added.
    """

    parts: tuple[Share, ...]
    """The stages before the environments, and what the environments report."""
    measured_bytes: int
    """PSS when the environments stood."""
    environments_measured_bytes: int
    """PSS that the environments added."""
    accounted_bytes: int
    unaccounted_bytes: int
    """Measured minus accounted; negative if reported memory was not newly resident."""


@dataclass(frozen=True)
class Growth:
    """A least-squares line through one quantity over the snapshots after the warm-up, and what it says."""

    quantity: str
    snapshots: int
    first_step: int
    last_step: int
    slope: float
    """Bytes per 1,000 steps."""
    margin: float
    """Bytes per 1,000 steps that noise may explain: the larger of ``error_margin`` and ``floor_margin``."""
    error_margin: float
    """Three standard errors of the slope."""
    floor_margin: float
    """The fixed floor, spread over the steps kept."""
    first_half_slope: float
    second_half_slope: float
    verdict: Verdict


@dataclass(frozen=True)
class GrownLine:
    """A line of source whose live memory grew between the first snapshot after warm-up and the last."""

    file: str
    line: int
    grown_bytes: int
    grown_blocks: int


@dataclass(frozen=True)
class Speed:
    """Environment steps per second (steps times environments, restarts included)."""

    plain: float
    profiled: float


@dataclass(frozen=True)
class Stats:
    """Everything the report says."""

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
    """Return one row for each node of the tree, parents first."""
    rows = []
    for depth, node in root.walk():
        own = node.bytes_where(shared=False)
        rows.append(OwnerRow(depth, _owner_name(node), node.bytes_where(shared=True), own, own / num_envs))
    return tuple(rows)


def _owner_name(node: MemoryNode) -> str:
    return f"{node.name} (mapped file)" if node.mapped else node.name


def accounting(recording: Recording) -> Accounting:
    """Set the PSS when the environments stood against the stages before them and what they report."""
    shares, before = [], 0
    for stage in recording.stages:
        if stage.name != ENVIRONMENTS:
            shares.append(Share(stage.name, stage.pss_bytes - before, stage.how))
            before = stage.pss_bytes
    shares.append(Share(ENVIRONMENTS, recording.memory.total_bytes, "sum of what their owners report"))
    measured = next(stage.pss_bytes for stage in recording.stages if stage.name == ENVIRONMENTS)
    accounted = sum(share.share_bytes for share in shares)
    return Accounting(tuple(shares), measured, measured - before, accounted, measured - accounted)


def growth(quantity: str, points: Sequence[tuple[int, int]], warm_up: int, floor_bytes: int) -> Growth:
    """Fit a line through (step, bytes) from the warm-up on and judge it.

    Growing means: the slope exceeds the margin, and each half of the snapshots alone rises by more than the
    floor's rate, so that a single jump is not taken for growth. Fewer than four snapshots leave it undecided.
    """
    kept = np.array([point for point in points if point[0] >= warm_up], dtype=np.float64).reshape(-1, 2)
    if len(kept) < FEWEST_SNAPSHOTS:
        last = int(kept[-1, 0]) if len(kept) else warm_up
        return Growth(quantity, len(kept), warm_up, last, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, "undecided")
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
    """Return slope and its standard error of the line through (n,) float64 points; the error is 0 for two."""
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
    """Return the functions with the most time in ``field``, without those below a thousandth of ``whole``."""
    worth = [item for item in functions if getattr(item, field) >= LEAST_SHARE * whole]
    return tuple(sorted(worth, key=lambda item: -getattr(item, field))[:TOP_FUNCTIONS])
