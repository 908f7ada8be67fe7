"""From names, paths, bytes and raw levels to levels; references are what a name or path means."""

import base64
import binascii
import os
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from itertools import chain, count
from pathlib import Path
from typing import Any

from nclone_env._files import expanded, inner_folders, suffix_of
from nclone_env.errors import LevelFormatError, UnknownLevelError, did_you_mean, plain, scalar, shortened
from nclone_env.level.catalog import level_sets, levels_folder
from nclone_env.level.formats.map_bytes import write_map
from nclone_env.level.formats.reader import INDEX_SUFFIX, MAP_SUFFIX, TEXT_SUFFIX, LevelFile
from nclone_env.level.level import Level, RawLevel, loading_fault
from nclone_env.options import as_text, several

_MOST_NAMED, _MOST_OTHERS = 50, 10
"""Files of a folder that are named: those left out, and those where there is no level."""
_NUMBERS = re.compile(r"[0-9]{1,9}(-[0-9]{1,9})?(,[0-9]{1,9}(-[0-9]{1,9})?)*")
_MOST_NUMBERED = 100_000
"""Levels of one list of numbers, so that a slip such as ``0-999999999`` does not fill the memory."""
_GENERATED, _MOST_GENERATED = "generated:", 10**9
_MAKER = "nclone_env.generate.names"
"""The module that makes generated levels: of a room behind this one, loaded when such a level is named."""
_NOT_INSTALLED = "none, as the package is in a zip file or not complete; install it"

OpenedPacks = dict[Path, LevelFile | None]
"""Opened files by path that may be packs; None for unreadable ones."""
_TEXT = "base64:"
"""Begins a text that holds map bytes: a level for JSON."""
LevelSource = str | Path | bytes | RawLevel | Level


@dataclass(frozen=True)
class LevelRef:
    """One level in a file.

    Attributes:
        path: the file.
        number: number of the level in a pack, from 0; None for a file of one level.
        name: ``set/level`` for a built-in level, ``pack.txt#12`` for a level of a pack, else the file name, with
            escapes for characters that are not printable.
    """

    path: Path
    number: int | None
    name: str
    _file: LevelFile | None = field(default=None, repr=False, compare=False)  # if resolving had to open it
    make: Callable[[], Level] | None = field(default=None, repr=False, compare=False)
    """Makes a generated level, which is in no file."""

    def load(self) -> Level:
        """Read the level, or make it."""
        if self.make is not None:
            return self.make()
        file = self._file or LevelFile.open(self.path)
        return Level(file.level(self.number), self.name)

    @property
    def title(self) -> str:
        """The title of a level of a pack, empty for other levels, which would have to be read."""
        pack = None if self._file is None or self.number is None else self._file.pack
        return "" if pack is None or self.number is None else pack.titles[self.number]

    @property
    def is_text(self) -> bool:
        """Whether the level is a file of text, as the built-in ones are."""
        return suffix_of(self.path) == TEXT_SUFFIX

    @property
    def reference(self) -> str:
        """The name or path that denotes this level alone: ``set/level``, ``folder/pack.txt#12`` or a file's path."""
        if self.make is not None or self.path == levels_folder() / f"{self.name}{TEXT_SUFFIX}":
            return self.name
        if self.number is not None:
            return f"{self.path}#{self.number}"
        return str(self.path if self.path.suffix else self.path.absolute())  # "walks/a" could be a built-in name


def resolve(name_or_path: str | Path, packs: OpenedPacks | None = None) -> tuple[LevelRef, ...]:
    """Return the levels that a name or path denotes.

    Args:
        name_or_path: a built-in set (``jumps``), a built-in level (``jumps/gap``), a file, a folder of level files
            and packs of any names (a warning names its files that hold none), a pack (all its levels), or levels of a
            pack by numbers from 0, both ends of a range included, or by title (``pack.txt#12``, ``pack.txt#0-95,100``,
            ``pack.txt#the basics``). A title that has the form of numbers is none. ``generated:0-255`` are levels that
            ``generate.names`` makes. Built-in names take precedence over files; a ``Path``, or a string such as
            ``./jumps``, is never a built-in name.
        packs: packs opened by earlier calls, extended; one dict for many names reads each pack once.
    """
    sets = level_sets()
    if isinstance(name_or_path, str):
        name_or_path = str.__str__(name_or_path)  # of text of NumPy, or a member of an enumeration
        built_in = any(name_or_path in names for names in sets.values())
        names = (name_or_path,) if built_in else sets.get(name_or_path)
        if names:
            return tuple(LevelRef(levels_folder() / f"{name}{TEXT_SUFFIX}", None, name) for name in names)
        if name_or_path.startswith(_GENERATED):
            return _generated_refs(name_or_path)
        if not name_or_path:  # as a path, this would be the current folder
            raise UnknownLevelError(_unknown(name_or_path, sets))
    try:
        return _refs_at(expanded(name_or_path), {} if packs is None else packs)
    except OSError as error:  # missing, or impossible as a path
        raise UnknownLevelError(_unknown(str(as_text(name_or_path)), sets)) from error


