"""Level files of any known format, plain or in gzip.

Text, packs, pages of userlevels, attract files, recordings of nclone, and map bytes.
"""

from __future__ import annotations

import codecs
import errno
import gzip
import io
import os
import re
import stat
import struct
import zlib
from collections.abc import Callable, Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import islice
from mmap import ACCESS_READ, mmap
from pathlib import Path

import numpy as np

from nclone_env._files import UNREADABLE, expanded, suffix_of, write_file
from nclone_env.errors import LevelFormatError, UnknownLevelError, plain, shortened
from nclone_env.level.formats.attract import is_attract, is_peer, read_attract, read_peer
from nclone_env.level.formats.map_bytes import read_map, write_map
from nclone_env.level.formats.pack_text import OLDER, Pack, is_older, is_pack
from nclone_env.level.formats.text import format_text, parse_text
from nclone_env.level.formats.userlevels import MAP_START, UserlevelPage, is_block, is_page
from nclone_env.level.level import RawLevel

TEXT_SUFFIX, MAP_SUFFIX = ".toml", ".map"
WRITERS: Mapping[str, Callable[[RawLevel], bytes]] = {
    TEXT_SUFFIX: lambda raw: format_text(raw).encode(),
    MAP_SUFFIX: write_map,
}
"""The contents of a file of one level, by its suffix."""
MAX_LEVEL_SIZE, MAX_FILE_SIZE = 1 << 24, 1 << 26
"""Bytes of a file with one level, and of one that is read whole: hours of recorded inputs, or 20,000 levels, are
smaller. Larger packs are mapped."""
INDEX_SUFFIX = ".index"
"""Of the file next to a larger pack that has the places of its lines, ``.npy``."""
_MOST_CHECKED = 1000
"""Lines of an index that are compared with their pack."""
_IS_STAMP = -1
"""In the last row of an index, in place of the number of a line."""
_GZIP, _GZIP_SUFFIX = b"\x1f\x8b\x08", ".gz"
_PART = 1 << 16  # bytes read at a time: Python provides as many before it reads
_OTHER_KINDS = (
    (0, b"\x89PNG", "a PNG picture"),
    (0, b"\xff\xd8\xff", "a JPEG picture"),
    (0, b"GIF8", "a GIF picture"),
    (8, b"WEBP", "a WebP picture"),
    (4, b"ftyp", "an MP4 video"),
    (0, b"\x1a\x45\xdf\xa3", "a WebM or Matroska video"),
    (0, b"PK\3\4", "a checkpoint or another zip file; unpack files that it has of the game"),
    (0, b"PK\5\6", "an empty zip file"),
    (257, b"ustar", "a tar archive; unpack files that it has of the game"),
    (0, _GZIP, "a gzip file"),
    (0, b"BZh", "a bzip2 file"),
    (0, b"\xfd7zXZ", "an xz file"),
    (0, b"\x28\xb5\x2f\xfd", "a zstd file"),
    (0, b"7z\xbc\xaf", "a 7z file"),
    (0, b"Rar!", "a RAR file"),
    (0, b"\x7fELF", "a program"),
    (0, b"\x89NREP\r\n\x1a", "a recording"),
    (0, b"\x89NREP", "a recording whose line ends were converted; transfer it as binary"),
    (0, b"version https://git-lfs", "a pointer of Git LFS; fetch the file by git lfs pull"),
    (0, b"\x93NUMPY", "an array of NumPy"),
    (0, b"SQLite format 3\0", "an SQLite database"),
    (0, b"%PDF-", "a PDF document"),
    (0, b"\x8e\x03\xc0\xff", "a replay of an episode without its levels"),
    (0, b"\xce\0\x38\xff", "a replay of a story without its levels"),
)
"""Offset and bytes that tell files of other kinds."""
_REPLAY_HEAD = struct.Struct("<B3I13xI")
"""Kind, length, version, frames and constant of a replay block (:mod:`nclone_env.level.formats.attract`)."""
_SERVER_HEAD = struct.Struct("<I12x")
"""Kind of a replay as the server of the game sends it; the block follows in zlib."""
_SAVE_NAME = "nprofile"
_OWN_KEY = re.compile(rb"^[ \t]*[\"']?(tiles|entities)[\"']?[ \t]*=", re.MULTILINE)
_ASCII = re.compile(rb"[\t\r\n -~]+")
_SHOWN = 40  # bytes of a text
_PROBE = 24  # every binary format has zero bytes in its first 24: ids, modes and lengths of 32 bits


