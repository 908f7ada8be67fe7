"""Read a level from a file or bytes of any known format: text, pack, attract file, or map bytes.

The path of a level inside a pack is that of the pack with ``#`` and the number of the level, from 0: ``pack.txt#12``.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from nclone_env.errors import LevelFormatError, UnknownLevelError
from nclone_env.level.formats.attract import is_attract, read_attract
from nclone_env.level.formats.map_bytes import read_map
from nclone_env.level.formats.pack_text import is_pack, read_pack, read_pack_level
from nclone_env.level.formats.text import parse_text
from nclone_env.level.raw import RawLevel

TEXT_SUFFIX, MAP_SUFFIX = ".toml", ".map"
MAX_FILE_SIZE = 1 << 24
"""Bytes; the largest possible level with hours of recorded inputs is smaller."""
_PROBE = 24  # every binary format has zero bytes in its first 24: ids, modes and lengths of 32 bits


def read_level(source: str | Path | bytes) -> RawLevel:
    """Read one level.

    Args:
        source: path of a level file or of a level inside a pack, or the bytes of a level file. Names of built-in
            levels are resolved by :func:`nclone_env.level.catalog.resolve`.

    Raises:
        UnknownLevelError: if there is no file at the path.
        LevelFormatError: if the file cannot be read, or is malformed.
    """
    if isinstance(source, bytes):
        return parse_level(source)
    path, number = split_pack_path(Path(source))
    data = read_bytes(path)
    if number is not None:
        return read_pack_level(data, number, str(path))
    return parse_level(data, str(path), is_text=path.suffix == TEXT_SUFFIX)


def parse_level(data: bytes, source: str = "<bytes>", is_text: bool = False) -> RawLevel:
    """Read one level from the bytes of a file.

    Args:
        data: the whole file.
        source: file name for messages.
        is_text: whether the file says by its name that it is text; otherwise the bytes decide.

    Raises:
        LevelFormatError: if the data are malformed.
    """
    if not data:
        raise LevelFormatError(source, "offset 0", "a level file (text, map bytes or attract file)", "no data")
    if not is_text and is_pack(data):
        return _only_level(read_pack(data, source), source)
    if is_text or 0 not in data[:_PROBE]:
        return parse_text(_decode(data, source), source)
    if is_attract(data):
        return read_attract(data, source).level
    return read_map(data, source)


def split_pack_path(path: Path) -> tuple[Path, int | None]:
    """Return pack and number of ``pack.txt#12``; the path itself and None if it is another path or a file."""
    name, _, number = str(path).rpartition("#")
    if name and number.isascii() and number.isdigit() and len(number) < 10 and not os.path.exists(path):
        return Path(name), int(number)
    return path, None


def _only_level(levels: tuple[RawLevel, ...], source: str) -> RawLevel:
    if len(levels) == 1:
        return levels[0]
    raise LevelFormatError(source, "file", f"one level, such as {source}#0", f"a pack of {len(levels)} levels")


def read_bytes(path: Path) -> bytes:
    """Return the contents of a file; devices, pipes and folders are refused unread.

    Raises:
        UnknownLevelError: if there is no file at the path.
        LevelFormatError: if it cannot be read, or is too large for a level file.
    """
    try:
        mode = path.stat().st_mode
        data = _read_start(path) if stat.S_ISREG(mode) else None
    except (FileNotFoundError, NotADirectoryError) as error:
        raise UnknownLevelError(f"{path}: expected the path of a level file, got no such file") from error
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the path
        raise LevelFormatError(str(path), "file", "a readable level file", str(error)) from error
    if data is None:
        kind = "a folder; name a file in it" if stat.S_ISDIR(mode) else "a device or pipe"
        raise LevelFormatError(str(path), "file", "a level file", kind)
    if len(data) > MAX_FILE_SIZE:
        raise LevelFormatError(str(path), "file", f"at most {MAX_FILE_SIZE} bytes", "more")
    return data


def _read_start(path: Path) -> bytes:
    """Return the bytes of a file, but hardly more than the limit."""
    with path.open("rb") as file:
        return file.read(MAX_FILE_SIZE + 1)


def _decode(data: bytes, source: str) -> str:
    """Return UTF-8 text; the mark that some editors put at the start is skipped."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise LevelFormatError(source, f"line {line}", "UTF-8 text", f"byte {data[error.start]:#04x}") from error
