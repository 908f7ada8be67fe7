"""Read-only arrays cached once per machine: files in the user's cache folder, mapped by every process.

A file holds a few arrays derived from the contents of levels, or the glyphs of pictures. It can be deleted at any time;
the arrays are recomputed.

====== ===== ==============================================================================================
offset size  content (numbers are little-endian)
====== ===== ==============================================================================================
0      4     CRC-32 of everything behind it
4      4     size N of the description
8      24    zero
32     32    key: SHA-256 of format version, digest of the package's sources, name of the arrays, digest of the levels
64     N     description: JSON, the shape of each array by name
...          the arrays, each at the next multiple of 64
====== ===== ==============================================================================================

Opening a file verifies its contents (57 MB take 20 ms); a truncated, damaged or foreign file is removed and rebuilt.
Existing files are never modified: a file is written under a temporary name and then linked to its own, so the first of
several concurrent writers wins and all map the same pages. A crash leaves a temporary file, which the next process that
writes removes. A removed file stays valid in the processes that have mapped it. If the folder cannot be written, others
could have put files there (``jit.folder``), or the file does not fit within the limit, the arrays stay in the memory of
the process; that is no error.

Small arrays, such as planned solutions, are rows of a database in the same folder (``ArrayStore``), and never evicted.

The files of all versions are in ``levels``, beside the folders of compiled kernels. ``NCLONE_ENV_LEVEL_CACHE_MB``
limits their total size (2,000 by default, enough for 20,000 levels; 0 disables the cache); there are at most 500 files.
The least recently used go first.
"""

import contextlib
import hashlib
import json
import math
import mmap
import os
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from nclone_env._files import UNREADABLE, remove_temporaries_once, temporary_beside
from nclone_env.errors import ConfigError
from nclone_env.jit import cache_root, distrust, make_private, module_digest

if TYPE_CHECKING:  # some builds of Python have none, and few processes need it
    import sqlite3

VERSION = 2
SUFFIX = ".arrays"
LIMIT_VARIABLE = "NCLONE_ENV_LEVEL_CACHE_MB"
_DEFAULT_LIMIT_MB = 2000
_CHECKSUM = struct.Struct("<I")
_HEADER = struct.Struct("<I24x32s")  # what follows the checksum
_DATA = _CHECKSUM.size + _HEADER.size
_ALIGNMENT = 64
DATABASE = "small.sqlite"
_MAX_ROWS = 200_000
_WAIT = 60.0  # seconds for other processes that write to the database
MAX_FILES = 500  # the folder is listed whenever a file is written

Arrays = dict[str, np.ndarray]
Layout = Mapping[str, np.dtype]
"""The dtype of each array by name, in the order of the file."""


@dataclass
class CacheCounts:
    """Hit and miss counters of a process."""

    memory_hits: int = 0
    """Requests for a level set that the process already held."""
    file_hits: int = 0
    """Groups of arrays mapped from a file."""
    misses: int = 0
    """Groups of arrays computed."""
    damaged: int = 0
    """Truncated, damaged or foreign files found; each is also a miss."""


counts = CacheCounts()
"""The counters of this process."""


def cached_arrays(name: str, content: str, layout: Layout, make: Callable[[], Mapping[str, np.ndarray]]) -> Arrays:
    """Return read-only arrays mapped from their file, which is written on a miss; from plain memory if it cannot be.

    Args:
        name: name of the arrays; the file name begins with it.
        content: digest of everything that they depend on, besides the sources of ``make``.

    Raises:
        ConfigError: if ``NCLONE_ENV_LEVEL_CACHE_MB`` is not a whole number.
    """
    key = hashlib.sha256(f"{VERSION} {module_digest(make.__module__)} {name} {content}".encode()).digest()
    path = folder() / f"{name}-{key.hex()[:32]}{SUFFIX}"
    limit = limit_bytes()
    remove_temporaries_once(path.parent)
    is_kept = kept_folder() is not None
    found = _open(path, key, layout) if is_kept else None
    if found is not None:
        counts.file_hits += 1
        return found
    counts.misses += 1
    made = make()
    arrays = {item: np.ascontiguousarray(made[item], dtype) for item, dtype in layout.items()}
    for array in arrays.values():
        array.flags.writeable = False
    if not is_kept or not _publish(path, key, arrays, limit):
        return arrays
    return _open(path, key, layout) or arrays


