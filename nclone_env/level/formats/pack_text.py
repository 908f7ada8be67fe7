"""The game's text format for packs of levels: one level a line, ``$title#hex#``.

The title is UTF-8; :mod:`nclone_env.level.formats.map_bytes` states how others are read. The hex digits encode bytes,
**low nibble first**: "10" is the byte 0x01. The bytes of a level:

===== =====================================================================================================
size  content
===== =====================================================================================================
4     zero
966   tiles: the byte at i + 42 * j is the tile in column i = 0..41 and row j = 0..22
...   for each type of ``LAYOUTS``, in that order: a big-endian 16-bit count, then that many records
4     zero
===== =====================================================================================================

A record is x and y, in units of 6 pixels of the bordered level, then the further fields of its type: orientation, mode,
and the x and y of the switch of an exit or door. In a :class:`RawLevel` switches are separate records: those of exits
follow all exits, in the same order; that of a door follows its door.

Readers skip byte order marks, zero bytes at the ends of lines, blank lines and comments: lines that begin with ``#``,
``;`` or ``//``. A pack has no author, level id or game mode.

Readers refuse files with more than 10,000 lines that are neither comments nor long enough for a level, and levels of
more than 1 MiB, three times the largest: a small file in gzip can unpack to millions of such lines.

Levels of N v1.4, the game before N++, are ``$title#author#type#tiles|objects#``, in other units and with other tiles:
readers only name them.
"""

import hashlib
import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from mmap import mmap
from weakref import WeakValueDictionary

import numpy as np

from nclone_env.errors import LevelFormatError
from nclone_env.game import EXIT, KINDS, SWITCH_OF, TILE_COLUMNS, TILE_ROWS, kind_name
from nclone_env.level.formats.map_bytes import MAX_TITLE, check_header, encoded_name, read_name
from nclone_env.level.level import RawLevel, Record, loading_fault

LAYOUTS = {kind.number: kind.pack for kind in KINDS if kind.pack is not None}
"""The bytes of a record by type, in the order of the format: x, y, orientation, mode, X and Y of the switch."""

_START, _END = b"$", b"#"
_UTF_16_START = b"$\0"
"""How a pack begins that was saved as UTF-16 without a byte order mark."""
_AROUND = b" \t\v\f\r\0\x1a\xef\xbb\xbf"
"""What lines have around them: blanks, zeros, the end of a file of DOS, and byte order marks, also of joined files."""
_RUN = re.compile(rb"[!-~]+")
_SEVERAL = re.compile(rb"#\s*\$")
"""Between two levels in one line, as after line ends of another kind than the first one."""
_OLDER_TILES = 31 * 23
"""A level of N v1.4 begins with its tiles, then a bar: the end of a run of characters without spaces."""
OLDER = "a level of N v1.4, an older game with other tiles and objects, which is not supported"
_ZEROS = bytes(4)
_TILES = TILE_COLUMNS * TILE_ROWS
_LEAST_DIGITS = 2 * (len(_ZEROS) + _TILES)
_MOST_SHORT = 10_000
"""Lines too short for a level: more are no pack."""
_LONGEST = 1 << 20
"""Bytes of a line with a level."""
_IS_AROUND, _IS_END, _IS_COMMENT = range(1, 4)
_KINDS = {
    mark: bytes.maketrans(_AROUND + b"#;" + mark, bytes([_IS_AROUND] * len(_AROUND) + [_IS_COMMENT] * 2 + [_IS_END]))
    for mark in (b"\n", b"\r")
}
"""What a byte is at the beginning of a line, by the mark of line ends; two slashes also begin a comment."""


_in_use: WeakValueDictionary[bytes, RawLevel] = WeakValueDictionary()
"""Each level by a digest of its line and place, so that environments with the same pack do not parse it again."""


class Pack:
    """A pack of levels, parsed one level at a time; LevelFormatError if too many of its lines can hold none.

    Attributes:
        lines: (n, 3) int64, number, start and end of the line of each level; others are blank or comments.
    """

    def __init__(self, data: bytes | mmap, source: str = "<bytes>", lines: np.ndarray | None = None):
        self._source, self._data = source, data
        self.lines = _lines(data, source) if lines is None else lines

    def __len__(self) -> int:
        """Return the number of levels."""
        return len(self.lines)

    @cached_property
    def titles(self) -> tuple[str, ...]:
        """The title of each level; nothing is checked."""
        places = ((first, min(last, first + _LONGEST)) for _, first, last in self.lines.tolist())
        lines = (self._data[first:last].strip(_AROUND) for first, last in places)
        return tuple(read_name(line[1:-1].rpartition(_END)[0], MAX_TITLE) for line in lines)

    def level(self, number: int | None) -> RawLevel:
        """Parse the level of a number from 0 on; None: the only one."""
        number = checked_number(number, len(self), self._source)
        line_number, first, last = self.lines[number].tolist()
        try:
            if last - first > _LONGEST:
                raise _LineError(f"at most {_LONGEST} bytes for a level", f"{last - first}")
            return _parsed(self._data[first:last].strip(_AROUND), f"{self._source}#{number}")
        except _LineError as error:
            raise LevelFormatError(self._source, f"line {line_number}", *error.args) from None