@dataclass(frozen=True, eq=False)
class LevelFile:
    """The contents of one file: a level, or a pack of levels.

    Attributes:
        data: the whole file, mapped if it is a large pack.
        source: file name for messages.
        is_text: whether the file name marks it as text; otherwise the bytes decide.
        lines: those of a pack, if they are known.
    """

    data: bytes | mmap
    source: str = "<bytes>"
    is_text: bool = False
    lines: np.ndarray | None = None

    @classmethod
    def open(cls, path: Path) -> LevelFile:
        """Read a file."""
        mapped = _mapped(path)
        if mapped is not None:
            return cls(mapped, plain(path), lines=_read_index(path, mapped))
        return cls._of(path, read_bytes(path))

    @classmethod
    def _of(cls, path: Path, data: bytes) -> LevelFile:
        name = path.with_suffix("") if suffix_of(path) == _GZIP_SUFFIX else path
        return cls(data, plain(path), suffix_of(name) == TEXT_SUFFIX)

    @classmethod
    def found(cls, path: Path) -> LevelFile | None:
        """Return the file at a path in a folder, None if its name says that it is a text, which is not read yet."""
        if suffix_of(path) == TEXT_SUFFIX:
            return None
        start = read_bytes(path, _PART)
        if _is_other(start) or (_is_text(start) and not (is_pack(start) or _OWN_KEY.search(start))):
            raise LevelFormatError(plain(path), "file", "a level file", appearance(start))
        file = cls._of(path, start) if len(start) <= _PART else cls.open(path)
        if suffix_of(path) not in (MAP_SUFFIX, "") or path.name[0] == "." or file.pack is not None:
            file._check_one()
        return file

    @cached_property
    def pack(self) -> Pack | UserlevelPage | None:
        """The levels, if the file is of a format for several."""
        if self.is_text:
            return None
        if is_pack(self.data):
            return Pack(self.data, self.source, self.lines)
        return UserlevelPage(self.data, self.source) if isinstance(self.data, bytes) and is_page(self.data) else None

    def level(self, number: int | None = None) -> RawLevel:
        """Parse the level of a number in a pack; None: the only level of the file."""
        data, source = self.data, self.source
        if not data:
            raise LevelFormatError(source, "offset 0", "a level file (text, map bytes or attract file)", "no data")
        if self.pack is not None:
            return self.pack.level(number)
        assert isinstance(data, bytes)  # only packs are mapped
        if _is_utf_16(data):
            raise LevelFormatError(source, "file", "UTF-8 text or a level in bytes", "UTF-16 text; save it as UTF-8")
        if _other_kind(data) if self.is_text else _is_other(data):
            raise LevelFormatError(source, "file", "a level file (text, pack, map bytes or attract)", appearance(data))
        if len(data) > MAX_LEVEL_SIZE:
            raise LevelFormatError(source, "file", f"at most {MAX_LEVEL_SIZE} bytes for a level", f"{len(data)}")
        if self.is_text or _is_text(data):
            if is_older(data):
                raise LevelFormatError(source, "file", "a level of N++", OLDER)
            return parse_text(data, source)
        if is_peer(data):
            return read_peer(data, source).level
        if is_attract(data):
            return read_attract(data, source).level
        return read_map(MAP_START + data if is_block(data) else data, source)

    def _check_one(self) -> None:
        """Raise the first LevelFormatError unless a level can be read."""
        fault: LevelFormatError | None = None
        for number in (None,) if self.pack is None else range(len(self.pack)):
            try:
                self.level(number)
                return
            except LevelFormatError as error:
                fault = fault or error
        raise fault or LevelFormatError(self.source, "file", "a level", "none")


def write_index(path: Path) -> None:
    """Write the index of a pack that is mapped, next to it, so that readers need not look for the lines."""
    mapped = _mapped(path)
    if mapped is not None:
        write_file(_index_of(path), _index(path, mapped))


def _index(path: Path, data: mmap) -> bytes:
    """Return the index of a pack: its lines and, as the last row, the state of the file when they were found."""
    stamp, stream = _stamp(path), io.BytesIO()
    np.save(stream, np.concatenate([Pack(data, plain(path)).lines, [stamp]]))
    return stream.getvalue()


def _index_of(path: Path) -> Path:
    return path.with_name(path.name + INDEX_SUFFIX)


def _stamp(path: Path) -> tuple[int, int, int]:
    """Return what tells the contents of a file from others that have its name later."""
    status = path.stat()
    return _IS_STAMP, status.st_size, status.st_mtime_ns


def _read_index(path: Path, data: mmap) -> np.ndarray | None:
    """Return the lines that the index of a pack has, None if there is none; one that does not fit is replaced."""
    index = _index_of(path)
    try:
        rows = np.load(index, mmap_mode="r", allow_pickle=False)
        if rows.dtype != np.int64 or rows.ndim != 2 or rows.shape[1] != 3:
            return None
        if tuple(rows[-1].tolist()) != _stamp(path) or not _are_lines(rows[:-1], data):
            made = _index(path, data)
            rows = np.load(io.BytesIO(made))
            with suppress(OSError):  # a folder that can only be read
                write_file(index, made)
    except UNREADABLE:
        return None
    return rows[:-1]