class ArrayStore:
    """Small arrays that take long to make, kept one by one, by the digests of levels.

    The database keeps the latest 200,000; a damaged one is replaced. If there can be none, they stay in the memory of
    the process.

    Args:
        name: name of the arrays, with everything that they depend on besides the level and the sources.
        maker: name of the module whose sources they depend on.
        dtype: theirs.
    """

    def __init__(self, name: str, maker: str, dtype: type[np.generic]):
        self._name, self._dtype = f"{module_digest(maker)} {name}", dtype
        self._rows = _opened()

    def read(self, digests: Iterable[str]) -> dict[str, np.ndarray]:
        """Return the read-only arrays, (T,), of those levels that have one, by digest."""
        found = {}
        for digest in digests:
            with contextlib.suppress(zlib.error, self._rows.Error):  # damaged, or others write for a minute
                row = self._rows.execute("SELECT data FROM arrays WHERE key = ?", (self._key(digest),)).fetchone()
                if row is not None:
                    found[digest] = np.frombuffer(zlib.decompress(row[0]), self._dtype)
        return found

    def write(self, digest: str, array: np.ndarray) -> None:
        """Keep the array of a level."""
        row = (self._key(digest), zlib.compress(array.tobytes()))
        with contextlib.suppress(self._rows.Error):  # the disk is full, or others write for a minute
            self._rows.execute("INSERT OR REPLACE INTO arrays VALUES (?, ?)", row)

    def close(self) -> None:
        """Close the database."""
        self._rows.close()

    def _key(self, digest: str) -> bytes:
        return hashlib.sha256(f"{self._name} {digest}".encode()).digest()


def _opened() -> "sqlite3.Connection":
    """Return a connection to the database, a new one if it is damaged, or one in memory if no file can be kept."""
    import sqlite3

    place = kept_folder()
    for path in () if place is None else (place / DATABASE,) * 2:
        try:
            return _prepared(str(path))
        except sqlite3.OperationalError:  # it cannot be written, or not be locked
            break
        except sqlite3.DatabaseError:
            _remove(path)
    return _prepared(":memory:")


def _prepared(place: str) -> "sqlite3.Connection":
    import sqlite3

    rows = sqlite3.connect(place, timeout=_WAIT, isolation_level=None)
    try:
        rows.execute("PRAGMA synchronous = OFF")  # if the machine crashes, they are made again
        if rows.execute("PRAGMA quick_check").fetchone() != ("ok",):
            raise sqlite3.DatabaseError("damaged")
        rows.execute("CREATE TABLE IF NOT EXISTS arrays (key BLOB PRIMARY KEY, data BLOB NOT NULL)")
        with contextlib.suppress(sqlite3.OperationalError):  # what cannot be written can still be read
            rows.execute("DELETE FROM arrays WHERE rowid <= (SELECT max(rowid) FROM arrays) - ?", (_MAX_ROWS,))
    except sqlite3.Error:
        rows.close()
        raise
    return rows


def folder() -> Path:
    """Return the folder of the files; it need not exist."""
    return cache_root() / "levels"


def kept_folder() -> Path | None:
    """Return the folder, made if necessary; None if nothing is to be kept in it, or others could have put files there.

    Raises:
        ConfigError: if ``NCLONE_ENV_LEVEL_CACHE_MB`` is not a whole number.
    """
    place = folder()
    if limit_bytes():
        with contextlib.suppress(OSError):  # what cannot be written may still be read
            make_private(place)
        if not distrust(place):
            return place
    return None


def limit_bytes() -> int:
    """Return the limit on the total size of the files.

    Raises:
        ConfigError: if ``NCLONE_ENV_LEVEL_CACHE_MB`` is not a whole number.
    """
    text = os.environ.get(LIMIT_VARIABLE, "") or str(_DEFAULT_LIMIT_MB)
    if not (text.isascii() and text.isdigit()):
        raise ConfigError(f"{LIMIT_VARIABLE}: expected a whole number of MB, got {text!r}; 0 keeps no files")
    return int(text) * 1_000_000


