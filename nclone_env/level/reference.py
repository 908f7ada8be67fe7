"""References to levels: the meaning of a level name or path."""

import difflib
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from nclone_env.errors import LevelFormatError, UnknownLevelError, plain, shortened
from nclone_env.level.catalog import level_sets, levels_folder
from nclone_env.level.formats.reader import MAP_SUFFIX, TEXT_SUFFIX, LevelFile
from nclone_env.level.level import Level

_LEVEL_SUFFIXES = (TEXT_SUFFIX, MAP_SUFFIX, "")  # the game's own files have no suffix
_NUMBERS = re.compile(r"[0-9]{1,9}(-[0-9]{1,9})?(,[0-9]{1,9}(-[0-9]{1,9})?)*")

_NOT_INSTALLED = "none, as the package is in a zip file or not complete; install it"

OpenedPacks = dict[Path, LevelFile | None]
"""Opened files by path that may be packs; None for unreadable ones."""


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

    def load(self) -> Level:
        """Read the level.

        Raises:
            UnknownLevelError: if there is no such file.
            LevelFormatError: if the file cannot be read or is malformed.
        """
        file = self._file or LevelFile.open(self.path)
        return Level(file.level(self.number), self.name)

    @property
    def reference(self) -> str:
        """The name or path that denotes this level alone: ``set/level``, ``folder/pack.txt#12`` or a file's path."""
        if self.path == levels_folder() / f"{self.name}{TEXT_SUFFIX}":
            return self.name
        if self.number is not None:
            return f"{self.path}#{self.number}"
        return str(self.path if self.path.suffix else self.path.absolute())  # "walks/a" could be a built-in name


def resolve(name_or_path: str | Path, packs: OpenedPacks | None = None) -> tuple[LevelRef, ...]:
    """Return the levels that a name or path denotes.

    Args:
        name_or_path: a built-in set (``jumps``), a built-in level (``jumps/gap``), a file, a folder of level files
            (suffix ``.toml``, ``.map`` or none), a pack (all its levels), or levels of a pack by numbers from 0, both
            ends of a range included, or by title (``pack.txt#12``, ``pack.txt#0-95,100``, ``pack.txt#the basics``). A
            title that has the form of numbers is none. Built-in names take precedence over files; a ``Path``, or a
            string such as ``./jumps``, is never a built-in name.
        packs: packs opened by earlier calls, extended; one dict for many names reads each pack once.

    Raises:
        UnknownLevelError: if it is none of these, or a number is not in the pack; the message lists what there is.
    """
    sets = level_sets()
    if isinstance(name_or_path, str):
        built_in = any(name_or_path in names for names in sets.values())
        names = (name_or_path,) if built_in else sets.get(name_or_path)
        if names:
            return tuple(LevelRef(levels_folder() / f"{name}{TEXT_SUFFIX}", None, name) for name in names)
        if not name_or_path:  # as a path, this would be the current folder
            raise UnknownLevelError(_unknown(name_or_path, sets))
    try:
        return _refs_at(Path(name_or_path), {} if packs is None else packs)
    except OSError as error:  # missing, or impossible as a path
        raise UnknownLevelError(_unknown(str(name_or_path), sets)) from error


def listed_names(refs: Sequence[LevelRef], most: int = 20) -> str:
    """Return the names of levels for a message, the first ones if there are many."""
    more = f" and {len(refs) - most} more" if len(refs) > most else ""
    return ", ".join(ref.name for ref in refs[:most]) + more


def _refs_at(path: Path, packs: OpenedPacks) -> tuple[LevelRef, ...]:
    if os.path.isdir(path):  # unlike those of Path, these return False for a selection too long to be a file name
        return _refs_in_folder(path)
    if not os.path.exists(path):
        return _refs_in_pack(str(path), packs)
    file = _opened(path)
    if file is None or file.pack is None:
        return (LevelRef(path, None, _file_name(path), file),)
    return tuple(_pack_ref(path, number, file) for number in range(len(file.pack)))


def _refs_in_folder(folder: Path) -> tuple[LevelRef, ...]:
    try:
        named = (path for path in folder.iterdir() if path.suffix in _LEVEL_SUFFIXES and path.name[0] != ".")
        paths = sorted(path for path in named if path.is_file())
    except OSError as error:
        expected = "expected a readable folder of level files"
        raise UnknownLevelError(f"{plain(folder)}: {expected}, got {plain(error)}") from error
    if not paths:
        expected = "expected a folder of level files (.toml, .map or no suffix), got none in it"
        raise UnknownLevelError(f"{plain(folder)}: {expected}")
    return tuple(LevelRef(path, None, _file_name(path)) for path in paths)


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
    """Return the numbers that a list such as ``0-95,100`` denotes, in its order.

    Raises:
        UnknownLevelError: if a range is reversed, or a number is not in the pack.
    """
    numbers: list[int] = []
    for part in text.split(","):
        first, last = (int(bound) for bound in (part.split("-") * 2)[:2])
        if first <= last < size:
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
    if path.suffix == TEXT_SUFFIX:
        return None
    try:
        return LevelFile.open(path)
    except LevelFormatError:  # loading the level reports it
        return None


def _pack_ref(path: Path, number: int, file: LevelFile) -> LevelRef:
    return LevelRef(path, number, f"{plain(path.name)}#{number}", file)


def _file_name(path: Path) -> str:
    built_in = path.parent.parent == levels_folder()
    return f"{path.parent.name}/{path.stem}" if built_in else plain(path.name)


def _unknown(name: str, sets: Mapping[str, Sequence[str]]) -> str:
    """Return the message for an unknown name."""
    known = [*sets, *(level for levels in sets.values() for level in levels)]
    same_ending = [full for full in known if full.endswith((f"/{name}", f"-{name}"))]  # ``walk`` of ``steps/01-walk``
    close = same_ending or difflib.get_close_matches(name, known, n=1)
    suffix = Path(name).suffix
    if suffix and suffix in _LEVEL_SUFFIXES and not close:
        return f"level: expected a level file, got {shortened(name, 200)}, which does not exist"
    hint = f"; did you mean {close[0]!r}?" if close else "."
    listed = ", ".join(f"{key} ({len(levels)})" for key, levels in sets.items())
    return (
        f"level: expected a built-in set or level, a file or a folder, got {shortened(name, 200)}{hint}"
        f" Built-in sets with their numbers of levels: {listed or _NOT_INSTALLED}"
        f"{'; nclone-env levels list names all' if listed else ''}"
    )
