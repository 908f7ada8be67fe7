"""Formatting of bytes, times and places for the reports."""

from __future__ import annotations

import os
import sysconfig
from pathlib import Path

_LOCATION_WIDTH = 56
_PACKAGE_FOLDER = Path(__file__).parents[2]


def format_bytes(count: float, sign: bool = False) -> str:
    """Format a number of bytes with a binary unit: B, KB (one decimal), MB or GB (two decimals).

    Args:
        count: bytes.
        sign: prefix non-negative numbers with a plus sign.
    """
    value, unit = abs(count), "B"
    if value < 0.05:
        return "0 B"
    for larger in ("KB", "MB", "GB"):
        if value < 1023.95:
            break
        value, unit = value / 1024, larger
    places = {"B": int(abs(value - round(value)) >= 0.05), "KB": 1}.get(unit, 2)
    digits = f"{value:,.{places}f}"
    prefix = "-" if count < 0 else "+" if sign else ""
    return f"{prefix}{digits} {unit}"


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
