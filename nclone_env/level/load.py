"""From names, paths, bytes and raw levels to levels."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from nclone_env.errors import LevelFormatError, UnknownLevelError, shortened
from nclone_env.level.formats.reader import LevelFile
from nclone_env.level.level import Level
from nclone_env.level.raw import RawLevel
from nclone_env.level.records import loading_fault
from nclone_env.level.reference import OpenedPacks, listed_names, resolve

LevelSource = str | Path | bytes | RawLevel | Level


def load_level(source: LevelSource) -> Level:
    """Return one level.

    Args:
        source: name of a built-in level, path of a level file, level of a pack (``pack.txt#12``), bytes of a level
            file, a :class:`RawLevel`, or a level, which is returned as it is.

    Raises:
        LevelFormatError: if the data are malformed.
        UnknownLevelError: if there is no such level or file, or the name denotes several levels.
    """
    if isinstance(source, Level):
        return source
    if isinstance(source, RawLevel):
        check_records(source)
        return Level.of(source)
    if isinstance(source, bytes):
        return Level.of(LevelFile(source).level())
    if not isinstance(source, (str, Path)):
        raise UnknownLevelError(f"level: expected a name, a path, bytes or a loaded level, got {shortened(source)}")
    refs = resolve(source)
    if len(refs) > 1:
        raise UnknownLevelError(
            f"level: expected one level, got {shortened(str(source), 200)}, which contains {listed_names(refs)}"
        )
    return refs[0].load()


def load_levels(sources: LevelSource | Iterable[LevelSource]) -> list[Level]:
    """Return the levels of several sources.

    Args:
        sources: sources as :func:`load_level` takes them, or just one; a name may denote a whole set, folder or pack.

    Raises:
        LevelFormatError: if the data are malformed.
        UnknownLevelError: if a name is neither built in nor a file.
    """
    levels: list[Level] = []
    packs: OpenedPacks = {}
    for source in [sources] if isinstance(sources, LevelSource) else sources:
        if isinstance(source, (str, Path)):
            levels.extend(ref.load() for ref in resolve(source, packs))
        else:
            levels.append(load_level(source))
    return levels


def check_records(raw: RawLevel) -> None:
    """Check the records of a level that was not read from a file.

    Raises:
        LevelFormatError: if they have no meaning as a level; it names the record.
    """
    fault = loading_fault(raw.records)
    if fault is not None:
        raise LevelFormatError(raw.source, f"record {fault.record}", fault.expected, fault.got)
