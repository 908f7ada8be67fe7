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

The tile characters are those of :mod:`nclone_env.level.formats.lines`, the entity lines those of
:mod:`nclone_env.level.formats.lines`. The first entity is the ninja; exits, doors and their switches are in the
order that :mod:`nclone_env.level.records` requires.

:func:`format_text` writes the canonical form: all keys in this order (``level_id`` only if there is one), no comments,
trailing zeros left out. A file in canonical form is read and written back unchanged.

Of TOML the format has only lines of one plain key with a string or a number. Tables, arrays and dotted keys are refused
before the TOML parser sees them: its time grows with the square of the parts of a dotted key.
'''

import re
import tomllib
from typing import Any

from nclone_env.errors import LevelFormatError, shortened
from nclone_env.level.formats.header import GAME_MODE_NAMES, GAME_MODES, check_header, header_fault
from nclone_env.level.formats.lines import format_entity, format_tiles, parse_entities, parse_tiles
from nclone_env.level.level import UNPUBLISHED, RawLevel, Record
from nclone_env.level.records import writing_fault

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
_STRINGS = (  # possessive: no position is tried twice
    r'"""(?:[^"\\]|\\.|"(?!""))*+"{3,5}',
    r"'''(?:[^']|'(?!''))*+'{3,5}",
    r'"(?:[^"\\\n]|\\.)*+"',
    r"'[^'\n]*+'",
)
_BLANK = r"[ \t]*+(?:#[^\n]*+)?\r?+(?:\n|\Z)"
_VALUE = rf"(?:{'|'.join(_STRINGS)}|[^\s#\[\]{{}}\"',]{{1,{_LONGEST_VALUE}}}+)"
_KEY = rf"""[ \t]*+(?:[\w-]{{1,{_LONGEST_KEY}}}+|(["'])[^"'\\\n]{{0,{_LONGEST_KEY}}}+\1)[ \t]*+"""
_LINE = re.compile(rf"{_BLANK}|{_KEY}=[ \t]*+{_VALUE}{_BLANK}", re.DOTALL)


def parse_text(text: str | bytes, source: str = "<text>") -> RawLevel:
    """Read a level from the text of a level file.

    Args:
        text: the whole file; bytes are UTF-8, with or without a byte order mark.

    Raises:
        LevelFormatError: at the first error; the message names the line.
    """
    return _Parser(_decoded(text, source) if isinstance(text, bytes) else text, source).level()


def format_text(raw: RawLevel) -> str:
    """Return the canonical level file of a level; :func:`parse_text` returns the same level.

    Raises:
        LevelFormatError: if the level has tiles above 37, or a header field or record that no file can hold.
    """
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
