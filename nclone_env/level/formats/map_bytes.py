"""The map block of the game: a head, tiles, counts and records (physics 01, sections 14.1 and 14.2).

The header fields, which every format shares, are title, author, level id and game mode. Titles are at most 128 bytes,
authors 16, both in UTF-8, or in Latin-1 where only that is short enough. Files of other programs also have control
characters and longer titles: readers take what is not UTF-8 for Latin-1, drop control characters and cut the rest.

Readers ignore unreliable fields: the lengths, and unknown game modes (read as unset). Where the counts contradict the
records that they count, or leave out the exits, as in the files of a public level generator, the records go on to the
end of the data.

Writers produce one canonical form: 0, the size, 0x25, 0xFFFFFFFF, zeros, and no counts for types 7 and 9.
"""

import codecs
import struct
from typing import NamedTuple

import numpy as np

from nclone_env.errors import LevelFormatError, is_plain
from nclone_env.game import DOOR_SWITCHES, EXIT, TILE_COLUMNS, TILE_ROWS
from nclone_env.level.level import (
    MAX_RECORDS,
    MAX_TYPE,
    UNPUBLISHED,
    RawLevel,
    RecordFault,
    loading_fault,
    writing_fault,
)

MAX_TITLE, MAX_AUTHOR = 128, 16  # bytes
GAME_MODES = {"solo": 0, "co-op": 1, "race": 2, "unset": 4}  # physics 01, section 14.1
GAME_MODE_NAMES = {number: name for name, number in GAME_MODES.items()}
TITLE_OFFSET, TITLE_SIZE = 38, 129
AUTHOR_OFFSET, AUTHOR_SIZE = 167, 17
TILES_OFFSET, TILES_SIZE = 184, TILE_COLUMNS * TILE_ROWS
COUNTS_OFFSET = 1150
RECORDS_OFFSET, RECORD_SIZE = 1230, 5
LARGEST_MAP = RECORDS_OFFSET + RECORD_SIZE * MAX_RECORDS

_LONGEST_NAME = 4096  # bytes that are looked at: files of other programs can have megabytes
_HEAD = struct.Struct("<6I14x")  # constant, file size, level id, game mode, constant, author id
_LEVEL_FILE_CONSTANT, _NO_AUTHOR = 0x25, 0xFFFFFFFF


class HeaderFault(NamedTuple):
    """A header field that no level file can hold."""

    field: str
    expected: str
    got: str


def read_name(data: bytes, limit: int) -> str:
    """Return a title or author from a file of any program, so that ``limit`` bytes of any level file can hold it."""
    name = _decoded(data)[:limit]
    while encoded_name(name, limit) is None:
        name = name[:-1]
    return name


def encoded_name(text: str, limit: int) -> bytes | None:
    """Return the bytes of a title or author, None if there are too many: Latin-1 only where UTF-8 is too long."""
    for encoding in ("utf-8", "latin-1"):
        data = text.encode(encoding, errors="replace")
        if len(data) <= limit and _decoded(data) == text:
            return data
    return None


def _decoded(data: bytes) -> str:
    data, is_whole = data[:_LONGEST_NAME], len(data) <= _LONGEST_NAME
    try:
        text, _ = codecs.utf_8_decode(data, "strict", is_whole)
    except UnicodeDecodeError:
        text = data.decode("latin-1")
    return "".join(filter(is_plain, text))


def header_fault(raw: RawLevel) -> HeaderFault | None:
    """Return the first header field that cannot be written, or None."""
    for field, text, limit in (("title", raw.title, MAX_TITLE), ("author", raw.author, MAX_AUTHOR)):
        unprintable = next((character for character in text if not is_plain(character)), None)
        if unprintable is not None:
            return HeaderFault(field, "printable characters", f"{unprintable!a}")
        if len(text) > limit:
            return HeaderFault(field, f"at most {limit} characters", f"{len(text)}")
        if encoded_name(text, limit) is None:
            return HeaderFault(field, f"at most {limit} bytes in UTF-8", f"{len(text.encode())}")
    if not 0 <= raw.level_id <= UNPUBLISHED:
        return HeaderFault("level_id", f"a number from 0 to {UNPUBLISHED}", str(raw.level_id))
    if raw.game_mode not in GAME_MODE_NAMES:
        modes = ", ".join(f"{number} ({name})" for number, name in GAME_MODE_NAMES.items())
        return HeaderFault("game_mode", f"one of {modes}", str(raw.game_mode))
    return None


def check_header(raw: RawLevel) -> None:
    """Check the header of a level that is to be written."""
    fault = header_fault(raw)
    if fault:
        raise LevelFormatError(raw.source, fault.field, fault.expected, fault.got)