def _generated_refs(name: str) -> tuple[LevelRef, ...]:
    """Return the levels of ``generated:0-255:20..60``; what is behind the numbers is checked by their maker."""
    numbers, *options = name.removeprefix(_GENERATED).split(":")
    if not _NUMBERS.fullmatch(numbers):
        expected = "numbers behind 'generated:', such as generated:0-255 or generated:0-99:caves:20..60:held-out:seed-1"
        raise UnknownLevelError(f"level: expected {expected}, got {shortened(name, 200)}")
    maker = import_module(_MAKER)
    maker.Wanted.read(tuple(options), name)
    chosen = _numbers(numbers, name, _MOST_GENERATED)
    names = [":".join([f"{_GENERATED}{number}", *options]) for number in chosen]
    return tuple(
        LevelRef(Path(each), None, each, make=partial(maker.named_level, number, tuple(options), each))
        for number, each in zip(chosen, names, strict=True)
    )


def listed_names(refs: Sequence[LevelRef], most: int = 20) -> str:
    """Return the names of levels for a message, the first ones if there are many."""
    more = f" and {len(refs) - most} more" if len(refs) > most else ""
    return ", ".join(ref.name for ref in refs[:most]) + more


def _refs_at(path: Path, packs: OpenedPacks) -> tuple[LevelRef, ...]:
    if os.path.isdir(path):  # unlike those of Path, these return False for a selection too long to be a file name
        return _refs_in_folder(path)
    if not os.path.exists(path):
        return _refs_in_pack(str(path), packs)
    return _refs_of(path, _opened(path))


def _refs_of(path: Path, file: LevelFile | None) -> tuple[LevelRef, ...]:
    if file is None or file.pack is None:
        return (LevelRef(path, None, _file_name(path), file),)
    return tuple(_pack_ref(path, number, file) for number in range(len(file.pack)))


def _refs_in_folder(folder: Path) -> tuple[LevelRef, ...]:
    """Return the levels of all files in a folder, and warn of what has none; hidden files are not loaded."""
    refs: list[LevelRef] = []
    others: list[str] = []
    try:
        paths = sorted(folder.iterdir())
    except OSError as error:
        expected = "expected a readable folder of level files"
        raise UnknownLevelError(f"{plain(folder)}: {expected}, got {plain(error)}") from error
    for path in paths:
        is_hidden, is_index = path.name[0] == ".", path.suffix == INDEX_SUFFIX and path.with_suffix("") in paths
        if is_index or (is_hidden and not path.is_file()):
            continue
        try:
            found = _refs_of(path, LevelFile.found(path))
        except (LevelFormatError, UnknownLevelError) as error:
            got = error.got if isinstance(error, LevelFormatError) else "no such file"
            got = "a folder" if path.is_dir() else got
            others += [] if is_hidden else [f"{plain(path.name)} ({got})"]
            continue
        if is_hidden:
            others.append(f"{plain(path.name)} (a hidden file; rename it)")
        else:
            refs += found
    most = _MOST_NAMED if refs else _MOST_OTHERS
    more = f" and {len(others) - most} more" if len(others) > most else ""
    listed = f"{', '.join(others[:most])}{more}{inner_folders(folder)}"
    if not refs:
        expected = f"expected a folder of level files, got {f'others: {listed}' if others else 'none in it'}"
        raise UnknownLevelError(f"{plain(folder)}: {expected}")
    if others:
        warnings.warn(f"{plain(folder)}: left out what is no level: {listed}", RuntimeWarning, stacklevel=2)
    return tuple(refs)


