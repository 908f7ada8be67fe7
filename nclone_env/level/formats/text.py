'''The text format of level files: TOML with a picture of the tiles and a list of the entities.

::

    format = 1
    title = "an example"
    author = "somebody"
    level_id = 7
    game_mode = "solo"
    tiles = """
    ..........................................     23 lines of 42 characters, see nclone_env.level.tiles
    """
    entities = """
    ninja 66 26
    one_way 40 80 6
    zap_drone 14 14 2 1
    """

One line an entity: name, x, y, orientation, mode; x and y in units of 6 pixels of the bordered level.
Orientation and mode are 0 where they are left out. The first is the ninja; switches follow the rules of
:mod:`nclone_env.level.records`. Blank lines and what follows a ``#`` are ignored in the list of entities.

The canonical form is what :func:`format_text` writes: all keys in this order (``level_id`` only if there is
one), no comments, trailing zeros left out. On it, reading and writing are inverse to each other.
'''

from __future__ import annotations

import difflib
import re
import tomllib
from typing import Any

import numpy as np

from nclone_env.constants import MAX_TILE, TILE_COLUMNS, TILE_ROWS
from nclone_env.errors import LevelFormatError
from nclone_env.level.formats.header import GAME_MODE_NAMES, GAME_MODES, header_fault
from nclone_env.level.formats.tile_characters import TILE_CHARACTERS
from nclone_env.level.raw import UNPUBLISHED, RawLevel, entity_name
from nclone_env.level.records import MAX_RECORDS, MAX_TYPE, writing_fault

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

_KINDS = {int: "a whole number", str: "a string"}
_ENTITY_TYPES = {entity_name(kind): kind for kind in range(MAX_TYPE + 1)}
_TILE_NUMBERS = {character: number for number, character in enumerate(TILE_CHARACTERS)}
_FIELDS = ("name", "x", "y", "orientation", "mode")


def parse_text(text: str, source: str = "<text>") -> RawLevel:
    """Read a level from the text of a level file.

    Args:
        text: the whole file.
        source: file name for messages.

    Raises:
        LevelFormatError: at the first mistake; it names the line.
    """
    return _Parser(text, source).level()


def format_text(raw: RawLevel) -> str:
    """Return the canonical level file of a level; :func:`parse_text` gives the same level back.

    Raises:
        LevelFormatError: if the level has tiles above 37, or a header field or record that no file can hold.
    """
    header = header_fault(raw)
    if header:
        raise LevelFormatError(raw.source, *header)
    fault = writing_fault(raw.records)
    if fault:
        raise LevelFormatError(raw.source, f"record {fault.record}", fault.expected, fault.got)
    lines = [f"format = {FORMAT}", f"title = {_quoted(raw.title)}", f"author = {_quoted(raw.author)}"]
    if raw.level_id != UNPUBLISHED:
        lines.append(f"level_id = {raw.level_id}")
    lines += [f'game_mode = "{GAME_MODE_NAMES[raw.game_mode]}"', 'tiles = """', *_tile_lines(raw), '"""']
    lines += ['entities = """', *map(_entity_line, raw.records.tolist()), '"""', ""]
    return "\n".join(lines)


