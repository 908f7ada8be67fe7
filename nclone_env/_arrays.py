"""Read-only arrays cached once per machine: files of NumPy in the user's cache folder, mapped by every process.

A group of arrays derived from the contents of levels, or the glyphs of pictures, is a folder with a ``.npy`` file for
each. The name has the key: a digest of the format version, the package's sources, the name of the arrays and the digest
of the levels. It can be deleted at any time; the arrays are recomputed. Small arrays of many levels, such as planned
solutions, are lines of one file for each key (``ArrayStore``): a folder of as many files would be slower to read.

A group with a missing, truncated or foreign file is removed and rebuilt; numbers in the files are not verified.
Existing files are never modified: a group is written under a temporary name and then renamed, so the first of several
concurrent writers wins and all map the same pages. A crash leaves a temporary folder, which the next process that
writes removes. A removed file stays valid in the processes that have mapped it. If the folder cannot be written, others
could have put files there (``_cache``), or the group does not fit within the limit, the arrays stay in the memory
of the process; that is no error.

The groups of all versions are in ``levels``, beside the folders of compiled kernels. ``NCLONE_ENV_LEVEL_CACHE_MB``
limits their total size (2,000 by default, enough for 20,000 levels; 0 disables the cache); there are at most 500. The
least recently used go first.
"""

import base64
import contextlib
import hashlib
import os
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from nclone_env._cache import cache_root, close_to_others, distrust, is_trusted, make_private
from nclone_env._files import UNREADABLE, open_regular, remove_temporaries_once, temporary_beside, variable
from nclone_env.errors import ConfigError
from nclone_env.jit import module_digest

VERSION = 3
LIMIT_VARIABLE = "NCLONE_ENV_LEVEL_CACHE_MB"
_DEFAULT_LIMIT_MB = 2000
MAX_GROUPS = 500  # the folder is listed whenever a group is written

Arrays = dict[str, np.ndarray]
Layout = Mapping[str, np.dtype]
"""The dtype of each array by name."""


@dataclass
class CacheCounts:
    """Hit and miss counters of a process."""

    memory_hits: int = 0
    """Requests for a level set that the process already held."""
    file_hits: int = 0
    """Groups of arrays mapped from files."""
    misses: int = 0
    """Groups of arrays computed."""
    damaged: int = 0
    """Groups with missing, truncated or foreign files; each is also a miss."""


counts = CacheCounts()
"""The counters of this process."""


def cached_arrays(name: str, content: str, layout: Layout, make: Callable[[], Mapping[str, np.ndarray]]) -> Arrays:
    """Return read-only arrays mapped from files, which are written on a miss; from plain memory if they cannot be.

    Args:
        name: name of the arrays; that of the group begins with it.
        content: digest of everything that they depend on, besides the sources of ``make``.
    """
    path, limit, is_kept = _path(name, make.__module__, content), limit_bytes(), kept_folder() is not None
    found = _open(path, layout) if is_kept else None
    if found is not None:
        counts.file_hits += 1
        return found
    counts.misses += 1
    made = make()
    arrays = {item: np.ascontiguousarray(made[item], dtype) for item, dtype in layout.items()}
    for array in arrays.values():
        array.flags.writeable = False
    if not is_kept or not _publish(path, arrays, limit):
        return arrays
    return _open(path, layout) or arrays


class ArrayStore:
    """Small arrays that take long to make, kept one by one, by the digests of levels, in a file of lines.

    A line has the digest and the packed bytes. Processes append whole lines; those that are not whole count as missing.

    Args:
        name: name of the arrays, with everything that they depend on besides the level and the sources.
        maker: name of the module whose sources they depend on.
    """

    def __init__(self, name: str, maker: str, dtype: type[np.generic]):
        self._dtype = dtype
        self._path = None if kept_folder() is None else _path(name.split()[0], maker, name)

    def read(self, digests: Iterable[str]) -> Arrays:
        """Return the read-only arrays, (T,), of those levels that have one, by digest."""
        found: Arrays = {}
        lines: dict[bytes, bytes] = {}
        with contextlib.suppress(OSError):  # there is none yet
            if self._path is not None:
                if not is_trusted(self._path):
                    self._path.unlink()  # others could write to it, or it is missing
                with open_regular(self._path, limit_bytes()) as file:
                    parts = [line.split() for line in file]
                lines = {line[0]: line[1] for line in parts if len(line) == 2}
                os.utime(self._path)
        for digest in digests:
            with contextlib.suppress(LookupError, ValueError, zlib.error):  # missing or damaged
                packed = base64.b64decode(lines[digest.encode()], validate=True)
                found[digest] = np.frombuffer(zlib.decompress(packed), self._dtype)
        return found

    def write(self, digest: str, array: np.ndarray) -> None:
        """Keep the array of a level."""
        line = b"\n%s %s" % (digest.encode(), base64.b64encode(zlib.compress(array.tobytes())))
        with contextlib.suppress(OSError):  # the disk is full, or can only be read
            if self._path is not None:
                with self._path.open("ab", buffering=0) as file:
                    if not file.tell():
                        close_to_others(self._path)
                    file.write(line)  # in one call of the system: others append as well


def folder() -> Path:
    """Return the folder of the groups; it need not exist."""
    return cache_root() / "levels"


def kept_folder() -> Path | None:
    """Return the folder, made if necessary; None if nothing is to be kept in it, or others could write to it."""
    place = folder()
    if limit_bytes():
        with contextlib.suppress(OSError):  # what cannot be written may still be read
            make_private(place)
        if not distrust(place):
            remove_temporaries_once(place)
            return place
    return None


