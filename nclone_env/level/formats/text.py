'''The text format of level files: TOML with a picture of the tiles and a list of the entities.

::

    format = 1
    title = "an example"
    author = "me"
    level_id = 7
    game_mode = "solo"
    tiles = """
    ..........................................     23 lines of 42 tile characters
    """
    entities = """
    ninja 66 26
    one_way 40 80 6
    zap_drone 14 14 2 1
    """

A tile is a character (physics 01, section 2.3), an entity a line: ``name x y [orientation] [mode]``. ``x`` and ``y``
are in units of 6 pixels of the bordered level. Orientation and mode are 0 if left out. Blank lines and everything after
a ``#`` are ignored. The first entity is the ninja; exits, doors and their switches are in the order that
:mod:`nclone_env.level.level` requires.

:func:`format_text` writes the canonical form: all keys in this order (``level_id`` only if there is one), no comments,
trailing zeros left out. A file in canonical form is read and written back unchanged.

Of TOML the format has only lines of one plain key with a string or a number. Tables, arrays and dotted keys are refused
before the TOML parser sees them: its time grows with the square of the parts of a dotted key.
'''

import difflib
import re
import tomllib
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from nclone_env.errors import LevelFormatError, shortened
from nclone_env.game import MAX_TILE, TILE_COLUMNS, TILE_ROWS, kind_name
from nclone_env.level.formats.map_bytes import GAME_MODE_NAMES, GAME_MODES, check_header, header_fault
from nclone_env.level.level import MAX_RECORDS, MAX_TYPE, UNPUBLISHED, RawLevel, Record, writing_fault

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

FORMAT = 1
KEYS: dict[str, type] = {
    "format": int,
    "title": str,
    "author": str,
    "level_id": int,
    "game_mode": str,
    "tiles": str,
    "entities": str,
}
REQUIRED_KEYS = ("format", "title", "tiles", "entities")

MAX_SIZE = 1 << 20
"""Characters; the largest level is smaller."""

_TYPE_NAMES = {int: "a whole number", str: "a string"}
_LONGEST_KEY, _LONGEST_VALUE = 64, 20_000
_STRINGS = (  # no position is tried twice; Python 3.11.2 fails with possessive groups
    r'"""[^"\\]*+(?:(?:\\.|"(?!""))[^"\\]*+)*"{3,5}',
    r"'''[^']*+(?:'(?!'')[^']*+)*'{3,5}",
    r'"[^"\\\n]*+(?:\\.[^"\\\n]*+)*"',
    r"'[^'\n]*+'",
)
_BLANK = r"[ \t]*+(?:#[^\n]*+)?\r?+(?:\n|\Z)"
_VALUE = rf"(?:{'|'.join(_STRINGS)}|[^\s#\[\]{{}}\"',]{{1,{_LONGEST_VALUE}}}+)"
_KEY = rf"""[ \t]*+(?:[\w-]{{1,{_LONGEST_KEY}}}+|(["'])[^"'\\\n]{{0,{_LONGEST_KEY}}}+\1)[ \t]*+"""
_LINE = re.compile(rf"{_BLANK}|{_KEY}=[ \t]*+{_VALUE}{_BLANK}", re.DOTALL)


def parse_tiles(lines: Sequence[str], source: str, first: int = 1) -> np.ndarray:
    """Return the tiles of a level, (23, 42) uint8 numbers, from 23 strings of 42 characters."""
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
    """Return the lines of (23, 42) tiles; LevelFormatError if a tile number has no character."""
    unknown = np.argwhere(tiles > MAX_TILE)
    if unknown.size:
        row, column = unknown[0].tolist()
        where = f"tile in column {column + 1}, row {row + 1}"
        expected = f"a tile of 0..{MAX_TILE}, for which text has a character"
        raise LevelFormatError(source, where, expected, str(tiles[row, column]))
    return ["".join(TILE_CHARACTERS[tile] for tile in row) for row in tiles.tolist()]


def parse_entities(lines: Sequence[str], source: str, first: int = 1, word: str = "line") -> np.ndarray:
    """Return the records of a list of entities, (N, 5) uint8, which every level format can hold."""
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


def parse_text(text: str | bytes, source: str = "<text>") -> RawLevel:
    """Read a level from the text of a level file; bytes are UTF-8, with or without a byte order mark."""
    return _parsed(_decoded(text, source) if isinstance(text, bytes) else text, source)


@lru_cache(maxsize=256)
def _parsed(text: str, source: str) -> RawLevel:
    """Parse a text; those that are read again and again, as the built-in levels by each environment, only once."""
    return _Parser(text, source).level()


