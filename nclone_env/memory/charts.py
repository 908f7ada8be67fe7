"""Charts of bytes for the page: points and ticks in pixels of a drawing area that the template frames with text.

The area is small enough that the text stays readable on a phone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from nclone_env.memory.formatting import format_bytes

WIDTH, HEIGHT = 384, 196
_TICKS = 4

Point = tuple[float, float]


class Line(NamedTuple):
    """A series of a chart."""

    name: str
    style: str
    """Class of the style sheet: ``first``, ``second``, ``fit`` or ``band``."""
    points: Sequence[Point]
    marks: bool = False
    """Whether to mark the points."""


class Chart(NamedTuple):
    """Axes and series, in pixels from the upper left corner of the drawing area."""

    caption: str
    x_name: str
    x_ticks: Sequence[tuple[float, str]]
    y_ticks: Sequence[tuple[float, str]]
    lines: Sequence[Line]


def chart(caption: str, x_name: str, lines: Sequence[Line], signed: bool = False) -> Chart:
    """Draw series of bytes.

    Args:
        caption: text above the chart.
        x_name: name of the horizontal axis.
        lines: series of (x, bytes).
        signed: the bytes are changes; otherwise the vertical axis begins at 0.
    """
    points = [point for line in lines for point in line.points]
    x_low, x_high = _span([x for x, _ in points])
    y_low, y_high = _span([y for _, y in points] + [0.0] * (not signed))

    def across(x: float) -> float:
        return round((x - x_low) / (x_high - x_low) * WIDTH, 1)

    def down(y: float) -> float:
        return round((y_high - y) / (y_high - y_low) * HEIGHT, 1)

    unit = 1024 ** max(0, int(math.log(max(abs(y_low), abs(y_high)), 1024)))  # round numbers of the larger bound's unit
    sizes = [tick * unit for tick in ticks(y_low / unit, y_high / unit)]
    return Chart(
        caption,
        x_name,
        [(across(tick), f"{tick:,.0f}") for tick in ticks(x_low, x_high)],
        [(down(size), format_bytes(size, sign=signed and size != 0)) for size in sizes],
        [line._replace(points=[(across(x), down(y)) for x, y in line.points]) for line in lines],
    )


def ticks(low: float, high: float) -> list[float]:
    """Return round numbers between two bounds, about four of them."""
    raw = (high - low) / _TICKS
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= raw)
    first = math.ceil(low / step)
    return [number * step for number in range(first, math.floor(high / step) + 1)]


def _span(values: Sequence[float]) -> tuple[float, float]:
    """Return bounds around values with a margin, never equal."""
    low, high = min(values), max(values)
    margin = max((high - low) * 0.04, 1.0)
    return (low if low == 0 else low - margin), high + margin