def _refs_in_pack(reference: str, packs: OpenedPacks) -> tuple[LevelRef, ...]:
    """Return the levels that ``pack.txt#0-95,100`` or ``pack.txt#title`` denotes."""
    for mark in re.finditer("#", reference):  # paths and titles may contain it
        path, levels = Path(reference[: mark.start()]), reference[mark.end() :]
        if path not in packs and os.path.isfile(path):
            packs[path] = _opened(path)
        file = packs.get(path)
        if file is None or file.pack is None:
            continue
        if _NUMBERS.fullmatch(levels):
            return tuple(_pack_ref(path, number, file) for number in _numbers(levels, reference, len(file.pack)))
        found = [number for number, title in enumerate(file.pack.titles) if title == levels]
        if len(found) > 1:
            numbers = ", ".join(map(str, found))
            raise UnknownLevelError(
                f"level: expected the title of one level, got {shortened(reference, 200)}: numbers {numbers}"
            )
        if found:
            return (_pack_ref(path, found[0], file),)
    raise FileNotFoundError(reference)


def _numbers(text: str, reference: str, size: int) -> list[int]:
    """Return the numbers that a list such as ``0-95,100`` denotes, in its order."""
    numbers: list[int] = []
    for part in text.split(","):
        first, last = (int(bound) for bound in (part.split("-") * 2)[:2])
        if first <= last < size:
            if len(numbers) + last - first >= _MOST_NUMBERED:
                raise UnknownLevelError(
                    f"level: expected a list of at most {_MOST_NUMBERED} levels, got {shortened(part)} in "
                    f"{shortened(reference, 200)}; name fewer"
                )
            numbers += range(first, last + 1)
            continue
        if first > last:
            expected, fix = "ranges with the smaller number first", f"write {last}-{first}"
        else:
            expected = f"numbers from 0 to {size - 1} for a pack of {size} levels"
            fix = f"write {first}-{size - 1}" if first < size else "numbers count from 0"
        got = f"{shortened(part)} in {shortened(reference, 200)}"
        raise UnknownLevelError(f"level: expected {expected}, got {got}; {fix}")
    return numbers


def _opened(path: Path) -> LevelFile | None:
    """Open a file that may be a pack."""
    if suffix_of(path) == TEXT_SUFFIX:
        return None
    try:
        file = LevelFile.open(path)
        _ = file.pack  # it may have too many lines
    except LevelFormatError:  # loading the level reports it
        return None
    return file


def _pack_ref(path: Path, number: int, file: LevelFile) -> LevelRef:
    return LevelRef(path, number, f"{plain(path.name)}#{number}", file)


def _file_name(path: Path) -> str:
    built_in = path.parent.parent == levels_folder()
    return f"{path.parent.name}/{path.stem}" if built_in else plain(path.name)


def _unknown(name: str, sets: Mapping[str, Sequence[str]]) -> str:
    """Return the message for an unknown name."""
    known = [*sets, *(level for levels in sets.values() for level in levels)]
    same_ending = [full for full in known if full.endswith((f"/{name}", f"-{name}"))]  # ``walk`` of ``steps/01-walk``
    folder, _, number = name.rpartition("/")
    beginning = f"{folder}/{number.zfill(2)}-"  # ``steps/1`` or ``steps/01`` of ``steps/01-walk``
    numbered = [full for full in known if number.isdecimal() and full.startswith(beginning)]
    alike = same_ending or numbered
    hint = f"; did you mean {alike[0]!r}?" if alike else did_you_mean(name, known)
    hint = "; did you mean 'generated:0-255'?" if name == _GENERATED[:-1] else hint
    if not hint and "://" in name:
        return f"level: expected a path on this machine, got {shortened(name, 200)}; save the file and name its path"
    if not hint and (suffix_of(name) in (TEXT_SUFFIX, MAP_SUFFIX) or os.path.islink(name)):
        got = "a link to nothing" if os.path.islink(name) else "which does not exist"
        return f"level: expected a level file, got {shortened(name, 200)}, {got}"
    hint = hint or ("; give the contents of a file as bytes." if "\n" in name else ".")
    hint = "; name a file: standard input is not read." if name == "-" else hint
    words = re.findall(r"[^,;\s]+", name)
    if len(words) > 1 and set(words) <= set(known):
        hint = f"; did you mean {' and '.join(map(repr, words))}, as separate names?"
    listed = ", ".join(f"{key} ({len(levels)})" for key, levels in sets.items())
    return (
        f"level: expected a built-in set or level, a file or a folder, got {shortened(name, 200)}{hint}"
        f" Built-in sets with their numbers of levels: {listed or _NOT_INSTALLED}"
        f"{'; nclone-env levels list names all' if listed else ''}"
    )