def format_text(raw: RawLevel) -> str:
    """Return the canonical level file of a level; :func:`parse_text` returns the same level."""
    check_header(raw)
    fault = writing_fault(raw.records)
    if fault:
        raise LevelFormatError(raw.source, f"record {fault.record}", fault.expected, fault.got)
    lines = [f"format = {FORMAT}", f"title = {_quoted(raw.title)}", f"author = {_quoted(raw.author)}"]
    if raw.level_id != UNPUBLISHED:
        lines.append(f"level_id = {raw.level_id}")
    lines.append(f'game_mode = "{GAME_MODE_NAMES[raw.game_mode]}"')
    lines += ['tiles = """', *format_tiles(raw.tiles, raw.source), '"""']
    lines += ['entities = """', *(format_entity(Record(*row)) for row in raw.records.tolist()), '"""', ""]
    return "\n".join(lines)


class _Parser:
    """Parser of one level file; keeps the text so that every error can name its line."""

    def __init__(self, text: str, source: str):
        self.text, self.source = text, source
        self.values = self._toml()

    def level(self) -> RawLevel:
        """Return the level, checking keys, header, tiles and entities in this order."""
        self._check_keys()
        first, lines = self._block("tiles")
        tiles = parse_tiles(lines, self.source, first)
        first, lines = self._block("entities")
        raw = RawLevel(
            tiles=tiles,
            records=parse_entities(lines, self.source, first),
            title=self.values["title"],
            author=self.values.get("author", ""),
            level_id=self.values.get("level_id", UNPUBLISHED),
            game_mode=self._game_mode(),
            source=self.source,
        )
        fault = header_fault(raw)
        if fault:
            raise self._error(self._line_of(fault.field), f"{fault.field} of {fault.expected}", fault.got)
        return raw

    def _toml(self) -> dict[str, Any]:
        self._check_lines()
        try:
            return tomllib.loads(self.text)
        except (ValueError, RecursionError) as error:  # huge numbers and deep nesting are no TOMLDecodeError
            place = re.search(r"\(at line (\d+), column \d+\)", str(error))
            line = int(place[1]) if place else self.text.count("\n") + 1
            raise self._error(line, "TOML", str(error) or "nesting too deep") from error

    def _check_lines(self) -> None:
        """Refuse what the format has no use for: long files, tables, arrays and dotted keys."""
        if len(self.text) > MAX_SIZE:
            raise self._error(1, f"at most {MAX_SIZE} characters", str(len(self.text)))
        place = 0
        while place < len(self.text):
            match = _LINE.match(self.text, place)
            if match is None:
                got = shortened(self.text[place : place + 100].partition("\n")[0])
                line = self.text.count("\n", 0, place) + 1
                raise self._error(line, "TOML of the form key = value, with a string or a number", got)
            place = match.end()

    def _check_keys(self) -> None:
        unknown = next((key for key in self.values if key not in KEYS), None)
        if unknown is not None:
            raise self._error(self._line_of(unknown), f"one of the keys {', '.join(KEYS)}", shortened(unknown))
        for key in REQUIRED_KEYS:
            if key not in self.values:
                raise self._error(self.text.count("\n") + 1, f"the key {key!r} somewhere in the file", "none")
        for key, value in self.values.items():
            if type(value) is not KEYS[key]:
                raise self._error(self._line_of(key), f"{_TYPE_NAMES[KEYS[key]]} for {key!r}", shortened(value))
            if isinstance(value, int) and value.bit_length() > 64:  # Python refuses to print the longest ones
                raise self._error(self._line_of(key), f"a number of at most 64 bits for {key!r}", "a longer one")
        if self.values["format"] != FORMAT:
            got = shortened(self.values["format"])
            raise self._error(self._line_of("format"), f"format {FORMAT}, the only one there is", got)

    def _game_mode(self) -> int:
        mode = self.values.get("game_mode", "solo")
        if mode not in GAME_MODES:
            raise self._error(self._line_of("game_mode"), f"one of {', '.join(GAME_MODES)}", shortened(mode))
        return GAME_MODES[mode]

    def _block(self, key: str) -> tuple[int, list[str]]:
        """Return the lines of a multi-line string, and the number of its first line in the file."""
        rows = self.values[key].split("\n")
        if rows[-1].strip() == "":
            rows.pop()
        opened = re.search(rf"^[ \t]*{key}[ \t]*=[ \t]*(\"\"\"|''')\r?\n", self.text, re.MULTILINE)
        return self._line_of(key) + (1 if opened else 0), rows

    def _line_of(self, key: str) -> int:
        """Return the number of the line that sets a key; 1 if the regular expression does not find it."""
        found = re.search(rf"^[ \t]*[\"'\[]*{re.escape(key)}[\"']?[ \t]*[=.\]]", self.text, re.MULTILINE)
        return self.text.count("\n", 0, found.end()) + 1 if found else 1

    def _error(self, line: int, expected: str, got: str) -> LevelFormatError:
        return LevelFormatError(self.source, f"line {line}", expected, got)


def _decoded(data: bytes, source: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise LevelFormatError(source, f"line {line}", "UTF-8 text", f"byte {data[error.start]:#04x}") from error


def _quoted(text: str) -> str:
    """Return a TOML string; a printable text needs only its quotes and backslashes escaped."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
