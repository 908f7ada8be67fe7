"""The level library: equal level sets are shared within a process, their arrays across the machine."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from weakref import WeakValueDictionary

from nclone_env.level import array_cache
from nclone_env.level.level import Level
from nclone_env.level.level_set import ARRAYS_LAYOUT, LevelArrays, LevelSet, content_digest, pack

_held: WeakValueDictionary[str, LevelSet] = WeakValueDictionary()
"""The level sets in use, by names and contents of their levels."""


def shared_level_set(levels: Sequence[Level]) -> LevelSet:
    """Return the levels packed with their distance fields, one object for equal levels.

    The set is shared within the process while it is referenced. Its arrays are mapped from a file that all processes
    share (``level.array_cache``), so that equal levels are compiled once per machine.

    Raises:
        ConfigError: if ``NCLONE_ENV_LEVEL_CACHE_MB`` is not a whole number.
    """
    identity = _identity(levels)
    level_set = _held.get(identity)
    if level_set is not None:
        array_cache.counts.memory_hits += 1
        return level_set
    arrays = array_cache.cached_arrays("levels", content_digest(levels), ARRAYS_LAYOUT, lambda: _packed(levels))
    fields = arrays.pop("fields")
    return _held.setdefault(identity, LevelSet(tuple(levels), LevelArrays(**arrays), fields))


@dataclass(frozen=True)
class LibraryStatus:
    """Files, sizes and hit counters of the level library."""

    folder: Path
    """Folder of the files."""
    files: tuple[tuple[str, int], ...]
    """Name and bytes of each file, the most recently used first."""
    limit_bytes: int
    """Limit on the total size of the files."""
    held_sets: int
    """Level sets in use in this process."""
    held_bytes: int
    """Bytes of their packed arrays, mapped or not."""
    counts: array_cache.CacheCounts
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
            f"({counts.damaged} damaged files)"
        )


def level_library() -> LibraryStatus:
    """Return the files, sizes and hit counters of the level library.

    Raises:
        ConfigError: if ``NCLONE_ENV_LEVEL_CACHE_MB`` is not a whole number.
    """
    held = list(_held.values())
    return LibraryStatus(
        folder=array_cache.folder(),
        files=tuple((path.name, status.st_size) for path, status in array_cache.files()),
        limit_bytes=array_cache.limit_bytes(),
        held_sets=len(held),
        held_bytes=sum(level_set.memory().total_bytes for level_set in held),
        counts=array_cache.CacheCounts(**vars(array_cache.counts)),
    )


def _identity(levels: Sequence[Level]) -> str:
    """Return a digest of everything a level set exposes: contents, names and headers."""
    digest = hashlib.sha256()
    for level in levels:
        raw = level.raw
        header = (level.name, raw.title, raw.author, raw.level_id, raw.game_mode, raw.source)
        digest.update(repr((*header, raw.digest)).encode())
    return digest.hexdigest()


def _packed(levels: Sequence[Level]) -> array_cache.Arrays:
    """Return the packed arrays of levels by name."""
    packed = pack(levels, with_distances=True)
    return {**packed.arrays._asdict(), "fields": packed.fields}