def read_map(data: bytes, source: str = "<bytes>") -> RawLevel:
    """Read a map block from the bytes of a level file; those after the last record are ignored."""
    if len(data) < RECORDS_OFFSET:
        raise LevelFormatError(source, f"offset {len(data)}", f"a map of at least {RECORDS_OFFSET} bytes", "the end")
    counts = np.frombuffer(data, "<u2", MAX_TYPE + 1, COUNTS_OFFSET)
    records, notes = _read_records(data, counts, source)
    _, _, level_id, game_mode, _, _ = _HEAD.unpack_from(data)
    return RawLevel(
        tiles=np.frombuffer(data, np.uint8, TILES_SIZE, TILES_OFFSET).reshape(TILE_ROWS, TILE_COLUMNS),
        records=records,
        title=_read_name(data, TITLE_OFFSET, TITLE_SIZE),
        author=_read_name(data, AUTHOR_OFFSET, AUTHOR_SIZE),
        level_id=level_id,
        game_mode=game_mode if game_mode in GAME_MODE_NAMES else GAME_MODES["unset"],
        source=source,
        notes=notes,
    )


def write_map(raw: RawLevel) -> bytes:
    """Return the canonical level file of a level; :func:`read_map` returns the same level."""
    check_header(raw)
    fault = writing_fault(raw.records)
    if fault:
        raise _error(raw.source, fault)
    counts = np.bincount(raw.records[:, 0], minlength=MAX_TYPE + 1).astype("<u2")
    counts[list(DOOR_SWITCHES.values())] = 0
    size = RECORDS_OFFSET + raw.records.size
    head = _HEAD.pack(0, size, raw.level_id, raw.game_mode, _LEVEL_FILE_CONSTANT, _NO_AUTHOR)
    title = (encoded_name(raw.title, MAX_TITLE) or b"").ljust(TITLE_SIZE, b"\0")
    author = (encoded_name(raw.author, MAX_AUTHOR) or b"").ljust(AUTHOR_SIZE, b"\0")
    return head + title + author + raw.tiles.tobytes() + counts.tobytes() + raw.records.tobytes()


def record_count(counts: np.ndarray) -> int:
    """Return the number of records of a map with these (40,) counts (physics 01, section 14.2)."""
    total = int(counts.sum())
    for door, switch in DOOR_SWITCHES.items():
        total += int(counts[door]) - int(counts[switch])
    return total


def _read_records(data: bytes, counts: np.ndarray, source: str) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return the (N, 5) records and notes on them."""
    count, whole = record_count(counts), (len(data) - RECORDS_OFFSET) // RECORD_SIZE
    records = np.frombuffer(data, np.uint8, whole * RECORD_SIZE, RECORDS_OFFSET).reshape(whole, RECORD_SIZE)
    if count > whole:
        expected = f"{count} records up to offset {RECORDS_OFFSET + count * RECORD_SIZE}"
        raise LevelFormatError(
            source, f"offset {len(data)}", f"{expected}, as the counts at {COUNTS_OFFSET} say", f"the end after {whole}"
        )
    counted = records[: max(count, 0)]
    notes: tuple[str, ...] = ()
    if _are_counted(counted[:, 0], counts) and (EXIT in counted[:, 0] or EXIT not in records[:, 0]):
        if whole > count:
            behind = f"{whole - count} records behind the {count} that the counts at {COUNTS_OFFSET} cover are ignored"
            notes = (behind,)
        records = counted
    else:
        over = (len(data) - RECORDS_OFFSET) % RECORD_SIZE
        if over:
            expected = f"whole records up to the end, as the counts at {COUNTS_OFFSET} are not those of the records"
            raise LevelFormatError(source, f"offset {len(data)}", expected, f"{over} bytes over: the map is damaged")
        cover = f"the counts at {COUNTS_OFFSET} are not those of the records"
        notes = (f"{cover}: they cover {len(counted)} of {whole}; all are read",)
    fault = loading_fault(records)
    if fault:
        raise _error(source, fault)
    return records, notes


def _are_counted(types: np.ndarray, counts: np.ndarray) -> bool:
    """Return whether there are as many records of each type as the counts say; switches of doors need no count."""
    expected = counts.astype(np.int64)
    for door, switch in DOOR_SWITCHES.items():
        expected[switch] = counts[door]
    return np.array_equal(np.bincount(types, minlength=len(expected)), expected)


def _read_name(data: bytes, offset: int, size: int) -> str:
    return read_name(data[offset : offset + size - 1].split(b"\0")[0], size - 1)


def _error(source: str, fault: RecordFault) -> LevelFormatError:
    offset = RECORDS_OFFSET + fault.record * RECORD_SIZE
    return LevelFormatError(source, f"record {fault.record} at offset {offset}", fault.expected, fault.got)
