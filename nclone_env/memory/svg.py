"""Charts of bytes as SVG, drawn for a width of 480 pixels so that their text stays readable on a phone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from nclone_env.memory.formatting import format_bytes

_WIDTH, _HEIGHT = 480, 240
_LEFT, _RIGHT, _TOP, _BOTTOM = 84, 12, 10, 34
_TICKS = 4

Point = tuple[float, float]


@dataclass(frozen=True)
class Line:
    """A series of a chart."""

    style: str
    """Class of the style sheet: ``first``, ``second``, ``fit`` or ``band``."""
    points: Sequence[Point]
    name: str = ""
    """For the legend; empty: not named."""
    marks: bool = False
    """Whether to mark the points."""


@dataclass(frozen=True)
class Chart:
    """Axes and series."""

    lines: Sequence[Line]
    x_name: str
    signed: bool = False
    """Whether the bytes on the vertical axis are changes."""
    from_zero: bool = False
    """Whether the vertical axis begins at 0."""

    def svg(self) -> str:
        """Return the chart as an element of HTML."""
        points = [point for line in self.lines for point in line.points]
        x_range = _span([x for x, _ in points])
        y_range = _span([y for _, y in points] + [0.0] * self.from_zero)

        def place(point: Point) -> Point:
            return (
                _scaled(point[0], x_range, _LEFT, _WIDTH - _RIGHT),
                _scaled(point[1], y_range, _HEIGHT - _BOTTOM, _TOP),
            )

        parts = [_grid(y_range, self.signed), _x_axis(x_range, self.x_name)]
        parts += [_drawn(line, [place(point) for point in line.points]) for line in self.lines]
        legend = "".join(f'<span class="{line.style}">{escape(line.name)}</span>' for line in self.lines if line.name)
        picture = f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img">{"".join(parts)}</svg>'
        return f'{picture}<p class="legend">{legend}</p>'


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


def _scaled(value: float, bounds: tuple[float, float], first: float, last: float) -> float:
    low, high = bounds
    return round(first + (value - low) / (high - low) * (last - first), 1)


def _grid(bounds: tuple[float, float], signed: bool) -> str:
    """Return lines at round numbers of bytes, in the unit of the larger bound."""
    unit = 1024 ** max(0, int(math.log(max(map(abs, bounds)), 1024)))
    parts = []
    for tick in ticks(bounds[0] / unit, bounds[1] / unit):
        y = _scaled(tick * unit, bounds, _HEIGHT - _BOTTOM, _TOP)
        text = format_bytes(tick * unit, sign=signed and tick != 0)
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y}" y2="{y}"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{y + 4}" text-anchor="end">{text}</text>')
    return "".join(parts)


def _x_axis(bounds: tuple[float, float], name: str) -> str:
    places = [(_scaled(tick, bounds, _LEFT, _WIDTH - _RIGHT), tick) for tick in ticks(*bounds)]
    labels = "".join(
        f'<text x="{x}" y="{_HEIGHT - _BOTTOM + 15}" text-anchor="middle">{tick:,.0f}</text>' for x, tick in places
    )
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    return labels + f'<text x="{middle}" y="{_HEIGHT - 3}" text-anchor="middle" class="axis">{escape(name)}</text>'


def _drawn(line: Line, points: Sequence[Point]) -> str:
    path = " ".join(f"{x},{y}" for x, y in points)
    if line.style == "band":
        return f'<polygon class="band" points="{path}"/>'
    marks = "".join(f'<circle class="{line.style}" cx="{x}" cy="{y}" r="4"/>' for x, y in points) if line.marks else ""
    return f'<polyline class="{line.style}" points="{path}"/>{marks}'
