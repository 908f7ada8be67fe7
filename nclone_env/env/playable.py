"""The levels of a configuration, as environments play them."""

from __future__ import annotations

from nclone_env.config import EnvironmentConfig
from nclone_env.errors import UnsupportedLevelError
from nclone_env.level import LevelSet, count_exits, load_levels, mirrored, shared_level_set


def playable_levels(config: EnvironmentConfig) -> LevelSet:
    """Load the levels of a configuration; environments with the same levels share them.

    Raises:
        UnsupportedLevelError: if one has no exit.
    """
    levels = load_levels(config.levels)
    if config.mirrored:
        levels += [mirrored(level) for level in levels]
    for level in levels:
        if not count_exits(level.raw.records):
            raise UnsupportedLevelError(
                f"levels: {level.name!r} has no exit, so no episode could succeed; simulate() plays such levels, "
                f"environments need at least one exit with its switch"
            )
    return shared_level_set(levels)
