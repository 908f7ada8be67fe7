"""What is judged of a run: how far each quantity rises over its snapshots, and the verdict that follows from it.

The theory is the page docs/operation/verdicts.md; its terms are the names below, and it derives the constants.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Literal

import numpy as np

from nclone_env.memory.measure.measurements import ARENA, TIME_UNIT, WARM_UP_SHARE, Measurements

Verdict = Literal["flat", "growing", "undecided"]

PARTS, MIN_SNAPSHOTS, RISES, FALLS = 16, 5, 5, 3
_GOES_ON = 0.25  # of the growth is in the last third of the run if it goes on
_SLOWING, _CHANCE = 0.87, 2.33  # rate in the last third by that in all of it; standard errors of the rates' trend
_ENDED = 0.25  # of a rise is left at most after a part with the rest of it was taken off
_FACTORS, _BLUR = (1.25, 4.0), 2.0  # by which containers grow; snapshots blur it: equal ones are within a factor
_OWNED_SHARE = 0.01
"""Share of the reported bytes by which they may vary: memory for final observations follows the episodes that end."""
_ENDING = 3  # snapshots
_SHORTEST = 1000.0  # milliseconds
Points = list[tuple[float, int]]
"""Step, or milliseconds, and bytes of each snapshot."""


@dataclass(frozen=True)
class Growth:
    """What one quantity did over the snapshots that were judged, and its verdict."""

    quantity: str
    snapshots: int
    first: float
    """Step of the first snapshot that is judged."""
    last: float
    """Step at which the last part begins."""
    slope: float
    """Bytes per 1,000 steps: ``change`` over the steps, whether it came steadily or in jumps."""
    error: float
    """Three times the largest fall, in bytes per 1,000 steps."""
    floor: float
    """Variation that means nothing, divided by the steps, in bytes per 1,000 steps."""
    change: int
    """Bytes that are kept in the last part beyond those kept in the first."""
    verdict: Verdict
    since: float = 0.0
    """Step after which no more than noise was taken; of growth that goes on the last one."""
    before: int = 0
    """Bytes of a rise that ended in the first half of the run, before ``first``."""

    @property
    def margin(self) -> float:
        """The slope of a steady leak that would have shown."""
        return self.error + self.floor

    @property
    def rises(self) -> bool:
        """Whether it grew, be it only in a few jumps."""
        return self.verdict != "flat" and self.snapshots >= MIN_SNAPSHOTS


def growth(quantity: str, points: Sequence[tuple[float, int]], warm_up: float, floor_bytes: float) -> Growth:
    """Judge (step, bytes) of the snapshots from ``warm_up`` on.

    ``floor_bytes`` is the variation that means nothing. What is before the warm-up counts only where a container
    doubles: of its few rises one or two lie there.
    """
    all_x, all_y = np.array(points, dtype=np.float64).reshape(-1, 2).T
    x, y = all_x[all_x >= warm_up], all_y[all_x >= warm_up]
    if len(x) < MIN_SNAPSHOTS:
        last = float(x[-1]) if len(x) else warm_up
        return Growth(quantity, len(x), warm_up, last, 0.0, 0.0, 0.0, 0, "undecided")
    places, levels = kept_levels(x, y)
    rise, fell = levels[-1] - levels[0], largest_fall(levels)
    kept = np.minimum.accumulate(y[::-1])[::-1]
    since = x[np.flatnonzero(levels[-1] - kept <= floor_bytes + fell)[0]]
    half = all_x[0] + (x[-1] - all_x[0]) / 2
    later, verdict = x >= half, "undecided"
    if is_flat(x, y, floor_bytes):
        if later.sum() >= MIN_SNAPSHOTS and not is_flat(x[later], y[later], floor_bytes):  # it rose since it fell
            return replace(growth(quantity, points, x[later][0], floor_bytes), verdict="undecided")
        verdict = "flat"
    elif (start := _end_of_rise(x, y, x[(x >= since) & (x <= half)], floor_bytes)) is not None:
        found = growth(quantity, points, start, floor_bytes)
        return replace(found, before=int(rise) - found.change)
    elif goes_on(places, levels, floor_bytes + FALLS * fell) or doubles(all_x, all_y, floor_bytes + fell):
        verdict, since = "growing", places[-1]
    span = float(places[-1] - places[0]) / 1000
    return Growth(
        quantity,
        snapshots=len(x),
        first=float(x[0]),
        last=float(places[-1]),
        slope=float(rise) / span,
        error=FALLS * fell / span,
        floor=floor_bytes / span,
        change=int(rise),
        verdict=verdict,  # type: ignore[arg-type]
        since=float(since),
    )


def kept_levels(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the first x and the least y, (m,) float64 each, of each of ``PARTS`` equal parts with snapshots."""
    part = np.minimum((x - x[0]) * (PARTS / (x[-1] - x[0])), PARTS - 1).astype(int)
    first = np.flatnonzero(np.diff(part, prepend=-1))
    return x[first], np.minimum.reduceat(y, first)


