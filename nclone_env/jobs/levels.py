"""The levels of a job."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from nclone_env.errors import ConfigError
from nclone_env.level import LevelRef, OpenedPacks, resolve


def refs_of(names: Iterable[str]) -> tuple[LevelRef, ...]:
    """Return the levels of some names.

    Raises:
        ConfigError: if there is none.
        UnknownLevelError: if a name denotes no level.
    """
    packs: OpenedPacks = {}
    refs = tuple(ref for name in names for ref in resolve(name, packs))
    if not refs:
        raise ConfigError("levels: expected at least one level, got none; name a set, a level or a file")
    return refs


def digest_of(refs: Sequence[LevelRef]) -> str:
    """Return a digest of the names of levels and the contents of their files."""
    digest = hashlib.sha256("\n".join(ref.name for ref in refs).encode())
    for path in dict.fromkeys(ref.path for ref in refs):
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:16]
