"""Tables as text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_NUMBER = re.compile(r"([-+]?(\d|nan).*|-?)")


def table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Format a table: numbers are aligned on the right, the first column and words on the left.

    Args:
        titles: of the columns.
        rows: cells of each row; those that a row lacks at its end are empty.

    Returns:
        The titles, then a line for each row.
    """
    filled = [[*row, *("",) * (len(titles) - len(row))] for row in rows]
    columns = list(zip(titles, *filled))
    widths = [max(map(len, column)) for column in columns]
    sides = ["<", *(">" if is_numeric(cells) else "<" for _, *cells in columns[1:])]
    cells = ([f"{cell:{side}{width}}" for cell, side, width in zip(row, sides, widths)] for row in (titles, *filled))
    return ["  ".join(row).rstrip() for row in cells]


def is_numeric(cells: Iterable[str]) -> bool:
    """Return whether all cells begin like numbers, or stand for none: ``-`` or nothing."""
    return all(map(_NUMBER.fullmatch, cells))