def checked_number(number: int | None, count: int, source: str) -> int:
    """Return the number of a level in a file of several; None stands for the only one."""
    if number is None and count != 1:
        expected = "one level; load_levels takes several" if source == "<bytes>" else f"one level, such as {source}#0"
        raise LevelFormatError(source, "file", expected, f"a pack of {count} levels")
    if (number or 0) >= count:
        raise LevelFormatError(source, f"level {number}", "a pack with a line for it", f"{count} levels")
    return number or 0


def _lines(data: bytes | mmap, source: str) -> np.ndarray:
    """Return number, start and end of each line with a level."""
    found, short = [np.empty((0, 3), np.int64)], 0
    for lines in _parts(data):
        is_short = lines[:, 2] - lines[:, 1] < _LEAST_DIGITS
        short += int(np.count_nonzero(is_short))
        if short > _MOST_SHORT:
            got = f"more than {_MOST_SHORT:,} lines that are too short for a level"
            raise LevelFormatError(source, f"line {lines[is_short][-1, 0]}", "a pack with a level in each line", got)
        found.append(lines)
    return np.concatenate(found)


def _parts(data: bytes | mmap) -> Iterator[np.ndarray]:
    """Yield number, start and end of the lines with a level, (n, 3), of one part of the data after another.

    A part has whole lines, or the beginning of a longer one. A pack can be larger than the memory.
    """
    mark = b"\n" if data.find(b"\n") >= 0 else b"\r"
    first, number = 0, 1
    while first < len(data):
        last = len(data) if len(data) - first <= _LONGEST else data.rfind(mark, first, first + _LONGEST)
        end = last if last >= 0 else data.find(mark, first + _LONGEST)
        end = end if end >= 0 else len(data)
        part = np.frombuffer(data[first : min(end, first + _LONGEST)] + mark, np.uint8)
        ends = np.flatnonzero(part == mark[0])
        starts = begins = np.concatenate([[0], ends[:-1] + 1])
        kinds = _kinds(part[starts], mark)
        if (kinds == _IS_AROUND).any():  # lines begin behind that, at the latest at their ends
            behind = np.flatnonzero(_kinds(part, mark) != _IS_AROUND)
            begins = behind[np.concatenate([[True], part[behind[:-1]] == mark[0]])]
            kinds = _kinds(part[begins], mark)
        rows = np.flatnonzero((kinds != _IS_END) & (kinds != _IS_COMMENT))
        begins = begins[rows]
        rows = rows[(part[begins] != ord("/")) | (part[np.minimum(begins + 1, len(part) - 1)] != ord("/"))]
        places = ends[rows] if last >= 0 else np.full(len(rows), end - first)
        yield np.column_stack([number + rows, first + starts[rows], first + places])
        first, number = end + 1, number + len(ends)


def _kinds(part: np.ndarray, mark: bytes) -> np.ndarray:
    """Return what bytes are at the beginning of a line; indices of one byte would take numpy ten times as long."""
    return np.frombuffer(part.tobytes().translate(_KINDS[mark]), np.uint8)


def is_pack(data: bytes | mmap) -> bool:
    """Return whether data begin like a pack of levels."""
    line = next((lines[0] for lines in _parts(data) if len(lines)), None)
    beginning = b"" if line is None else data[line[1] : line[2]][:_LONGEST].lstrip(_AROUND)[:2]
    return beginning.startswith(_START) and beginning != _UTF_16_START


def is_older(data: bytes) -> bool:
    """Return whether data begin like a level of N v1.4."""
    return any(b"|" in run[_OLDER_TILES:] for run in _RUN.findall(data[:2000]))


def write_pack(levels: Sequence[RawLevel]) -> bytes:
    """Return a pack of some levels, from which :class:`Pack` parses the same tiles, records and titles."""
    lines = []
    for raw in levels:
        check_header(raw)
        title = encoded_name(raw.title, MAX_TITLE) or b""
        lines.append(_START + title + _END + _digits_of(raw) + _END + b"\n")
    return b"".join(lines)


