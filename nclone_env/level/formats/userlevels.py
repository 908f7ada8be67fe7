"""Pages of userlevels, as the server of the game sends them and tools of players save them (numbers are little-endian).

====== ===== ==============================================================================================
offset size  content
====== ===== ==============================================================================================
0      16    date of the query, in text: 2026-11-27-18:22
16     4     number of levels N, at most 500
20     28    page, kind (0 levels), list, game mode, seconds it is valid, levels per page, unknown: ignored
48     44*N  heads
...          N blocks
====== ===== ==============================================================================================

A head is the level id and the id of the author, 4 bytes each, the author (16 bytes, padded with zeros), 4 bytes of
votes and the date in text (16 bytes). A block is its size of 4 bytes, with these, the number of records (2 bytes) and,
in zlib, a map block from its byte 8 on (:mod:`nclone_env.level.formats.map_bytes`), whose author is empty.
"""

import re
import struct
import zlib
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property

from nclone_env.errors import LevelFormatError
from nclone_env.level.formats.map_bytes import (
    LARGEST_MAP,
    MAX_AUTHOR,
    MAX_TITLE,
    TITLE_OFFSET,
    TITLE_SIZE,
    read_map,
    read_name,
)
from nclone_env.level.formats.pack_text import checked_number
from nclone_env.level.level import RawLevel

_DATE = re.compile(rb"[0-9]{4}-[0-9]{2}-[0-9]{2}-[0-9]{2}:[0-9]{2}")
_COUNT = struct.Struct("<16xI28x")
_HEAD = struct.Struct("<I4x16s20x")
_BLOCK = struct.Struct("<IH")
_CONSTANT, _CONSTANT_OF_ATTRACT = struct.pack("<I", 0x25), struct.pack("<I", 1)
MAP_START = bytes(8)
"""The first bytes of a map block, which a page leaves out."""
_MOST_LEVELS = 10_000


class UserlevelPage:
    """A page of userlevels, parsed one level at a time; LevelFormatError if its count is not that of a page."""

    def __init__(self, data: bytes, source: str = "<bytes>"):
        self._data, self._source = data, source
        (count,) = _COUNT.unpack_from(data)
        self._blocks = [_COUNT.size + _HEAD.size * count]
        if count > _MOST_LEVELS or self._blocks[0] > len(data):
            expected = f"a page of userlevels with {count} heads up to offset {self._blocks[0]}"
            raise LevelFormatError(source, "offset 16", expected, f"{len(data)} bytes")
        self._count = count
        for _ in range(count - 1):
            place = self._blocks[-1]
            size = _BLOCK.unpack_from(data, place)[0] if place + _BLOCK.size <= len(data) else 0
            self._blocks.append(place + max(size, _BLOCK.size))

    def __len__(self) -> int:
        """Return the number of levels."""
        return self._count

    @cached_property
    def titles(self) -> tuple[str, ...]:
        """The title of each level; nothing is checked."""
        return tuple(self._titles())

    def level(self, number: int | None) -> RawLevel:
        """Parse the level of a number from 0 on; None: the only one."""
        number = checked_number(number, len(self), self._source)
        source, where = f"{self._source}#{number}", f"level {number}"
        unpacker = zlib.decompressobj()
        try:
            unpacked = unpacker.decompress(self._packed(number), LARGEST_MAP)
        except zlib.error as error:
            raise LevelFormatError(self._source, where, "a map block in zlib", str(error)) from None
        if not unpacker.eof:
            got = "more" if unpacker.unconsumed_tail else f"the end of the file after {len(unpacked)}"
            raise LevelFormatError(self._source, where, f"a whole map block of at most {LARGEST_MAP} bytes", got)
        level_id, author = _HEAD.unpack_from(self._data, _COUNT.size + _HEAD.size * number)
        name = read_name(author.split(b"\0")[0], MAX_AUTHOR)
        return replace(read_map(MAP_START + unpacked, source), author=name, level_id=level_id)

    def _titles(self) -> Iterator[str]:
        for number in range(len(self)):
            try:
                start = zlib.decompressobj().decompress(self._packed(number), TITLE_OFFSET + TITLE_SIZE)
            except zlib.error:
                start = b""
            yield read_name((MAP_START + start)[TITLE_OFFSET:][:MAX_TITLE].split(b"\0")[0], MAX_TITLE)

    def _packed(self, number: int) -> bytes:
        """Return the packed map block of a level, as far as it is there."""
        place = self._blocks[number]
        size = _BLOCK.unpack_from(self._data, place)[0] if place + _BLOCK.size <= len(self._data) else 0
        return self._data[place + _BLOCK.size : place + size]


def is_block(data: bytes) -> bool:
    """Return whether data are a map block from its byte 8 on, as tools unpack them from pages: its constant tells."""
    return len(data) > 20 and data[8:12] == _CONSTANT and data[16:20] not in (_CONSTANT, _CONSTANT_OF_ATTRACT)


def is_page(data: bytes) -> bool:
    """Return whether data begin like a page of userlevels."""
    return len(data) >= _COUNT.size and _DATE.match(data) is not None and 0 in data[16:20]
