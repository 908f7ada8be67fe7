"""The built-in levels, and what a level name means."""

from __future__ import annotations

import difflib
from pathlib import Path

from nclone_env.errors import UnknownLevelError
from nclone_env.level.reader import MAP_SUFFIX, TEXT_SUFFIX

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


def resolve(name_or_path: str | Path) -> tuple[Path, ...]:
    """Return the level files that a name or path stands for.

    Args:
        name_or_path: a built-in set (``jumps``), a built-in level (``jumps/gap``), a file, or a folder
            whose files with suffix ``.toml``, ``.map`` or none are levels. Built-in names win over files; a
            ``Path``, or a string such as ``./jumps``, is never a built-in name.

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
            return (path,)
        raise FileNotFoundError(path)
    try:
        files = sorted(item for item in path.iterdir() if item.is_file() and _looks_like_level(item))
    except OSError as error:
        raise UnknownLevelError(f"{path}: expected a readable folder of level files, got {error}") from error
    if not files:
        raise UnknownLevelError(f"{path}: expected a folder of level files (.toml, .map or no suffix), got none in it")
    return tuple(files)


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
