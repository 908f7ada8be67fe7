"""Entities as text, one a line: ``name x y [orientation] [mode]``.

``x`` and ``y`` are in units of 6 pixels of the bordered level. Orientation and mode are 0 if left out. Blank lines and
everything after a ``#`` are ignored.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence

import numpy as np

from nclone_env.errors import LevelFormatError, shortened
from nclone_env.kinds import kind_name
from nclone_env.level.raw import Record
from nclone_env.level.records import MAX_RECORDS, MAX_TYPE, writing_fault

_ENTITY_TYPES = {kind_name(kind): kind for kind in range(MAX_TYPE + 1)}


def parse_entities(lines: Sequence[str], source: str, first: int = 1, word: str = "line") -> np.ndarray:
    """Read a list of entities.

    Args:
        lines: the text.

    Returns:
        (N, 5) uint8 records, which every level format can hold.

    Raises:
        LevelFormatError: at the first error; the message names the line.
    """
    words = [(number, line.split("#")[0].split()) for number, line in enumerate(lines, start=first)]
    entities = [(number, line) for number, line in words if line]
    if len(entities) > MAX_RECORDS:
        where = f"{word} {entities[MAX_RECORDS][0]}"
        raise LevelFormatError(source, where, f"at most {MAX_RECORDS} entities", str(len(entities)))
    rows = [_record(line, source, f"{word} {number}") for number, line in entities]
    records = np.array(rows, np.uint8).reshape(-1, 5)
    fault = writing_fault(records)
    if fault:
        places = [f"{word} {number}" for number in (*(number for number, _ in entities), first + len(lines))]
        raise LevelFormatError(source, places[fault.record], _name_places(fault.expected, places), fault.got)
    return records


def format_entity(record: Record) -> str:
    """Return the line of a record; trailing zeros are left out."""
    kind, *values = record
    while len(values) > 2 and values[-1] == 0:
        values.pop()
    return " ".join([kind_name(kind), *map(str, values)])


def _record(words: list[str], source: str, where: str) -> Record:
    if not 3 <= len(words) <= 5:
        raise LevelFormatError(source, where, "name x y [orientation] [mode]", shortened(" ".join(words)))
    name, *numbers = words
    if name not in _ENTITY_TYPES:
        close = difflib.get_close_matches(name, _ENTITY_TYPES, n=1)
        hint = f" (did you mean {close[0]}?)" if close else f" ({', '.join(_ENTITY_TYPES)})"
        raise LevelFormatError(source, where, "the name of an entity" + hint, shortened(name))
    for field, number in zip(Record._fields[1:], numbers):
        if not re.fullmatch(r"[0-9]{1,3}", number) or int(number) > 255:
            raise LevelFormatError(source, where, f"a whole number of 0..255 for {field}", shortened(number))
    return Record(_ENTITY_TYPES[name], *map(int, numbers))


def _name_places(message: str, places: Sequence[str]) -> str:
    """Replace "record 12" by "line 40": authors of a text see lines."""

    def place(match: re.Match[str]) -> str:
        return places[min(int(match[1]), len(places) - 1)]

    return re.sub(r"record (\d+)", place, message)
