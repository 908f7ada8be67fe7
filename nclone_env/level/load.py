"""From names, paths, bytes and raw levels to levels."""

import base64
import binascii
import warnings
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, count
from pathlib import Path

from nclone_env.errors import LevelFormatError, UnknownLevelError, shortened
from nclone_env.level.formats.map_bytes import write_map
from nclone_env.level.formats.reader import LevelFile
from nclone_env.level.level import Level, RawLevel
from nclone_env.level.records import loading_fault
from nclone_env.level.reference import LevelRef, OpenedPacks, listed_names, resolve

_TEXT = "base64:"
"""Begins a text that holds map bytes: a level for JSON."""
LevelSource = str | Path | bytes | RawLevel | Level


def load_level(source: LevelSource) -> Level:
    """Return one level.

    Args:
        source: name of a built-in level, path of a level file, level of a pack (``pack.txt#12``), bytes of a level
            file, a text of :func:`levels_as_text`, a :class:`RawLevel`, or a level, which is returned as it is.

    Raises:
        LevelFormatError: if the data are malformed.
        UnknownLevelError: if there is no such level or file, or the name denotes several levels.
    """
    if isinstance(source, Level):
        return source
    if isinstance(source, RawLevel):
        fault = loading_fault(source.records)
        if fault is not None:
            raise LevelFormatError(source.source, f"record {fault.record}", fault.expected, fault.got)
        return Level.of(source)
    if isinstance(source, bytes):
        return Level.of(LevelFile(source).level())
    if isinstance(source, str) and source.startswith(_TEXT):
        return _level_of_text(source)
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

    No two have the same name: files of the same name get their folders in front, ``caves/train.txt#0``, and other
    levels a number behind, ``one.toml (2)``. Of a name that denotes several levels, those that cannot be read are left
    out, with a warning that names each.

    Raises:
        LevelFormatError: if the data of one level, or of all levels of a name, are malformed.
        UnknownLevelError: if a name is neither built in nor a file.
    """
    levels: list[Level] = []
    packs: OpenedPacks = {}
    for source in [sources] if isinstance(sources, LevelSource) else sources:
        if isinstance(source, (str, Path)) and not str(source).startswith(_TEXT):
            levels.extend(level for _, level in readable(resolve(source, packs)))
        else:
            levels.append(load_level(source))
    return _with_distinct_names(levels)


def levels_as_text(sources: LevelSource | Iterable[LevelSource]) -> tuple[str, ...]:
    """Return level sources as texts that JSON can hold and :func:`load_levels` takes; names and paths stay.

    Other levels become their names and map bytes: ``base64:`` with the name in UTF-8, a zero byte and the map bytes.

    Raises:
        LevelFormatError: if a level cannot be read, or map bytes cannot hold it.
        UnknownLevelError: if a source is none.
    """
    return tuple(_as_text(source) for source in ([sources] if isinstance(sources, LevelSource) else sources))


def _as_text(source: LevelSource) -> str:
    if isinstance(source, (str, Path)):
        return str(source)
    level = load_level(source)
    data = level.name.encode(errors="replace") + b"\0" + write_map(level.raw)
    return _TEXT + base64.b64encode(data).decode()


def _level_of_text(text: str) -> Level:
    try:
        name, mark, data = base64.b64decode(text[len(_TEXT) :], validate=True).partition(b"\0")
        shown = name.decode()
    except (binascii.Error, UnicodeDecodeError) as error:
        raise LevelFormatError(shortened(text), "text", "a name and map bytes in base64", str(error)) from error
    if not mark:
        raise LevelFormatError(shortened(text), "text", "a zero byte behind the name", "none")
    return Level(LevelFile(data).level(), shown)


def readable(refs: Sequence[LevelRef]) -> Iterator[tuple[LevelRef, Level]]:
    """Yield the levels of a name; of several, warn of those that cannot be read, and leave them out.

    Raises:
        LevelFormatError: if none of them can be read.
    """
    fault: LevelFormatError | None = None
    found = 0
    for ref in refs:
        try:
            yield ref, ref.load()
            found += 1
        except LevelFormatError as error:
            if len(refs) == 1:
                raise
            warnings.warn(f"left out: {error}", RuntimeWarning, stacklevel=2)
            fault = fault or error
    if fault is not None and not found:
        raise fault


def _with_distinct_names(levels: list[Level]) -> list[Level]:
    """Return levels in which those of equal names have others."""
    places: dict[str, list[int]] = {}
    for number, level in enumerate(levels):
        places.setdefault(level.name, []).append(number)
    if len(places) == len(levels):
        return levels
    named = {number: name for name, equal in places.items() for number, name in _told_apart(name, equal, levels)}
    taken: set[str] = set()
    result = []
    for number, level in enumerate(levels):
        names = chain([named[number]], (f"{named[number]} ({other})" for other in count(2)))
        name = next(name for name in names if name not in taken)
        taken.add(name)
        result.append(level if name == level.name else Level(level.raw, name))
    return result


def _told_apart(name: str, equal: Sequence[int], levels: Sequence[Level]) -> Iterator[tuple[int, str]]:
    """Yield the numbers of levels of equal names, and these with as many folders in front as tell their files apart."""
    folders = [Path(levels[number].raw.source).parent.parts for number in equal]
    depth = 0
    while len({parts[max(0, len(parts) - depth) :] for parts in folders}) < len(set(folders)):
        depth += 1
    for number, parts in zip(equal, folders, strict=True):
        yield number, "/".join((*parts[max(0, len(parts) - depth) :], name))