def largest_fall(y: np.ndarray) -> float:
    """Return by how much a series, (n,) float64, fell most below an earlier value."""
    return float((np.maximum.accumulate(y) - y).max())


def is_flat(x: np.ndarray, y: np.ndarray, floor_bytes: float) -> bool:
    """Return whether n points, (n,) float64 each, end no higher than they begin but for the floor and their falls."""
    _, levels = kept_levels(x, y)
    return all(series[-1] - series[0] <= floor_bytes + largest_fall(series) for series in (levels, y))


def _end_of_rise(x: np.ndarray, y: np.ndarray, places: np.ndarray, floor_bytes: float) -> float | None:
    """Return the first place from which on points are flat, with little left of their rise; None if there is none."""
    whole = np.ptp(kept_levels(x, y)[1][[0, -1]])
    for place in places:
        rest = x >= place
        if rest.sum() < MIN_SNAPSHOTS:
            break
        _, levels = kept_levels(x[rest], y[rest])
        if is_flat(x[rest], y[rest], floor_bytes) and levels[-1] - levels[0] <= _ENDED * whole:
            return float(place)
    return None


def goes_on(x: np.ndarray, levels: np.ndarray, margin: float) -> bool:
    """Return whether levels, (m,) float64 each, rise by more than the margin, in many places, and until the end."""
    widths, kept = np.diff(x), np.minimum.accumulate(levels[::-1])[::-1]
    rates = np.diff(kept) / widths
    half, usual = max(RISES, (len(rates) + 1) // 2), 0.0
    for usual in np.sort(rates)[::-1]:
        is_rise = rates >= usual
        apart = np.count_nonzero(np.diff(is_rise.astype(int), prepend=0) == 1)
        if is_rise.sum() >= half or apart >= RISES:
            break
    grown = widths * np.minimum(rates, usual)
    is_last = x[1:] > x[0] + (x[-1] - x[0]) * 2 / 3
    later = slice(len(rates) // 2, None)  # beside a leak a cache is full by then
    slows = _trend(rates) < -_CHANCE and max(_last_rate(x, kept), _last_rate(x[later], kept[later])) < _SLOWING
    return bool(grown.sum() > margin and grown[is_last].sum() >= _GOES_ON * grown.sum() and not slows)


def _last_rate(x: np.ndarray, kept: np.ndarray) -> float:
    """Return the rate at which points, (m,) float64 each, rise in the last third of the time, by that in all of it."""
    rise = float(kept[-1] - kept[0])
    return 3 * float(kept[-1] - np.interp(x[-1] - (x[-1] - x[0]) / 3, x, kept)) / rise if rise else 1.0


def _trend(rates: np.ndarray) -> float:
    """Return by how many standard errors rates, (n,) float64, rise with their places; those of any order by none."""
    places = np.arange(len(rates)) - (len(rates) - 1) / 2
    size = float(np.linalg.norm(rates - rates.mean()) * np.linalg.norm(places))
    return float(places @ rates) * (len(rates) - 1) ** 0.5 / size if size else 0.0


def doubles(x: np.ndarray, y: np.ndarray, least: float) -> bool:
    """Return whether the last three rises of points, (n,) float64 each, are those of a container that doubles."""
    rises = np.diff(np.minimum.accumulate(y[::-1])[::-1])
    steep = np.flatnonzero(rises > least)
    groups = np.split(steep, np.flatnonzero(np.diff(steep) > 1) + 1)[-3:]  # neighbours are one rise
    if len(groups) < 3:
        return False
    sizes = np.array([rises[group].sum() for group in groups])
    waits = np.diff([(x[group[0]] + x[group[-1] + 1]) / 2 for group in groups])
    factors = np.array([*sizes[1:] / sizes[:-1], waits[1] / waits[0]])
    is_due = x[-1] <= x[groups[-1][-1] + 1] + _FACTORS[1] * waits[1]
    is_one = factors.max() <= min(_FACTORS[1], _BLUR * factors.min())
    return bool(is_due and is_one and factors.min() >= _FACTORS[0])


def least_squares(x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Return the slope of the fit to n points, (n,) float64 each, and its standard error (0 for two points)."""
    dx = x - x.mean()
    spread = float(dx @ dx)
    slope = float(dx @ y) / spread
    residual = y - y.mean() - slope * dx
    freedom = len(x) - 2
    return slope, float(residual @ residual / freedom / spread) ** 0.5 if freedom else 0.0


def combined_verdict(growths: Sequence[Growth]) -> Verdict:
    """Return growing if any quantity grows, undecided if any is undecided, else flat."""
    order = ("flat", "undecided", "growing")
    return max((item.verdict for item in growths), key=order.index, default="undecided")


def decided_at(growths: Sequence[Growth], steps: float) -> float:
    """Return the step until which to run for an answer where memory rose and may not go on; 0 if there is none."""
    until = 2 * max((item.since for item in growths if item.verdict == "undecided" and item.rises), default=0.0)
    return until if until > steps or not until else 2 * steps


def growths_of(measured: Measurements) -> tuple[Growth, ...]:
    """Return the growth of every quantity that was measured."""
    found, floors = series(measured), {**measured.floors}
    if "owners" in found:
        floors["owners"] = int(_OWNED_SHARE * found["owners"][-1][1])
    growths = []
    for name, points in found.items():
        first, last = judged_steps(measured, name)
        start = first - (last - first) * WARM_UP_SHARE / (1 - WARM_UP_SHARE)
        inside = [point for point in points if start <= point[0] <= last]
        is_part = name == "traced" and measured.tracing is not None
        is_enough = is_part or last - first >= least_span(measured)
        growths.append(growth(name, inside if is_enough else [], first, floors[name]))
    return tuple(growths)


def least_span(measured: Measurements) -> float:
    """Return the steps that are judged at least: of a run by time a second, and half of it with the warm-up."""
    if measured.unit != TIME_UNIT:
        return 0.0
    ran = measured.settings.steps * (1 - measured.loading) - _SHORTEST
    return max(_SHORTEST, (1 - WARM_UP_SHARE) * ran / 2)


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
        "workers": [(item.step, item.worker_bytes) for item in snapshots if item.worker_bytes >= 0],
        "files": [(item.step, item.shared_file_bytes) for item in snapshots],
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
    last = -1 - sum(1 for _ in freed)
    if -len(points) < last < -1 and most - points[last][1] > floor:  # taken while memory was being freed
        last -= 1
    return points[max(last, -len(points))][0]


def growing_alone(growths: Sequence[Growth], undecided: bool = False) -> dict[str, Growth]:
    """Return what grows by its name; without native memory that is blocks of larger objects of Python.

    ``undecided`` includes what rose and may not go on.
    """
    growing = {item.quantity: item for item in growths if item.verdict == "growing" or (undecided and item.rises)}
    if "native" in growing and "traced" in growing and growing["traced"].slope > growing["native"].slope / 2:
        del growing["native"]
    return growing