class _Parser:
    """One level file on its way to a RawLevel; keeps the text so that every error can name its line."""

    def __init__(self, text: str, source: str):
        self.text, self.source = text, source
        self.values = self._toml()

    def level(self) -> RawLevel:
        """Return the level, checking keys, header, tiles and entities in this order."""
        self._check_keys()
        tiles = self._tiles()
        raw = RawLevel(
            tiles=tiles,
            records=self._records(),
            title=self.values["title"],
            author=self.values.get("author", ""),
            level_id=self.values.get("level_id", UNPUBLISHED),
            game_mode=self._game_mode(),
            source=self.source,
        )
        fault = header_fault(raw)
        if fault:
            field, expected, got = fault
            raise self._error(self._line_of(field), f"{field} of {expected}", got)
        return raw

    def _toml(self) -> dict[str, Any]:
        try:
            return tomllib.loads(self.text)
        except (ValueError, RecursionError) as error:  # huge numbers and deep nesting are no TOMLDecodeError
            place = re.search(r"\(at line (\d+), column \d+\)", str(error))
            line = int(place[1]) if place else self.text.count("\n") + 1
            raise self._error(line, "TOML", str(error) or "nesting too deep") from error

    def _check_keys(self) -> None:
        unknown = next((key for key in self.values if key not in KEYS), None)
        if unknown is not None:
            raise self._error(self._line_of(unknown), f"one of the keys {', '.join(KEYS)}", _short(unknown))
        for key in REQUIRED_KEYS:
            if key not in self.values:
                raise self._error(self.text.count("\n") + 1, f"the key {key!r} somewhere in the file", "none")
        for key, value in self.values.items():
            if type(value) is not KEYS[key]:
                raise self._error(self._line_of(key), f"{_KINDS[KEYS[key]]} for {key!r}", _short(value))
            if isinstance(value, int) and value.bit_length() > 64:  # Python refuses to print the longest ones
                raise self._error(self._line_of(key), f"a number of at most 64 bits for {key!r}", "a longer one")
        if self.values["format"] != FORMAT:
            got = _short(self.values["format"])
            raise self._error(self._line_of("format"), f"format {FORMAT}, the only one there is", got)

    def _game_mode(self) -> int:
        mode = self.values.get("game_mode", "solo")
        if mode not in GAME_MODES:
            raise self._error(self._line_of("game_mode"), f"one of {', '.join(GAME_MODES)}", _short(mode))
        return GAME_MODES[mode]

    def _tiles(self) -> np.ndarray:
        first, rows = self._block("tiles")
        tiles = np.zeros((TILE_ROWS, TILE_COLUMNS), np.uint8)
        for index, row in enumerate(rows[:TILE_ROWS]):
            if len(row) != TILE_COLUMNS:
                raise self._error(first + index, f"{TILE_COLUMNS} tiles", f"{len(row)}: {_short(row)}")
            strange = next((column for column, tile in enumerate(row) if tile not in _TILE_NUMBERS), None)
            if strange is not None:
                expected = f"a tile, one of {TILE_CHARACTERS}, in column {strange + 1}"
                raise self._error(first + index, expected, repr(row[strange]))
            tiles[index] = [_TILE_NUMBERS[tile] for tile in row]
        if len(rows) != TILE_ROWS:
            line = first + min(len(rows), TILE_ROWS)
            raise self._error(line, f"{TILE_ROWS} lines of tiles", str(len(rows)))
        return tiles

    def _records(self) -> np.ndarray:
        first, rows = self._block("entities")
        places = [(first + index, row.split("#")[0].split()) for index, row in enumerate(rows)]
        places = [(line, words) for line, words in places if words]
        if len(places) > MAX_RECORDS:
            raise self._error(places[MAX_RECORDS][0], f"at most {MAX_RECORDS} entities", str(len(places)))
        records = np.array([self._record(line, words) for line, words in places], np.uint8).reshape(-1, 5)
        lines = [line for line, _ in places] + [first + len(rows)]
        fault = writing_fault(records)
        if fault:
            expected = _name_lines(fault.expected, lines)
            raise self._error(lines[fault.record], expected, fault.got)
        return records

    def _record(self, line: int, words: list[str]) -> list[int]:
        """Return the five bytes of one line of the entity list."""
        if not 3 <= len(words) <= 5:
            raise self._error(line, "name x y [orientation] [mode]", _short(" ".join(words)))
        name, *numbers = words
        if name not in _ENTITY_TYPES:
            close = difflib.get_close_matches(name, _ENTITY_TYPES, n=1)
            hint = f" (did you mean {close[0]}?)" if close else f" ({', '.join(_ENTITY_TYPES)})"
            raise self._error(line, "the name of an entity" + hint, _short(name))
        for field, number in zip(_FIELDS[1:], numbers):
            if not re.fullmatch(r"[0-9]{1,3}", number) or int(number) > 255:
                raise self._error(line, f"a whole number of 0..255 for {field}", _short(number))
        values = [int(number) for number in numbers]
        return [_ENTITY_TYPES[name], *values, *[0] * (4 - len(values))]

    def _block(self, key: str) -> tuple[int, list[str]]:
        """Return the lines of a multi-line string, and the number of its first line in the file."""
        rows = self.values[key].split("\n")
        if rows[-1].strip() == "":
            rows.pop()
        opened = re.search(rf"^[ \t]*{key}[ \t]*=[ \t]*(\"\"\"|''')\r?\n", self.text, re.MULTILINE)
        return self._line_of(key) + (1 if opened else 0), rows

    def _line_of(self, key: str) -> int:
        """Return the number of the line that sets a key; 1 if it is written in an unusual way."""
        found = re.search(rf"^[ \t]*[\"'\[]*{re.escape(key)}[\"']?[ \t]*[=.\]]", self.text, re.MULTILINE)
        return self.text.count("\n", 0, found.end()) + 1 if found else 1

    def _error(self, line: int, expected: str, got: str) -> LevelFormatError:
        return LevelFormatError(self.source, f"line {line}", expected, got)


def _name_lines(message: str, lines: list[int]) -> str:
    """Say "line 40" instead of "record 12": people who edit text see lines."""

    def line(match: re.Match[str]) -> str:
        return f"line {lines[min(int(match[1]), len(lines) - 1)]}"

    return re.sub(r"record (\d+)", line, message)


def _tile_lines(raw: RawLevel) -> list[str]:
    strange = np.argwhere(raw.tiles > MAX_TILE)
    if strange.size:
        row, column = strange[0].tolist()
        where = f"tile in column {column + 1}, row {row + 1}"
        expected = f"a tile of 0..{MAX_TILE}, for which text has a character"
        raise LevelFormatError(raw.source, where, expected, str(raw.tiles[row, column]))
    return ["".join(TILE_CHARACTERS[tile] for tile in row) for row in raw.tiles.tolist()]


def _entity_line(record: list[int]) -> str:
    kind, x, y, orientation, mode = record
    values = [x, y, orientation, mode] if mode else [x, y, orientation] if orientation else [x, y]
    return " ".join([entity_name(kind), *map(str, values)])


def _quoted(text: str) -> str:
    """Return a TOML string; a printable text needs only its quotes and backslashes escaped."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _short(value: object) -> str:
    """Return a value for a message, cut if it is long."""
    shown = repr(value)
    return shown if len(shown) <= 60 else f"{shown[:57]}..."