def load_level(source: LevelSource) -> Level:
    """Return one level.

    Args:
        source: name of a built-in level, path of a level file, level of a pack (``pack.txt#12``), bytes of a level
            file, a text of :func:`levels_as_text`, a :class:`RawLevel`, or a level, which is returned as it is.

    Raises:
        LevelFormatError: if the data are malformed.
        UnknownLevelError: if there is no such level or file, or the name denotes several levels.
    """
    source = scalar(source)
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
    if not isinstance(source, (str, os.PathLike)):
        raise UnknownLevelError(f"level: expected a name, a path, bytes or a loaded level, got {shortened(source)}")
    refs = resolve(source if isinstance(source, str) else expanded(source))
    if len(refs) > 1:
        raise UnknownLevelError(
            f"level: expected one level, got {shortened(str(source), 200)}, which contains {listed_names(refs)}"
        )
    return refs[0].load()


def load_levels(sources: LevelSource | Iterable[LevelSource]) -> list[Level]:
    """Return the levels of several sources.

    Args:
        sources: sources as :func:`load_level` takes them, or just one; a name may denote a whole set, folder or pack,
            and bytes may be those of a pack.

    No two have the same name: files of the same name get their folders in front, ``caves/train.txt#0``, and other
    levels a number behind, ``one.toml (2)``. Of a name that denotes several levels, those that cannot be read are left
    out, with a warning that names each.
    """
    levels: list[Level] = []
    packs: OpenedPacks = {}
    for source in _several(sources):
        if isinstance(source, (str, os.PathLike)) and not str(source).startswith(_TEXT):
            name = source if isinstance(source, str) else expanded(source)
            levels.extend(level for _, level in readable(resolve(name, packs)))
        elif isinstance(source, bytes):
            levels.extend(_levels_of_bytes(source))
        else:
            levels.append(load_level(source))
    names = distinct_names([(level.name, level.raw.source) for level in levels])
    return [level if name == level.name else Level(level.raw, name) for level, name in zip(levels, names, strict=True)]


def _several(sources: LevelSource | Iterable[LevelSource]) -> tuple[Any, ...]:
    """Return the sources of an iterable, of a mapping its names, as of sets of levels; or one alone."""
    return several(list(sources) if isinstance(sources, Mapping) else sources)


def _levels_of_bytes(data: bytes) -> Iterator[Level]:
    file = LevelFile(data)
    numbers = (None,) if file.pack is None else range(len(file.pack))
    refs = [LevelRef(Path(file.source), number, file.source, file) for number in numbers]
    return (Level.of(level.raw) for _, level in readable(refs))


def levels_as_text(sources: LevelSource | Iterable[LevelSource]) -> tuple[str, ...]:
    """Return level sources as texts that JSON can hold and :func:`load_levels` takes; names and paths stay.

    Other levels become their names and map bytes: ``base64:`` with the name in UTF-8, a zero byte and the map bytes.
    """
    return tuple(text for source in _several(sources) for text in _as_texts(source))


def _as_texts(source: LevelSource) -> Iterator[str]:
    if isinstance(source, (str, os.PathLike)):
        yield str.__str__(source) if isinstance(source, str) else os.fspath(source)
        return
    for level in load_levels(source):
        data = level.name.encode(errors="replace") + b"\0" + write_map(level.raw)
        yield _TEXT + base64.b64encode(data).decode()


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
    """Yield the levels of a name; of several, warn of those that cannot be read, and leave them out."""
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


def distinct_names(named: Sequence[tuple[str, str]]) -> list[str]:
    """Return a name for each level, from its name and the path of its file: those of equal names get others."""
    places: dict[str, list[int]] = {}
    for number, (name, _) in enumerate(named):
        places.setdefault(name, []).append(number)
    told_apart = {number: name for name, equal in places.items() for number, name in _told_apart(name, equal, named)}
    result: dict[str, None] = {}
    for number in range(len(named)):
        names = chain([told_apart[number]], (f"{told_apart[number]} ({other})" for other in count(2)))
        result[next(name for name in names if name not in result)] = None
    return list(result)


def _told_apart(name: str, equal: Sequence[int], named: Sequence[tuple[str, str]]) -> Iterator[tuple[int, str]]:
    """Yield the numbers of levels of equal names, and these with as many folders in front as tell their files apart."""
    folders = [Path(named[number][1]).parent.parts for number in equal]
    depth = 0
    while len({parts[max(0, len(parts) - depth) :] for parts in folders}) < len(set(folders)):
        depth += 1
    for number, parts in zip(equal, folders, strict=True):
        yield number, "/".join((*parts[max(0, len(parts) - depth) :], name))
