"""From anything that names a level to a compiled level."""

from __future__ import annotations

from pathlib import Path

from nclone_env.level.compile import Level, compile_level
from nclone_env.level.raw import RawLevel

LevelSource = str | Path | bytes | RawLevel | Level


def load_level(source: LevelSource) -> Level:
    """Return the compiled level.

    Args:
        source: a file path, map or attract bytes, a :class:`RawLevel`, or a level that is compiled already.

    Raises:
        LevelFormatError: if the data is malformed.
        UnknownLevelError: if there is no such file.
    """
    if isinstance(source, Level):
        return source
    if isinstance(source, RawLevel):
        return compile_level(source)
    from nclone_env.level.reader import read_level
    return compile_level(read_level(source))
