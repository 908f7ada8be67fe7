"""A part of the report, and its text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import NamedTuple

from nclone_env._table import is_numeric, table
from nclone_env.memory.charts import Chart

Row = Sequence[str]


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