def files() -> list[tuple[Path, os.stat_result]]:
    """Return the files with their sizes and times of last use (``st_mtime``), the most recent first."""
    found = []
    with contextlib.suppress(OSError), os.scandir(folder()) as entries:
        for entry in entries:
            if entry.name.endswith(SUFFIX) and not entry.name.startswith("."):  # as temporary ones do
                with contextlib.suppress(FileNotFoundError):  # removed by another process meanwhile
                    found.append((Path(entry.path), entry.stat()))
    return sorted(found, key=lambda item: (-item[1].st_mtime_ns, item[0]))


def clear_cache() -> int:
    """Remove all files and return how many; processes that have mapped one keep its contents."""
    found = files()
    for path, _ in found:
        _remove(path)
    return len(found)


def _open(path: Path, key: bytes, layout: Layout) -> Arrays | None:
    """Map a file; return None if there is none. An unusable file is removed."""
    memory: mmap.mmap | bytes
    try:
        with path.open("rb") as file:
            memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except ValueError:  # an empty file
        memory = b""
    except OSError:  # missing or unreadable
        return None
    arrays = _read(memory, key, layout)
    if arrays is None:
        counts.damaged += 1
        if isinstance(memory, mmap.mmap):
            memory.close()  # Windows removes no file that is mapped
        _remove(path)
        return None
    with contextlib.suppress(OSError):  # a folder that can only be read
        os.utime(path)
    return arrays


def _read(memory: mmap.mmap | bytes, key: bytes, layout: Layout) -> Arrays | None:
    """Return the arrays of a file, which they keep mapped; None if the file is not valid."""
    whole, arrays = np.frombuffer(memory, np.uint8), Arrays()
    try:
        size, got = _HEADER.unpack_from(memory, _CHECKSUM.size)
        if got != key or _CHECKSUM.unpack_from(memory)[0] != zlib.crc32(whole[_CHECKSUM.size :].data):
            return None
        end = _DATA + size
        shapes = json.loads(whole[_DATA:end].tobytes())
        for name, dtype in layout.items():
            start = _aligned(end)
            end = start + math.prod(shapes[name]) * dtype.itemsize
            arrays[name] = whole[start:end].view(dtype).reshape(shapes[name])
    except UNREADABLE:
        return None
    return arrays


def _publish(path: Path, key: bytes, arrays: Arrays, limit: int) -> bool:
    """Write a file unless another process has; return whether it exists."""
    description = json.dumps({name: array.shape for name, array in arrays.items()}).encode()
    header = _HEADER.pack(len(description), key)
    checksum, length = 0, _CHECKSUM.size
    for chunk in _chunks(header, description, arrays):
        checksum, length = zlib.crc32(chunk, checksum), length + len(chunk)
    if length > limit:
        return False
    try:
        with temporary_beside(path) as temporary:
            with temporary.open("wb") as file:
                file.writelines((_CHECKSUM.pack(checksum), *_chunks(header, description, arrays)))
            _link(temporary, path)
    except OSError:  # no such folder, no permission, no space
        return False
    _evict(limit)
    return True


def _chunks(header: bytes, description: bytes, arrays: Arrays) -> Iterator[bytes | memoryview]:
    """Yield the bytes after the checksum."""
    yield header
    yield description
    place = _DATA + len(description)
    for array in arrays.values():
        yield bytes(_aligned(place) - place)
        yield array.reshape(-1).view(np.uint8).data
        place = _aligned(place) + array.nbytes


def _link(temporary: Path, path: Path) -> None:
    """Give a file its final name; an existing file of that name stays."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        return
    except OSError:  # a file system without links: the last writer wins
        temporary.replace(path)


def _evict(limit: int) -> None:
    """Remove files beyond the limits, the least recently used."""
    total = 0
    for number, (path, status) in enumerate(files()):
        total += status.st_size
        if number >= MAX_FILES or total > limit:
            _remove(path)


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()


def _aligned(place: int) -> int:
    return -(-place // _ALIGNMENT) * _ALIGNMENT
