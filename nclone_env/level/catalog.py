"""The built-in levels: sets of text files that ship with the package."""

import os
import re
from pathlib import Path

from nclone_env.level.formats.reader import TEXT_SUFFIX

_PACKAGE = Path(__file__).parents[1]


def levels_folder() -> Path:
    """Return the folder of the built-in levels: inside an installed package, beside it in a checkout."""
    installed = _PACKAGE / "_levels"
    return installed if installed.is_dir() else _PACKAGE.parent / "levels"


def level_sets() -> dict[str, tuple[str, ...]]:
    """Return the level names of each built-in set, ``set/level``; in alphabetical order, numbers in names by value."""
    folder = levels_folder()
    folders = [entry for entry in os.scandir(folder) if entry.is_dir()] if folder.is_dir() else []
    files = {entry.name: [name for name in os.listdir(entry) if name.endswith(TEXT_SUFFIX)] for entry in folders}
    stems = {name: [file.removesuffix(TEXT_SUFFIX) for file in files[name]] for name in files}
    found = {name: sorted(stems[name], key=by_number) for name in sorted(stems, key=by_number)}
    return {name: tuple(f"{name}/{stem}" for stem in stems) for name, stems in found.items() if stems}


def by_number(name: str) -> list[tuple[str, int]]:
    """Return a key by which ``motifs-10`` follows ``motifs-9``."""
    return [(text, int(number or 0)) for text, number in re.findall(r"(\D*)(\d*)", name)]
