"""From anything that names a level to a compiled level."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from nclone_env.errors import LevelFormatError, UnknownLevelError
from nclone_env.level.catalog import level_name, listed_names, resolve
from nclone_env.level.compile import Level, compile_level
from nclone_env.level.formats.pack_text import read_pack
from nclone_env.level.formats.reader import read_bytes, read_level, split_pack_path
from nclone_env.level.raw import RawLevel
from nclone_env.level.records import loading_fault

LevelSource = str | Path | bytes | RawLevel | Level


def load_level(source: LevelSource) -> Level:
    """Return the compiled level.

    Args:
        source: name of a built-in level, file path, map or attract bytes, a :class:`RawLevel`, or a level that is
            compiled already.

    Raises:
        LevelFormatError: if the data is malformed.
        UnknownLevelError: if there is no such level or file, or the name stands for several levels.
    """
    if isinstance(source, Level):
        return source
    if isinstance(source, RawLevel):
        check_records(source)
        return compile_level(source)
    if isinstance(source, bytes):
        return compile_level(read_level(source))
    if not isinstance(source, (str, Path)):
        raise UnknownLevelError(f"level: expected a name, a path, bytes or a loaded level, got {source!r}")
    paths = resolve(source)
    if len(paths) != 1:
        raise UnknownLevelError(
            f"level: expected one level, got {str(source)!r}, which stands for {listed_names(paths)}"
        )
    return _load_files(paths)[0]


def check_records(raw: RawLevel) -> None:
    """Refuse a level that was not read from a file, and so not checked, if its records have no meaning.

    Raises:
        LevelFormatError: naming the record.
    """
    fault = loading_fault(raw.records)
    if fault is not None:
        raise LevelFormatError(raw.source, f"record {fault.record}", fault.expected, fault.got)


def load_levels(sources: Iterable[LevelSource]) -> list[Level]:
    """Return the compiled levels of several sources, where a name may stand for a whole set or folder.

    Raises:
        LevelFormatError: if data is malformed.
        UnknownLevelError: if a name is neither built in nor a file.
    """
    levels: list[Level] = []
    for source in sources:
        if isinstance(source, (str, Path)):
            levels.extend(_load_files(resolve(source)))
        else:
            levels.append(load_level(source))
    return levels


def _load_files(paths: Sequence[Path]) -> list[Level]:
    """Load the levels of what one name stands for; a whole pack is read once, not once for each of its levels."""
    pack, number = split_pack_path(paths[0])
    whole = number is not None and len(paths) > 1
    raws = read_pack(read_bytes(pack), str(pack)) if whole else map(read_level, paths)
    return [compile_level(raw, level_name(path)) for raw, path in zip(raws, paths)]
