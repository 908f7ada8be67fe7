"""What is judged of a run: the growth of each quantity over its snapshots, and the verdict that follows from it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Literal

import numpy as np

from nclone_env.memory.measurements import TIME_UNIT, Measurements

Verdict = Literal["flat", "growing", "undecided"]

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
ARENA = 1024**2
"""Bytes by which resident memory may vary where Python takes memory beside what is judged: an arena of its allocator is
committed page by page."""
_OWNED_SHARE = 0.01
"""Share of the reported bytes by which they may vary: memory for final observations follows the episodes that end."""
_ENDING = 3  # snapshots
_SHORTEST = 1000.0
"""Milliseconds of a run without counted steps below which there is no verdict."""
Points = list[tuple[float, int]]
"""Step, or milliseconds, and bytes of each snapshot."""


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
    quantity: str, points: Sequence[tuple[float, int]], warm_up: float, floor_bytes: int, slowed: bool = False
) -> Growth:
    """Fit (step, bytes) of the snapshots from ``warm_up`` on and derive a verdict.

    It is undecided with fewer than ``MIN_SNAPSHOTS`` snapshots, or if growth is not steady. ``floor_bytes`` is the
    variation over the fitted steps that means nothing; ``slowed`` tells that growth slowed down before ``warm_up``.
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
    """Take out the sudden rises of a series, (n,) float64 each, unless there are many of the same order.

    Single points apart from their neighbours are no rises. Return the series in which each jump rises at the median
    rate, and the number of jumps of at least a quarter of the largest one; those between adjacent points are one.
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


def growths_of(measured: Measurements) -> tuple[Growth, ...]:
    """Return the growth of every quantity that was measured."""
    found, floors = series(measured), {**measured.floors}
    if "owners" in found:
        floors["owners"] = int(_OWNED_SHARE * found["owners"][-1][1])
    shortest = _SHORTEST if measured.unit == TIME_UNIT else 0.0
    growths = []
    for name, points in found.items():
        first, last = judged_steps(measured, name)
        judged = [point for point in points if point[0] <= last] if last - first >= shortest else []
        growths.append(growth(name, judged, first, floors[name]))
    return tuple(growths)


def judged_steps(measured: Measurements, quantity: str = "process") -> tuple[float, float]:
    """Return the first and the last step whose snapshots are judged; those of lines are judged as ``traced``."""
    if measured.tracing is not None and quantity == "traced":
        return measured.tracing
    settings = measured.settings
    first, last = measured.judged or (settings.warm_up_steps, settings.steps)
    return first, min([last, *(points[-1][0] for points in _whole(measured, series(measured)).values())])


def _whole(measured: Measurements, found: dict[str, Points]) -> dict[str, Points]:
    """Return the quantities that were measured until the end."""
    return {name: points for name, points in found.items() if measured.tracing is None or name != "traced"} or found


def series(measured: Measurements) -> dict[str, Points]:
    """Return the quantities that were measured: (step, bytes) of each snapshot by name.

    Resident memory is judged without the arrays of owners: that their pages are committed one by one is no growth, and
    that they become larger shows in what the owners report.
    """
    snapshots = measured.snapshots
    found = {
        "native": [(item.step, item.native_bytes) for item in snapshots],
        "process": [(item.step, item.data_bytes - item.committed_bytes) for item in snapshots],
        "workers": [(item.step, item.worker_bytes) for item in snapshots],
        "owners": [(item.step, item.owned_bytes) for item in snapshots],
    }
    known = {name: points for name, points in found.items() if any(size > 0 for _, size in points)}
    traced = [(item.step, item.traced_bytes) for item in measured.traced]
    found = {"traced": traced, **known} if traced else known
    if measured.unit != TIME_UNIT or not found:
        return found
    end = min(_end(points, measured.floors.get(name, ARENA)) for name, points in _whole(measured, found).items())
    return {name: [point for point in points if point[0] <= end] for name, points in found.items()}


def _end(points: Points, floor: int) -> float:
    """Return the last snapshot of a program before those at its end where most of what it took is freed."""
    first, most = points[0][1], max(size for _, size in points)
    freed = takewhile(lambda point: most - point[1] > max(floor, point[1] - first), reversed(points[-_ENDING:]))
    count = sum(1 for _ in freed)
    return points[max(-count - 2, -len(points)) if count else -1][0]  # the one before may be of the same moment


def growing_alone(growths: Sequence[Growth]) -> dict[str, Growth]:
    """Return what grows by its name; without native memory that is blocks of larger objects of Python."""
    growing = {item.quantity: item for item in growths if item.verdict == "growing"}
    if "native" in growing and "traced" in growing and growing["traced"].slope > growing["native"].slope / 2:
        del growing["native"]
    return growing
