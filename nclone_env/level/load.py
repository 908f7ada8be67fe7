"""From anything that names a level to a compiled level."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from nclone_env.errors import UnknownLevelError
from nclone_env.level.catalog import level_name, resolve
from nclone_env.level.compile import Level, compile_level
from nclone_env.level.raw import RawLevel
from nclone_env.level.reader import read_level

LevelSource = str | Path | bytes | RawLevel | Level


def load_level(source: LevelSource) -> Level:
    """Return the compiled level.

    Args:
        source: a file path, map or attract bytes, a :class:`RawLevel`, or a level that is compiled already.

    Raises:
        LevelFormatError: if the data is malformed.
        UnknownLevelError: if there is no such file, or it is none of these.
    """
    if isinstance(source, Level):
        return source
    if isinstance(source, RawLevel):
        return compile_level(source)
    if not isinstance(source, (str, Path, bytes)):
        raise UnknownLevelError(
            f"level: expected a name, a path, bytes or a loaded level, got {source!r}; give several as a list or tuple"
        )
    name = "" if isinstance(source, bytes) else level_name(Path(source))
    return compile_level(read_level(source), name)


def load_levels(sources: Iterable[LevelSource]) -> list[Level]:
    """Return the compiled levels of several sources, where a name may stand for a whole set or folder.

    Raises:
        LevelFormatError: if data is malformed.
        UnknownLevelError: if a name is neither built in nor a file.
    """
    levels: list[Level] = []
    for source in sources:
        if isinstance(source, (str, Path)):
            levels.extend(load_level(path) for path in resolve(source))
        else:
            levels.append(load_level(source))
    return levels
