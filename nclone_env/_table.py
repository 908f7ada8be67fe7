"""Tables, bars of progress, numbers of bytes and records as text; every kernel is compiled again when it changes."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import Any

_LENGTH = 20
_FEW = 3
"""Items that are shown one by one."""
_NUMBER = re.compile(r"([-+]?(\d|nan).*|-?)")


def table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a table: numbers are aligned on the right, the first column and words on the left.

    Cells that a row lacks at its end are empty.
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


def format_bytes(count: float, sign: bool = False) -> str:
    """Format a number of bytes, with a plus if ``sign``, in B, KB (one decimal), MB or GB (two decimals)."""
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


def bar(share: float) -> str:
    """Return a bar that is filled to a share, 0..1."""
    return f"[{'#' * round(share * _LENGTH):<{_LENGTH}}]"


def outline(record: Any) -> str:
    """Return the ``repr`` of a dataclass with kinds and sizes in the place of arrays and of many items."""
    shown = (f"{field.name}={_outlined(getattr(record, field.name))}" for field in fields(record) if field.repr)
    return f"{type(record).__name__}({', '.join(shown)})"


def _outlined(value: Any) -> str:
    if hasattr(value, "dtype"):
        return f"<{value.dtype} {tuple(value.shape)}>"
    if isinstance(value, tuple | list) and len(value) > _FEW:
        return f"<{len(value):,} {type(value[0]).__name__}>"
    return repr(value)