def _digits_of(raw: RawLevel) -> bytes:
    """Return the hex digits of a level, low nibble first."""
    records = [Record(*record) for record in raw.records.tolist()]
    parts = [_ZEROS, raw.tiles.tobytes()]
    for kind, layout in LAYOUTS.items():
        own = [place for place, record in enumerate(records) if record.type == kind]
        parts.append(len(own).to_bytes(2, "big"))
        for place in own:
            record = records[place]
            partner = place + (len(own) if kind == EXIT else 1)
            switch = records[partner] if "X" in layout and partner < len(records) else record
            values = {"x": record.x, "y": record.y, "o": record.orientation, "m": record.mode}
            values |= {"X": switch.x, "Y": switch.y}
            parts.append(bytes(values[field] for field in layout))
    data = b"".join([*parts, _ZEROS])
    if not np.array_equal(_read_records(data), raw.records):
        expected = "records in the order of their types, with the fields that packs have for each"
        raise LevelFormatError(raw.source, "records", expected, "others; sort them, and set unused fields to 0")
    numbers = np.frombuffer(data, np.uint8)
    return (numbers << 4 | numbers >> 4).tobytes().hex().encode()


class _LineError(Exception):
    """Expected and actual contents of a line."""


def _parsed(line: bytes, source: str) -> RawLevel:
    """Return the level of a line; while one of the same line and place is in use, that one."""
    key = hashlib.sha256(f"{source}\n".encode() + line).digest()
    level = _in_use.get(key)
    if level is None:
        level = _in_use[key] = _parse_line(line, source)
    return level


def _parse_line(line: bytes, source: str) -> RawLevel:
    title, mark, digits = line[1:-1].rpartition(_END)
    if line[:1] != _START or line[-1:] != _END or not mark:
        raise _LineError("$title#hex#", f"{line[:20]!r} ... {line[-5:]!r}" if len(line) > 25 else repr(line))
    if is_older(line):
        raise _LineError("a level of N++, $title#hex#", OLDER)
    if len(title) > _LEAST_DIGITS and _SEVERAL.search(title):
        raise _LineError("one level, $title#hex#", "several in one line; put each into a line of its own")
    data = _bytes_of(digits)
    if data[:4] != _ZEROS or len(data) < 4 + _TILES:
        raise _LineError(f"4 zero bytes and {_TILES} tiles", f"{len(data)} bytes from {data[:4].hex(' ')}")
    tiles = np.frombuffer(data, np.uint8, _TILES, 4).reshape(TILE_ROWS, TILE_COLUMNS)
    records = _read_records(data)
    fault = loading_fault(records)
    if fault:
        raise _LineError(f"{fault.expected} in record {fault.record}", fault.got)
    return RawLevel(tiles=tiles, records=records, title=read_name(title, MAX_TITLE), source=source)


def _bytes_of(digits: bytes) -> bytes:
    """Return the bytes of hex digits, low nibble first."""
    try:
        swapped = bytes.fromhex(digits.decode("latin-1"))
    except ValueError as error:
        raise _LineError("pairs of hex digits", str(error)) from None
    if 2 * len(swapped) != len(digits):  # fromhex skips blanks
        raise _LineError("pairs of hex digits", "blanks among them")
    nibbles = np.frombuffer(swapped, np.uint8)
    return (nibbles << 4 | nibbles >> 4).tobytes()


def _read_records(data: bytes) -> np.ndarray:
    """Return the (N, 5) records of all types in the order of map bytes."""
    records = [np.empty((0, 5), np.uint8)]
    offset = 4 + _TILES
    for kind, layout in LAYOUTS.items():
        count = int.from_bytes(data[offset : offset + 2], "big")
        first, offset = offset + 2, offset + 2 + count * len(layout)
        if offset > len(data):
            raise _LineError(f"{count} {kind_name(kind)} records up to byte {offset}", f"{len(data)} bytes")
        if count:
            fields = np.frombuffer(data, np.uint8, count * len(layout), first).reshape(count, len(layout))
            records.append(_records_of(kind, dict(zip(layout, fields.T))))
    if data[offset:] != _ZEROS:
        raise _LineError(f"4 zero bytes from byte {offset} to the end", data[offset:][:8].hex(" ") or "the end")
    return np.concatenate(records)


def _records_of(kind: int, fields: dict[str, np.ndarray]) -> np.ndarray:
    """Return the (N, 5) records of one type with their switches."""
    own = _columns(kind, fields["x"], *(fields.get(name) for name in "yom"))
    if "X" not in fields:
        return own
    switches = _columns(SWITCH_OF[kind], fields["X"], fields["Y"])
    return np.concatenate([own, switches] if kind == EXIT else np.stack([own, switches], axis=1))


def _columns(kind: int, first: np.ndarray, *others: np.ndarray | None) -> np.ndarray:
    """Return records of one type from their other columns; 0 where there is none."""
    records = np.zeros((len(first), 5), np.uint8)
    records[:, 0], records[:, 1] = kind, first
    for place, column in enumerate(others, start=2):
        if column is not None:
            records[:, place] = column
    return records