def _are_lines(rows: np.ndarray, data: mmap) -> bool:
    """Return whether lines begin and end where an index says, of some of them: an edit may keep size and time."""
    places = rows[:: max(1, len(rows) // _MOST_CHECKED), 1:].tolist()
    marks = (b"", b"\n", b"\r")
    return all(
        0 <= first < last <= len(data) and {data[max(first - 1, 0) : first], data[last : last + 1]}.issubset(marks)
        for first, last in places
    )


def _mapped(path: Path) -> mmap | None:
    """Return the contents of a pack that is too large to be read whole, None for other files."""
    with suppress(OSError, ValueError):  # reading the file reports them
        status = path.stat()
        if stat.S_ISREG(status.st_mode) and status.st_size > MAX_FILE_SIZE:
            with path.open("rb") as file:
                if is_pack(file.read(_PART)):
                    return mmap(file.fileno(), 0, access=ACCESS_READ)
    return None


def read_bytes(path: str | Path, first: int | None = None) -> bytes:
    """Return all or the ``first`` bytes of a file, unpacked if in gzip; devices, pipes and folders are not read."""
    source, path = plain(path), expanded(path)
    try:
        mode = path.stat().st_mode
        data = _read_start(path, MAX_FILE_SIZE if first is None else first) if stat.S_ISREG(mode) else None
    except (FileNotFoundError, NotADirectoryError) as error:
        raise UnknownLevelError(f"{source}: expected the path of a level file, got no such file") from error
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the path
        is_long = isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG
        got = os.strerror(errno.ENAMETOOLONG) if is_long else error
        raise LevelFormatError(source, "file", "a readable level file", plain(got)) from error
    except (EOFError, zlib.error) as error:
        raise LevelFormatError(source, "file", "a complete gzip file", plain(error)) from error
    if data is None:
        kind = "a folder; name a file in it" if stat.S_ISDIR(mode) else "a device or pipe"
        raise LevelFormatError(source, "file", "a level file", kind)
    if len(data) > MAX_FILE_SIZE:
        if path.name.lower().startswith(_SAVE_NAME):
            raise LevelFormatError(source, "file", "a level file", "the save file of the game, which has no levels")
        raise LevelFormatError(source, "file", f"at most {MAX_FILE_SIZE} bytes", "more")
    return data


def _is_text(data: bytes) -> bool:
    return bool(data) and 0 not in data[:_PROBE]


def _is_utf_16(data: bytes) -> bool:
    """Return whether data are text of two bytes a character, also without a byte order mark."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return True
    halves = data[:_PROBE:2], data[1:_PROBE:2]
    return any(zeros and not any(zeros) and _ASCII.fullmatch(text) for zeros, text in (halves, halves[::-1]))


def _is_other(data: bytes) -> bool:
    """Return whether data are neither levels nor a text of keys and values."""
    if _other_kind(data) is not None:
        return True
    lines = (line.strip(b" \t" + codecs.BOM_UTF8) for line in data[:_PART].splitlines())
    first = next((line for line in lines if line and not line.startswith(b"#")), b"=")
    return _is_text(data) and b"=" not in first and not is_pack(data) and not is_older(data)


def _other_kind(data: bytes) -> str | None:
    """Return what data of another known kind are."""
    for place, bytes_there, name in _OTHER_KINDS:
        if data.startswith(bytes_there, place):
            return name
    if _is_replay(data):
        return "a replay of the game without its level"
    if len(data) > _SERVER_HEAD.size and _SERVER_HEAD.unpack_from(data)[0] in (0, 1, 4):  # level, episode, story
        if _unpacked(data[_SERVER_HEAD.size : _PART]):
            return "a replay from the server of the game, without its level"
    if _unpacked(data[:_PART]):
        return "data in zlib, as some tools keep replays and levels; unpack them"
    return None


def _is_replay(data: bytes) -> bool:
    if len(data) < _REPLAY_HEAD.size:
        return False
    level_or_more, length, version, frames, constant = _REPLAY_HEAD.unpack_from(data)
    return level_or_more <= 2 and version == 1 and length == frames + _REPLAY_HEAD.size and constant == 0xFFFFFFFF


def _unpacked(data: bytes) -> bytes:
    """Return the beginning of what data in zlib contain, nothing if they are no such data."""
    with suppress(zlib.error):
        return zlib.decompressobj().decompress(data, _PROBE)
    return b""


def appearance(data: bytes) -> str:
    """Return what a file of another kind looks like, for messages."""
    if not data:
        return "an empty file"
    if is_page(data):
        return "a page of userlevels"
    kind = _other_kind(data)
    if kind is not None:
        return kind
    if 0 in data[:_PART]:
        return f"{len(data)} other bytes"
    if is_older(data):
        return OLDER
    line = data[:_SHOWN].partition(b"\n")[0]
    return f"a text that begins with {shortened(line.decode(errors='replace'))}"


def _read_start(path: Path, most: int) -> bytes:
    """Return the bytes of a file, unpacked if it is in gzip, at most a part beyond ``most``."""
    with path.open("rb") as file:
        packed = file.read(len(_GZIP)) == _GZIP
        file.seek(0)
        with gzip.open(file) if packed else nullcontext(file) as contents:
            stream = io.BytesIO()  # unlike joining them, this keeps no second copy of the parts
            stream.writelines(islice(iter(partial(contents.read, _PART), b""), most // _PART + 1))
            return stream.getvalue()
