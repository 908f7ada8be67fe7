"""Level files of any known format: text, pack, attract file, recording of nclone, or map bytes; plain or in gzip."""

from __future__ import annotations

import codecs
import gzip
import io
import stat
import zlib
from collections.abc import Callable, Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import islice
from mmap import ACCESS_READ, mmap
from pathlib import Path

import numpy as np

from nclone_env._files import write_file
from nclone_env.errors import LevelFormatError, UnknownLevelError, plain, shortened
from nclone_env.level.formats.attract import is_attract, is_peer, read_attract, read_peer
from nclone_env.level.formats.map_bytes import read_map, write_map
from nclone_env.level.formats.pack_text import OLDER, UTF_16_START, Pack, is_older, is_pack
from nclone_env.level.formats.text import format_text, parse_text
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
_GZIP, _GZIP_SUFFIX = b"\x1f\x8b\x08", ".gz"
_PART = 1 << 16  # bytes read at a time: Python provides as many before it reads
_OTHER_KINDS = (
    (0, b"\x89PNG", "a PNG picture"),
    (0, b"\xff\xd8\xff", "a JPEG picture"),
    (8, b"WEBP", "a WebP picture"),
    (4, b"ftyp", "an MP4 video"),
    (0, b"PK\3\4", "a checkpoint or another zip file"),
    (0, _GZIP, "a gzip file"),
    (0, b"BZh", "a bzip2 file"),
    (0, b"\xfd7zXZ", "an xz file"),
    (0, b"7z\xbc\xaf", "a 7z file"),
    (0, b"Rar!", "a RAR file"),
    (0, b"\x7fELF", "a program"),
    (0, b"\x89NREP\r\n\x1a", "a recording"),
    (0, b"\x89NREP", "a recording whose line ends were converted; transfer it as binary"),
    (0, b"version https://git-lfs", "a pointer of Git LFS; fetch the file by git lfs pull"),
)
"""Offset and bytes that tell files of other kinds."""
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
        name = path.with_suffix("") if path.suffix == _GZIP_SUFFIX else path
        return cls(read_bytes(path), plain(path), name.suffix == TEXT_SUFFIX)

    @cached_property
    def pack(self) -> Pack | None:
        """The pack, if the file is one."""
        return Pack(self.data, self.source, self.lines) if not self.is_text and is_pack(self.data) else None

    def level(self, number: int | None = None) -> RawLevel:
        """Parse one level.

        Args:
            number: number of the level in a pack; None: the only level of the file.
        """
        data, source = self.data, self.source
        if not data:
            raise LevelFormatError(source, "offset 0", "a level file (text, map bytes or attract file)", "no data")
        if self.pack is not None:
            return self.pack.level(number)
        assert isinstance(data, bytes)  # only packs are mapped
        if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, UTF_16_START)):
            raise LevelFormatError(source, "file", "UTF-8 text or a level in bytes", "UTF-16 text; save it as UTF-8")
        if not self.is_text and _is_other(data):
            raise LevelFormatError(source, "file", "a level file (text, pack, map bytes or attract)", appearance(data))
        if len(data) > MAX_LEVEL_SIZE:
            raise LevelFormatError(source, "file", f"at most {MAX_LEVEL_SIZE} bytes for a level", f"{len(data)}")
        if self.is_text or 0 not in data[:_PROBE]:
            if is_older(data):
                raise LevelFormatError(source, "file", "a level of N++", OLDER)
            return parse_text(data, source)
        if is_peer(data):
            return read_peer(data, source).level
        return read_attract(data, source).level if is_attract(data) else read_map(data, source)


def write_index(path: Path) -> None:
    """Write the index of a pack that is mapped, next to it, so that readers need not look for the lines."""
    mapped = _mapped(path)
    if mapped is not None:
        stream = io.BytesIO()
        np.save(stream, Pack(mapped).lines)
        write_file(_index_of(path), stream.getvalue())


def _index_of(path: Path) -> Path:
    return path.with_name(path.name + INDEX_SUFFIX)


def _read_index(path: Path, data: mmap) -> np.ndarray | None:
    """Return the lines that the index of a pack has, None if there is none or it is of another pack."""
    try:
        lines = np.load(_index_of(path), mmap_mode="r", allow_pickle=False)
        _, first, last = lines[-1].tolist()
    except (OSError, ValueError, LookupError, EOFError):
        return None
    fits = lines.dtype == np.int64 and lines.ndim == 2 and 0 <= first < last <= len(data) <= last + 1
    return lines if fits else None


def _mapped(path: Path) -> mmap | None:
    """Return the contents of a pack that is too large to be read whole, None for other files."""
    with suppress(OSError, ValueError):  # reading the file reports them
        status = path.stat()
        if stat.S_ISREG(status.st_mode) and status.st_size > MAX_FILE_SIZE:
            with path.open("rb") as file:
                if is_pack(file.read(_PART)):
                    return mmap(file.fileno(), 0, access=ACCESS_READ)
    return None


def read_bytes(path: Path) -> bytes:
    """Return the contents of a file, unpacked if it is in gzip; devices, pipes and folders are refused unread."""
    source = plain(path)
    try:
        mode = path.stat().st_mode
        data = _read_start(path) if stat.S_ISREG(mode) else None
    except (FileNotFoundError, NotADirectoryError) as error:
        raise UnknownLevelError(f"{source}: expected the path of a level file, got no such file") from error
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the path
        raise LevelFormatError(source, "file", "a readable level file", plain(error)) from error
    except (EOFError, zlib.error) as error:
        raise LevelFormatError(source, "file", "a complete gzip file", plain(error)) from error
    if data is None:
        kind = "a folder; name a file in it" if stat.S_ISDIR(mode) else "a device or pipe"
        raise LevelFormatError(source, "file", "a level file", kind)
    if len(data) > MAX_FILE_SIZE:
        raise LevelFormatError(source, "file", f"at most {MAX_FILE_SIZE} bytes", "more")
    return data


def _is_other(data: bytes) -> bool:
    """Return whether data are neither a text of keys and values nor bytes of a level."""
    if any(data.startswith(bytes_there, place) for place, bytes_there, _ in _OTHER_KINDS):
        return True
    lines = (line.strip(b" \t" + codecs.BOM_UTF8) for line in data[:_PART].splitlines())
    first = next((line for line in lines if line and not line.startswith(b"#")), b"=")
    return 0 not in data[:_PROBE] and b"=" not in first and not is_older(data)


def appearance(data: bytes) -> str:
    """Return what a file of another kind looks like, for messages."""
    if not data:
        return "an empty file"
    for place, bytes_there, name in _OTHER_KINDS:
        if data.startswith(bytes_there, place):
            return name
    if 0 in data[:_PART]:
        return f"{len(data)} other bytes"
    line = data[:_SHOWN].partition(b"\n")[0]
    return f"a text that begins with {shortened(line.decode(errors='replace'))}"


def _read_start(path: Path) -> bytes:
    """Return the bytes of a file, unpacked if it is in gzip, at most a part beyond the limit."""
    with path.open("rb") as file:
        packed = file.read(len(_GZIP)) == _GZIP
        file.seek(0)
        with gzip.open(file) if packed else nullcontext(file) as contents:
            parts = iter(partial(contents.read, _PART), b"")
            return b"".join(islice(parts, MAX_FILE_SIZE // _PART + 1))
