"""Formatting of bytes, times and places for the reports."""

from __future__ import annotations

import os
import sysconfig
from pathlib import Path

from nclone_env._table import format_bytes as format_bytes

_LOCATION_WIDTH = 56
_PACKAGE_FOLDER = Path(__file__).parents[2]


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
