"""A part of the report: its rows and charts, and the format of what they contain.

Charts of bytes are points and ticks in pixels of a drawing area that the template of the page frames with text. The
area is small enough that the text stays readable on a phone.
"""

from __future__ import annotations

import math
import os
import sysconfig
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

from nclone_env._table import format_bytes as format_bytes
from nclone_env._table import is_numeric, table

Row = Sequence[str]
Point = tuple[float, float]
WIDTH, HEIGHT = 384, 196
"""Of the drawing area of a chart."""
_TICKS = 4
_LOCATION_WIDTH = 56
_PACKAGE_FOLDER = Path(__file__).parents[2]


class Section(NamedTuple):
    """A part of the report; one without rows was not measured."""

    title: str
    rows: Sequence[Row]
    columns: Row = ()
    """Titles of the columns; empty: each row is a name and a text."""
    notes: Sequence[str] = ()
    """Lines below the rows."""
    shares: Sequence[float] = ()
    """Length of the bar behind each row, 0..1, in HTML; empty: no bars."""
    charts: Sequence[Chart] = ()
    """Pictures above the rows, in HTML."""

    def sides(self) -> list[str]:
        """Return the class of each column in HTML: ``number`` if it is aligned on the right, else nothing."""
        _, *others = zip_longest(self.columns, *self.rows, fillvalue="")
        return ["", *("number" if is_numeric(cells) else "" for _, *cells in others)]


def text_of(sections: Iterable[Section]) -> str:
    """Return sections as text, with an empty line between two."""
    return "\n\n".join("\n".join(_lines(section)) for section in sections)


def _lines(section: Section) -> Iterator[str]:
    yield section.title
    if section.columns:
        titles, *lines = table(section.columns, section.rows)
        lines = [titles, "-" * max(map(len, (titles, *lines))), *lines, *("",) * bool(section.notes)]
    else:
        width = max(len(name) for name, _ in section.rows)
        lines = [f"{name:<{width}}  {text}" for name, text in section.rows]
    yield from (f"  {line}".rstrip() for line in (*lines, *section.notes))


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
    """Draw series of (x, bytes), or of changes of bytes if ``signed``; otherwise the vertical axis begins at 0."""
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


def format_seconds(seconds: float) -> str:
    """Format a time with a unit: us, ms or s, three significant digits."""
    for factor, unit in ((1e6, "us"), (1e3, "ms")):
        if abs(seconds) * factor < 1000:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds:.3g} s"


def location(place: str) -> str:
    """Return ``file:line`` relative to the folder of installed packages, truncated on the left."""
    for folder in (sysconfig.get_path("purelib"), sysconfig.get_path("stdlib"), str(_PACKAGE_FOLDER)):
        if place.startswith(folder + os.sep):
            place = place[len(folder) + 1 :]
            break
    return place if len(place) <= _LOCATION_WIDTH else "..." + place[3 - _LOCATION_WIDTH :]
