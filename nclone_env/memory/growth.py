"""Growth of a quantity over the snapshots of a run, and the verdict that follows from it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

Verdict = Literal["flat", "growing", "undecided"]

WARM_UP_SHARE = 0.2
"""Share of a run during which the first episodes end and caches fill; its snapshots are not fitted."""
PLATEAU = 0.5
"""Growth that falls below this part of its rate from one half to the next is warm-up, too: caches that fill."""
SLOWING = 0.8
"""Growth after a plateau is still filling if it falls below this part of its rate once more."""
ENDED = 0.25
"""Growth that falls below this part of its rate in the last sixth of a run may have ended."""
SUDDEN = 6.0
"""A rise between two snapshots is a jump if it exceeds the median rise by this many of their median deviations."""
FEW_JUMPS = 3
"""Jumps of the same order that may be memory taken once, such as caches or compiled code; more are a leak."""
STEADY = 0.25
"""Share of growth outside of jumps that is a leak in any case: busy machines let a program run in bursts."""
STANDARD_ERRORS = 3.0
"""A slope within this many standard errors of zero is noise."""
MIN_SNAPSHOTS = 5
"""Two halves of three snapshots each, one of them in common."""
FLOORS = {"traced": 2 * 1024, "native": 16 * 1024, "process": 128 * 1024, "workers": 256 * 1024}
"""Bytes by which each quantity may vary over the fitted part of a run without anything growing.

Python's caches and free lists vary by hundreds of bytes, the allocator's caches of each thread by kilobytes, and
resident memory by the pages at the ends of heaps and arenas.
"""
ARENA = 1024**2
"""The same for resident memory where Python takes memory beside what is judged: an arena of its allocator is committed
page by page."""
FREE_LISTS = 24 * 1024
"""The same for traced memory where objects are made and destroyed all the time: free lists and caches, which count as
live, fill ever more slowly."""


@dataclass(frozen=True)
class Growth:
    """Least-squares fit of one quantity over the snapshots after the warm-up, and its verdict.

    Both halves of the snapshots are fitted on their own. ``slope`` is the smaller of the two: memory that leaks grows
    in both, a single jump shows in one. The quantity is flat exactly if ``slope`` does not exceed ``margin``. Where it
    would grow, but slows down, the later half alone is fitted instead: what leaks goes on at its rate. Growth that is
    only two or three jumps, or that may have ended, is undecided.
    """

    quantity: str
    snapshots: int
    first: float
    """Step of the first fitted snapshot."""
    last: float
    slope: float
    """Bytes per 1,000 steps."""
    error: float
    """Three standard errors of the slope, in bytes per 1,000 steps."""
    floor: float
    """Variation that means nothing, divided by the fitted steps, in bytes per 1,000 steps."""
    change: int
    """Bytes from the first fitted snapshot to the last, jumps included."""
    verdict: Verdict

    @property
    def margin(self) -> float:
        """The larger of ``error`` and ``floor``."""
        return max(self.error, self.floor)

    @property
    def rises(self) -> bool:
        """Whether it grew, be it only in a few jumps."""
        return self.verdict != "flat" and self.snapshots >= MIN_SNAPSHOTS


def growth(
    quantity: str,
    points: Sequence[tuple[float, int]],
    warm_up: float,
    floor_bytes: int,
    slowed: bool = False,
) -> Growth:
    """Fit the values of the snapshots from ``warm_up`` on and derive a verdict.

    Args:
        quantity: its name.
        points: (step, bytes) of each snapshot, ascending.
        warm_up: first step to fit, unless growth slows down after it.
        floor_bytes: variation over the fitted steps that means nothing.
        slowed: whether growth has slowed down before ``warm_up``.

    Returns:
        The fit; undecided with fewer than ``MIN_SNAPSHOTS`` snapshots, or if growth is not steady.
    """
    kept = np.array([point for point in points if point[0] >= warm_up], dtype=np.float64).reshape(-1, 2)
    count = len(kept)
    if count < MIN_SNAPSHOTS:
        last = float(kept[-1, 0]) if count else warm_up
        return Growth(quantity, count, warm_up, last, 0.0, 0.0, 0.0, 0, "undecided")
    x, y, middle = kept[:, 0] / 1000.0, kept[:, 1], count // 2
    earlier, later = least_squares(x[: middle + 1], y[: middle + 1]), least_squares(x[middle:], y[middle:])
    slope, error = min(earlier, later)
    floor = floor_bytes / float(x[-1] - x[0])
    verdict: Verdict = "flat"
    if slope > max(STANDARD_ERRORS * error, floor):
        if later[0] < PLATEAU * earlier[0] and count - middle >= MIN_SNAPSHOTS:
            return growth(quantity, points, kept[middle, 0], floor_bytes, slowed=True)
        level, jumps = without_jumps(x, y)
        left = min(least_squares(x[: middle + 1], level[: middle + 1]), least_squares(x[middle:], level[middle:]))
        goes_on = level[-1] - level[0] > STEADY * (y[-1] - y[0])
        is_steady = goes_on or left[0] > max(STANDARD_ERRORS * left[1], floor)
        fills = slowed and later[0] + STANDARD_ERRORS * later[1] < SLOWING * earlier[0]
        if jumps == 1 and not is_steady:
            slope, error = left
        else:
            verdict = "growing" if is_steady and not fills and not may_have_ended(x, level) else "undecided"
    error *= STANDARD_ERRORS
    return Growth(quantity, count, kept[0, 0], kept[-1, 0], slope, error, floor, int(y[-1] - y[0]), verdict)


def without_jumps(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, int]:
    """Take out the sudden rises of a series, unless there are many of the same order.

    Args:
        x: (n,) float64, ascending.
        y: (n,) float64; single points apart from their neighbours are no rises.

    Returns:
        The series, (n,) float64, in which each jump rises at the median rate; and the number of jumps of at least a
        quarter of the largest one. Jumps between adjacent points are one.
    """
    level = y.copy()
    level[1:-1] = _median(np.stack((y[:-2], y[1:-1], y[2:])))
    rates, steps = np.diff(level) / np.diff(x), np.diff(x)
    excess = rates - _median(rates)
    sudden = np.flatnonzero(excess > SUDDEN * _median(np.abs(excess)))
    if not len(sudden):
        return y, 0
    jumps = np.array([excess[part] @ steps[part] for part in np.split(sudden, np.flatnonzero(np.diff(sudden) > 1) + 1)])
    count = int((jumps >= jumps.max() / 4).sum())
    if count > FEW_JUMPS:
        return y, count
    taken = np.zeros(len(y))
    taken[sudden + 1] = excess[sudden] * steps[sudden]
    return y - np.cumsum(taken), count


def _median(values: np.ndarray) -> Any:
    """Return the upper median along the first axis; NumPy's own imports modules, which would be memory that grows."""
    return np.sort(values, axis=0)[len(values) // 2]


def may_have_ended(x: np.ndarray, y: np.ndarray) -> bool:
    """Return whether the last sixth of n points, (n,) float64 each, grows far less than those before it."""
    last = max(3, len(x) // 6)
    before, error = least_squares(x[:-last], y[:-last])
    now, own_error = least_squares(x[-last:], y[-last:])
    spread = float(np.sqrt(np.var(x[:-last]) / np.var(x[-last:]) * (len(x) - last) / last))  # errors of a shorter fit
    return now + STANDARD_ERRORS * max(own_error, error * spread) < ENDED * before


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
    return next((verdict for verdict in order if verdict in found), "undecided")
