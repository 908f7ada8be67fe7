"""Tiles and entities as text.

A tile is a character (physics 01, section 2.3), an entity a line: ``name x y [orientation] [mode]``. ``x`` and ``y``
are in units of 6 pixels of the bordered level. Orientation and mode are 0 if left out. Blank lines and everything after
a ``#`` are ignored.
"""

import difflib
import re
from collections.abc import Sequence

import numpy as np

from nclone_env.errors import LevelFormatError, shortened
from nclone_env.game import MAX_TILE, TILE_COLUMNS, TILE_ROWS, kind_name
from nclone_env.level.level import Record
from nclone_env.level.records import MAX_RECORDS, MAX_TYPE, writing_fault

_CORNERS = ("top-left", "top-right", "bottom-right", "bottom-left")
_CORNER_GROUPS = (  # characters and name of each group of four, by the corner that is solid
    ("abcd", "45 degree slope"),
    ("efgh", "quarter moon"),
    ("ijkl", "quarter pipe"),
    ("mnop", "short mild slope"),
    ("qrst", "raised mild slope"),
    ("ABCD", "short steep slope"),
    ("EFGH", "raised steep slope"),
)
_SIDES = ("top", "right", "bottom", "left")

TILES: tuple[tuple[str, str], ...] = (
    (".", "empty"),
    ("#", "full block"),
    *((character, f"half block, {side}") for character, side in zip("^>_<", _SIDES)),
    *(
        (character, f"{name}, {corner}")
        for characters, name in _CORNER_GROUPS
        for character, corner in zip(characters, _CORNERS)
    ),
    *((character, f"glitched, {side} edge only") for character, side in zip("1234", _SIDES)),
)
"""Character and description by tile number 0..37; sides and corners name the solid part."""

TILE_CHARACTERS = "".join(character for character, _ in TILES)
TILE_NUMBERS = {character: number for number, character in enumerate(TILE_CHARACTERS)}
_ENTITY_TYPES = {kind_name(kind): kind for kind in range(MAX_TYPE + 1)}


def parse_tiles(lines: Sequence[str], source: str, first: int = 1) -> np.ndarray:
    """Return the tiles of a level, (23, 42) uint8 numbers, from 23 strings of 42 characters.

    Raises:
        LevelFormatError: at the first error; the message names the line.
    """
    tiles = np.zeros((TILE_ROWS, TILE_COLUMNS), np.uint8)
    for row, line in enumerate(lines[:TILE_ROWS]):
        where = f"line {first + row}"
        if len(line) != TILE_COLUMNS:
            raise LevelFormatError(source, where, f"{TILE_COLUMNS} tiles", f"{len(line)}: {shortened(line)}")
        unknown = next((column for column, tile in enumerate(line) if tile not in TILE_NUMBERS), None)
        if unknown is not None:
            expected = f"a tile, one of {TILE_CHARACTERS}, in column {unknown + 1}"
            raise LevelFormatError(source, where, expected, repr(line[unknown]))
        tiles[row] = [TILE_NUMBERS[tile] for tile in line]
    if len(lines) != TILE_ROWS:
        where = f"line {first + min(len(lines), TILE_ROWS)}"
        raise LevelFormatError(source, where, f"{TILE_ROWS} lines of tiles", str(len(lines)))
    return tiles


def format_tiles(tiles: np.ndarray, source: str) -> list[str]:
    """Return the lines of (23, 42) tiles.

    Raises:
        LevelFormatError: if a tile number has no character.
    """
    unknown = np.argwhere(tiles > MAX_TILE)
    if unknown.size:
        row, column = unknown[0].tolist()
        where = f"tile in column {column + 1}, row {row + 1}"
        expected = f"a tile of 0..{MAX_TILE}, for which text has a character"
        raise LevelFormatError(source, where, expected, str(tiles[row, column]))
    return ["".join(TILE_CHARACTERS[tile] for tile in row) for row in tiles.tolist()]


def parse_entities(lines: Sequence[str], source: str, first: int = 1, word: str = "line") -> np.ndarray:
    """Return the records of a list of entities, (N, 5) uint8, which every level format can hold.

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
