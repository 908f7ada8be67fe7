"""The built-in levels, and what a level name means."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path

from nclone_env.errors import LevelFormatError, UnknownLevelError
from nclone_env.level.formats.pack_text import is_pack, pack_titles
from nclone_env.level.formats.reader import MAP_SUFFIX, TEXT_SUFFIX, read_bytes, split_pack_path

_PACKAGE = Path(__file__).parents[1]
_LEVEL_SUFFIXES = (TEXT_SUFFIX, MAP_SUFFIX, "")  # the game's own files have no suffix


def levels_folder() -> Path:
    """Return the folder of the built-in levels: inside an installed package, beside it in a checkout."""
    installed = _PACKAGE / "_levels"
    return installed if installed.is_dir() else _PACKAGE.parent / "levels"


def level_sets() -> dict[str, tuple[Path, ...]]:
    """Return the files of each built-in set by its name; sets and files in alphabetical order."""
    folder = levels_folder()
    folders = sorted(path for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
    files = {path.name: tuple(sorted(path.glob(f"*{TEXT_SUFFIX}"))) for path in folders}
    return {name: paths for name, paths in files.items() if paths}


def level_name(path: Path) -> str:
    """Return ``set/level`` for the file of a built-in level, the file's name for any other."""
    builtin = path.parent.parent == levels_folder()
    return f"{path.parent.name}/{path.stem}" if builtin else path.name


def listed_names(paths: Sequence[Path], most: int = 20) -> str:
    """Return the names of levels for a message, the first ones if there are many."""
    more = f" and {len(paths) - most} more" if len(paths) > most else ""
    return ", ".join(map(level_name, paths[:most])) + more


def resolve(name_or_path: str | Path) -> tuple[Path, ...]:
    """Return the level files that a name or path stands for.

    Args:
        name_or_path: a built-in set (``jumps``), a built-in level (``jumps/gap``), a file, a folder
            whose files with suffix ``.toml``, ``.map`` or none are levels, a pack (all its levels), or a level of a
            pack by number from 0 or by title (``pack.txt#12``, ``pack.txt#the basics``). Built-in names win over
            files; a ``Path``, or a string such as ``./jumps``, is never a built-in name.

    Returns:
        Paths for :func:`nclone_env.level.formats.reader.read_level`; the levels of a pack as ``pack.txt#0`` and so on.

    Raises:
        UnknownLevelError: if it is none of these; the message lists the built-in names.
    """
    sets = level_sets()
    if isinstance(name_or_path, str):
        names = {level_name(path): (path,) for paths in sets.values() for path in paths} | sets
        if name_or_path in names:
            return names[name_or_path]
        if not name_or_path:  # as a path this would be the current folder
            raise UnknownLevelError(_unknown(name_or_path, sets))
    try:
        return _files_at(Path(name_or_path))
    except OSError as error:  # missing, or no possible path at all
        raise UnknownLevelError(_unknown(str(name_or_path), sets)) from error


def _files_at(path: Path) -> tuple[Path, ...]:
    if not path.is_dir():
        if path.exists():
            return _levels_in(path)
        return _level_of_pack(str(path))
    try:
        files = sorted(item for item in path.iterdir() if item.is_file() and _looks_like_level(item))
    except OSError as error:
        raise UnknownLevelError(f"{path}: expected a readable folder of level files, got {error}") from error
    if not files:
        raise UnknownLevelError(f"{path}: expected a folder of level files (.toml, .map or no suffix), got none in it")
    return tuple(files)


def _levels_in(path: Path) -> tuple[Path, ...]:
    """Return the paths of all levels in a file: of each level of a pack, else of the file."""
    titles = _titles(path)
    return tuple(_numbered(path, number) for number in range(len(titles))) or (path,)


def _level_of_pack(reference: str) -> tuple[Path, ...]:
    """Return the path of the level that ``pack.txt#12`` or ``pack.txt#title`` names."""
    pack, number = split_pack_path(Path(reference))
    if number is not None and _titles(pack):
        return (_numbered(pack, number),)
    for place in (place for place, character in enumerate(reference) if character == "#"):
        pack, title = Path(reference[:place]), reference[place + 1 :]
        found = [number for number, other in enumerate(_titles(pack)) if other == title]
        if len(found) > 1:
            numbers = ", ".join(map(str, found))
            raise UnknownLevelError(f"level: expected the title of one level, got {reference!r}: numbers {numbers}")
        if found:
            return (_numbered(pack, found[0]),)
    raise FileNotFoundError(reference)


def _titles(path: Path) -> tuple[str, ...]:
    """Return the titles of the levels of a pack; none if it is no pack."""
    if not path.is_file() or path.suffix == TEXT_SUFFIX:
        return ()
    try:
        data = read_bytes(path)
    except LevelFormatError:  # whoever reads the level hears about it
        return ()
    return pack_titles(data) if is_pack(data) else ()


def _numbered(pack: Path, number: int) -> Path:
    return pack.with_name(f"{pack.name}#{number}")


def _looks_like_level(path: Path) -> bool:
    return path.suffix in _LEVEL_SUFFIXES and not path.name.startswith(".")


def _unknown(name: str, sets: dict[str, tuple[Path, ...]]) -> str:
    """Return the message for a name that is nothing we know."""
    known = [*sets, *(level_name(path) for paths in sets.values() for path in paths)]
    same_ending = [full for full in known if full.endswith((f"/{name}", f"-{name}"))]  # ``walk`` of ``steps/01-walk``
    close = same_ending or difflib.get_close_matches(name, known, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else "."
    listed = "; ".join(f"{key}: {', '.join(path.stem for path in paths)}" for key, paths in sets.items())
    return (
        f"level: expected a built-in set or level, a file or a folder, got {name!r}{hint}"
        f" Built-in sets and their levels: {listed or 'none'}"
    )
