"""The game's text format for packs of levels: one level a line, ``$title#hex#``.

The title is Latin-1. The hex digits stand for bytes, **low nibble first**: "10" is the byte 0x01. The bytes of a level:

===== =====================================================================================================
size  content
===== =====================================================================================================
4     zero
966   tiles: the byte at i + 42 * j is the tile in column i = 0..41 and row j = 0..22
...   for each type of ``LAYOUTS``, in that order: a big-endian 16-bit count, then so many records
4     zero
===== =====================================================================================================

A record is x and y, in units of 6 pixels of the bordered level, then what its type needs: orientation, mode, and the
x and y of the switch of an exit or door. The switches are records of their own in a :class:`RawLevel`: those of the
exits follow all exits, in the same order; that of a door follows its door.

Readers skip blank lines. A pack has no author, level id or game mode.
"""

from __future__ import annotations

import numpy as np

from nclone_env.constants import EXIT, EXIT_SWITCH, TILE_COLUMNS, TILE_ROWS
from nclone_env.errors import LevelFormatError
from nclone_env.level.formats.header import header_fault
from nclone_env.level.raw import RawLevel, entity_name
from nclone_env.level.records import DOOR_SWITCHES, loading_fault

LAYOUTS = {
    **dict.fromkeys((0, 1, 2), "xy"),
    3: "xyXY",
    5: "xyo",
    **dict.fromkeys((6, 8), "xyoXY"),
    **dict.fromkeys((10, 11), "xyo"),
    **dict.fromkeys((12, 13, 14, 15), "xyom"),
    **dict.fromkeys((16, 17, 18, 19), "xy"),
    20: "xyo",
    **dict.fromkeys((21, 22), "xy"),
    23: "xyom",
    **dict.fromkeys((24, 25), "xy"),
    26: "xyom",
    **dict.fromkeys((27, 28), "xy"),
}
"""The bytes of a record by type, in the order of the format: x, y, orientation, mode, X and Y of the switch."""

_START, _END = b"$", b"#"
_ZEROS = bytes(4)
_TILES = TILE_COLUMNS * TILE_ROWS
_Record = tuple[int, int, int, int, int]


def is_pack(data: bytes) -> bool:
    """Return whether data begin like a pack of levels."""
    return data.lstrip()[:1] == _START


def read_pack(text: str | bytes, source: str = "<bytes>") -> tuple[RawLevel, ...]:
    """Read all levels of a pack.

    Args:
        text: the whole file.
        source: file name for messages.

    Raises:
        LevelFormatError: naming file and line, if one of the levels is malformed or there is none.
    """
    lines = _lines(_encoded(text, source))
    if not lines:
        raise LevelFormatError(source, "line 1", "a level, $title#hex#", "the end")
    return tuple(_read_line(*line, index, source) for index, line in enumerate(lines))


def read_pack_level(text: str | bytes, number: int, source: str = "<bytes>") -> RawLevel:
    """Read one level of a pack.

    Args:
        text: the whole file.
        number: which level, counted from 0; blank lines do not count.
        source: file name for messages.

    Raises:
        LevelFormatError: if this level is malformed, or there are not so many.
    """
    lines = _lines(_encoded(text, source))
    if number >= len(lines):
        raise LevelFormatError(source, f"level {number}", "a pack with a line for it", f"{len(lines)} levels")
    return _read_line(*lines[number], number, source)


def pack_titles(text: str | bytes) -> tuple[str, ...]:
    """Return what stands in the place of the title in each line of a pack that is not blank; nothing is checked."""
    data = text.encode("latin-1", "replace") if isinstance(text, str) else text
    return tuple(line[1:-1].rpartition(_END)[0].decode("latin-1") for _, line in _lines(data))


class _LineError(Exception):
    """What a line should be, and what it is."""


