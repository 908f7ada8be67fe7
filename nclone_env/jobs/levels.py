"""Jobs on levels that are named."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property

from nclone_env.errors import ConfigError
from nclone_env.jobs.job import Job
from nclone_env.level import LevelRef, OpenedPacks, resolve


@dataclass(frozen=True)
class LevelJob(Job):
    """A task for each of some levels.

    Attributes:
        levels: built-in sets or levels by name, level files, folders or packs.
    """

    levels: tuple[str, ...]

    @cached_property
    def refs(self) -> tuple[LevelRef, ...]:
        """The levels.

        Raises:
            ConfigError: if there is none.
            UnknownLevelError: if a name denotes no level.
        """
        packs: OpenedPacks = {}
        refs = tuple(ref for name in self.levels for ref in resolve(name, packs))
        if not refs:
            raise ConfigError("levels: expected at least one level, got none; name a set, a level or a file")
        return refs

    @property
    def total(self) -> int:
        """Number of levels."""
        return len(self.refs)

    @property
    def digest(self) -> str:
        """Of the names of the levels and the contents of their files."""
        digest = hashlib.sha256("\n".join(ref.name for ref in self.refs).encode())
        for path in dict.fromkeys(ref.path for ref in self.refs):
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
        return digest.hexdigest()[:16]
