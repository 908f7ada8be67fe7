"""The level library: level sets held once per process, their arrays once per machine."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from weakref import WeakValueDictionary

from nclone_env.level import array_cache
from nclone_env.level.compile import Level
from nclone_env.level.level_set import ARRAYS_LAYOUT, LevelArrays, LevelSet, content_digest, pack

_held: WeakValueDictionary[str, LevelSet] = WeakValueDictionary()
"""The level sets that somebody uses, by names and contents of their levels."""


def shared_level_set(levels: Sequence[Level]) -> LevelSet:
    """Return the levels packed with their distance fields: the set of everybody who asks for equal levels.

    Within a process it is one object, for as long as anybody holds it. Its arrays are mapped from a file that all
    processes share (see ``level.array_cache``), so that equal levels are compiled once per machine.

    Args:
        levels: one or more levels.

    Raises:
        ConfigError: if ``NCLONE_ENV_LEVEL_CACHE_MB`` is not a whole number.
    """
    identity = _identity(levels)
    level_set = _held.get(identity)
    if level_set is not None:
        array_cache.counts.shared += 1
        return level_set
    arrays = array_cache.stored_arrays("levels", content_digest(levels), ARRAYS_LAYOUT, lambda: _packed(levels))
    fields = arrays.pop("fields")
    return _held.setdefault(identity, LevelSet(tuple(levels), LevelArrays(**arrays), fields))


@dataclass(frozen=True)
class LibraryStatus:
    """What the level library holds, and what became of the requests for levels in this process."""

    folder: Path
    """Where the files are."""
    files: tuple[tuple[str, int], ...]
    """Name and bytes of each file, the last used first."""
    limit_bytes: int
    """How large all files together may become."""
    held_sets: int
    """Level sets in use in this process."""
    held_bytes: int
    """Bytes of their packed arrays, mapped or not."""
    counts: array_cache.Counts
    """Requests of this process so far: shared, mapped, made."""

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
            f"which shared {counts.shared} times what it held, mapped {counts.mapped} files and made {counts.made} "
            f"groups of arrays ({counts.damaged} files were damaged)"
        )


def level_library() -> LibraryStatus:
    """Return the sizes and hit counters of the level library.

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
        counts=array_cache.Counts(**vars(array_cache.counts)),
    )


def _identity(levels: Sequence[Level]) -> str:
    """Return a digest of everything that can be told from a level set."""
    digest = hashlib.sha256()
    for level in levels:
        raw = level.raw
        said = (level.name, raw.title, raw.author, raw.level_id, raw.game_mode, raw.source, raw.digest)
        digest.update(repr(said).encode())
    return digest.hexdigest()


def _packed(levels: Sequence[Level]) -> array_cache.Arrays:
    """Compile and pack levels; what is compiled on the way is not kept with them."""
    packed = pack([Level(level.raw, level.name) for level in levels], with_distances=True)
    return {**packed.arrays._asdict(), "fields": packed.fields}