def _encoded(text: str | bytes, source: str) -> bytes:
    if isinstance(text, bytes):
        return text
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError as error:
        line = text.count("\n", 0, error.start) + 1
        raise LevelFormatError(source, f"line {line}", "Latin-1 text", f"{text[error.start]!a}") from error


def _lines(data: bytes) -> list[tuple[int, bytes]]:
    """Return the lines that are not blank with their numbers from 1."""
    stripped = (line.strip() for line in data.split(b"\n"))
    return [(number, line) for number, line in enumerate(stripped, start=1) if line]


def _read_line(line_number: int, line: bytes, index: int, source: str) -> RawLevel:
    try:
        return _parse_line(line, f"{source}#{index}")
    except _LineError as error:
        raise LevelFormatError(source, f"line {line_number}", *error.args) from None


def _parse_line(line: bytes, source: str) -> RawLevel:
    title, mark, digits = line[1:-1].rpartition(_END)
    if line[:1] != _START or line[-1:] != _END or not mark:
        raise _LineError("$title#hex#", f"{line[:20]!r} ... {line[-5:]!r}" if len(line) > 25 else repr(line))
    data = _bytes_of(digits)
    if data[:4] != _ZEROS or len(data) < 4 + _TILES:
        raise _LineError(f"4 zero bytes and {_TILES} tiles", f"{len(data)} bytes from {data[:4].hex(' ')}")
    tiles = np.frombuffer(data, np.uint8, _TILES, 4).reshape(TILE_ROWS, TILE_COLUMNS)
    records = np.array(_read_records(data), dtype=np.uint8).reshape(-1, 5)
    fault = loading_fault(records)
    if fault:
        raise _LineError(f"{fault.expected} in record {fault.record}", fault.got)
    raw = RawLevel(tiles=tiles, records=records, title=title.decode("latin-1"), source=source)
    wrong = header_fault(raw)
    if wrong:
        raise _LineError(f"a {wrong.field} of {wrong.expected}", wrong.got)
    return raw


def _bytes_of(digits: bytes) -> bytes:
    """Return the bytes that hex digits stand for, low nibble first."""
    try:
        swapped = bytes.fromhex(digits.decode("latin-1"))
    except ValueError as error:
        raise _LineError("pairs of hex digits", str(error)) from None
    if 2 * len(swapped) != len(digits):  # fromhex skips blanks
        raise _LineError("pairs of hex digits", "blanks among them")
    nibbles = np.frombuffer(swapped, np.uint8)
    return (nibbles << 4 | nibbles >> 4).tobytes()


def _read_records(data: bytes) -> list[_Record]:
    """Return the records of all types in the order of map bytes."""
    records: list[_Record] = []
    offset = 4 + _TILES
    for kind, layout in LAYOUTS.items():
        count = int.from_bytes(data[offset : offset + 2], "big")
        first, offset = offset + 2, offset + 2 + count * len(layout)
        if offset > len(data):
            raise _LineError(f"{count} {entity_name(kind)} records up to byte {offset}", f"{len(data)} bytes")
        chunks = (data[place : place + len(layout)] for place in range(first, offset, len(layout)))
        records += _records_of(kind, [dict(zip(layout, chunk)) for chunk in chunks])
    if data[offset:] != _ZEROS:
        raise _LineError(f"4 zero bytes from byte {offset} to the end", data[offset:][:8].hex(" ") or "the end")
    return records


def _records_of(kind: int, fields: list[dict[str, int]]) -> list[_Record]:
    """Return the records of one type with their switches."""
    own = [(kind, item["x"], item["y"], item.get("o", 0), item.get("m", 0)) for item in fields]
    if kind == EXIT:
        return own + [(EXIT_SWITCH, item["X"], item["Y"], 0, 0) for item in fields]
    if kind not in DOOR_SWITCHES:
        return own
    switches = [(DOOR_SWITCHES[kind], item["X"], item["Y"], 0, 0) for item in fields]
    return [record for pair in zip(own, switches) for record in pair]