def limit_bytes() -> int:
    """Return the limit on the total size of the files."""
    text = variable(LIMIT_VARIABLE) or str(_DEFAULT_LIMIT_MB)
    if not (text.isascii() and text.isdigit()):
        raise ConfigError(f"{LIMIT_VARIABLE}: expected a whole number of MB, got {text!r}; 0 keeps no files")
    return int(text) * 1_000_000


def files() -> list[tuple[Path, int]]:
    """Return the groups with their bytes, the most recently used first."""
    found: list[tuple[float, Path, int]] = []
    with contextlib.suppress(OSError):
        for path in folder().iterdir():
            if not path.name.startswith("."):  # as temporary ones do
                with contextlib.suppress(OSError):  # removed by another process meanwhile
                    parts = path.iterdir() if path.is_dir() else (path,)
                    found.append((-path.stat().st_mtime_ns, path, sum(each.stat().st_size for each in parts)))
    return [(path, size) for _, path, size in sorted(found)]


def clear_cache() -> int:
    """Remove all groups and return how many; processes that have mapped one keep its contents."""
    found = files()
    for path, _ in found:
        _remove(path)
    return len(found)


def _path(name: str, maker: str, content: str) -> Path:
    """Return where arrays are kept that depend on some contents and on the sources of a module."""
    key = hashlib.sha256(f"{VERSION} {module_digest(maker)} {name} {content}".encode()).hexdigest()
    return folder() / f"{name}-{key[:32]}"


def _open(path: Path, layout: Layout) -> Arrays | None:
    """Map a group; return None if there is none. An unusable one is removed."""
    before = _identity(path)
    if before is None:
        return None
    try:
        if not all(map(is_trusted, (path, *(path / f"{name}.npy" for name in layout)))):
            raise ValueError(f"{path}: others could write to it")  # as to the cache, for a while
        arrays = {name: _mapped(path / f"{name}.npy", dtype) for name, dtype in layout.items()}
    except UNREADABLE:
        if _identity(path) == before:  # else another process has removed or replaced it meanwhile
            counts.damaged += 1
            _remove(path)
        return None
    with contextlib.suppress(OSError):  # a folder that can only be read
        os.utime(path)
    return arrays


def _identity(path: Path) -> tuple[int, int] | None:
    """Return what tells a group from others that have its name later, None if there is none."""
    with contextlib.suppress(OSError):
        status = path.stat()
        return status.st_ino, status.st_ctime_ns
    return None


def _mapped(path: Path, dtype: np.dtype) -> np.ndarray:
    """Map an array; ``ValueError`` if it is another or not whole."""
    array: Any = np.load(os.fspath(path), mmap_mode="r", allow_pickle=False)  # of a Path it looks up every folder
    if array.dtype != dtype or not array.flags.c_contiguous:
        raise ValueError(f"{path}: expected {dtype}, got {array.dtype}")
    return np.ndarray(array.shape, dtype, array)  # dtype: files tell whether fields are aligned only by their places


def _publish(path: Path, arrays: Arrays, limit: int) -> bool:
    """Write a group unless another process has; return whether it exists."""
    if sum(array.nbytes for array in arrays.values()) > limit:
        return False
    try:
        with temporary_beside(path, folder=True) as temporary:
            for name, array in arrays.items():
                np.save(temporary / f"{name}.npy", array, allow_pickle=False)
            for each in (temporary, *temporary.iterdir()):
                close_to_others(each)
            _rename(temporary, path)
    except OSError:  # no such folder, no permission, no space
        return False
    _evict(limit)
    return True


def _rename(temporary: Path, path: Path) -> None:
    """Give a group its final name; an existing one stays."""
    try:
        temporary.rename(path)
    except OSError:
        if not path.exists():
            raise


def _evict(limit: int) -> None:
    """Remove groups beyond the limits, the least recently used."""
    total = 0
    for number, (path, size) in enumerate(files()):
        total += size
        if number >= MAX_GROUPS or total > limit:
            _remove(path)


def _remove(path: Path) -> None:
    """Remove a group: first its name, so that no other process finds a part of it."""
    with contextlib.suppress(OSError), temporary_beside(path, folder=True) as aside:
        path.rename(aside / path.name)


@dataclass(frozen=True)
class LibraryStatus:
    """Files, sizes and hit counters of the level library."""

    folder: Path
    """Folder of the files."""
    files: tuple[tuple[str, int], ...]
    """Name and bytes of each group of arrays, the most recently used first."""
    limit_bytes: int
    """Limit on their total size."""
    held_sets: int
    """Level sets in use in this process."""
    held_bytes: int
    """Bytes of their packed arrays, mapped or not."""
    counts: CacheCounts
    """Hits and misses of this process so far."""

    @property
    def file_bytes(self) -> int:
        """Bytes of all files."""
        return sum(size for _, size in self.files)

    def listing(self) -> str:
        """Return the files and their sizes as text."""
        lines = [f"{size / 1e6:10.1f} MB  {name}" for name, size in self.files]
        return "\n".join(
            [*lines, f"{self.file_bytes / 1e6:10.1f} MB  of {self.limit_bytes / 1e6:.0f} in {self.folder}"]
        )

    def __str__(self) -> str:
        counts = self.counts
        return (
            f"{self.listing()}\n{self.held_bytes / 1e6:10.1f} MB  in {self.held_sets} level sets of this process, "
            f"with {counts.memory_hits} hits in memory, {counts.file_hits} in files and {counts.misses} misses "
            f"({counts.damaged} damaged)"
        )


def library_status(held_sets: int, held_bytes: int) -> LibraryStatus:
    """Return the files and counters, with the level sets that this process holds."""
    rows = tuple((path.name, size) for path, size in files())
    return LibraryStatus(folder(), rows, limit_bytes(), held_sets, held_bytes, replace(counts))
