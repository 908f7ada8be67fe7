"""Files of searches that go on later: an ``.npz`` archive with one JSON text and the arrays of each search.

The text names the format, the level by the SHA-256 of its map bytes, and the arguments of the search; a file is only
accepted for the same ones. Only the used rows of an archive are stored. Nothing in the file is executed.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nclone_env._files import fill_file
from nclone_env.errors import FormatError
from nclone_env.jit import source_digest
from nclone_env.level.formats.map_bytes import write_map
from nclone_env.level.level import Level

SUFFIX = ".search.npz"
_FORMAT = 1


@dataclass(frozen=True, eq=False)
class SavedSearch:
    """What a search needs to go on."""

    best: np.ndarray | None
    """(T,) uint8, the inputs of the best solution."""
    stage: str
    won: Mapping[str, int]
    """Frames won by each stage after the first."""
    first: int
    """Cost of the first solution."""
    before: int
    """Frames simulated until there was a first solution."""
    seconds: float
    """Seconds of the search so far."""
    rounds: int
    """Rounds complete of the searches that are running."""
    searches: Sequence[Mapping[str, np.ndarray]]
    """The arrays of each search that is running; none if they are still to begin."""


def save_search(path: Path, level: Level, arguments: Mapping[str, Any], search: SavedSearch) -> None:
    """Write a search to a file, which is complete or absent.

    Args:
        path: file to create or replace.
        level: the level.
        arguments: those of ``solve`` that must be the same when the search goes on.
        search: the search.

    Raises:
        OSError: if the file cannot be written.
    """
    text = _conditions(level, arguments) | {
        name: getattr(search, name) for name in ("stage", "won", "first", "before", "seconds", "rounds")
    }
    text |= {"searches": len(search.searches), "completed": search.best is not None}
    arrays = {f"{number} {name}": array for number, one in enumerate(search.searches) for name, array in one.items()}
    if search.best is not None:
        arrays["best"] = search.best
    arrays["text"] = np.frombuffer(json.dumps(text).encode(), np.uint8)

    def fill(temporary: Path) -> None:
        with temporary.open("wb") as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]

    fill_file(path, fill)


def load_search(path: Path, level: Level, arguments: Mapping[str, Any]) -> SavedSearch:
    """Read a search from a file.

    Raises:
        FormatError: if it is not the file of a search, or of a search with other arguments.
        OSError: if it cannot be read.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        text = json.loads(arrays.pop("text").tobytes())
    except (zipfile.BadZipFile, ValueError, KeyError, EOFError) as error:
        raise FormatError(str(path), "file", "the file of a search that 'solve' has saved", str(error)) from error
    for name, expected in _conditions(level, arguments).items():
        if text.get(name) != expected:
            raise FormatError(str(path), name, f"{expected!r} as in this call", repr(text.get(name)))
    searches: list[dict[str, np.ndarray]] = [{} for _ in range(text["searches"])]
    best = arrays.pop("best") if text["completed"] else None
    for name, array in arrays.items():
        number, _, key = name.partition(" ")
        searches[int(number)][key] = array
    counts = {name: text[name] for name in ("stage", "won", "first", "before", "seconds", "rounds")}
    return SavedSearch(best=best, searches=searches, **counts)


def _conditions(level: Level, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return what must be the same when a search goes on; ``code`` changes with the sources of the package."""
    return {
        "format": _FORMAT,
        "code": source_digest(),
        "level": hashlib.sha256(write_map(level.raw)).hexdigest(),
    } | dict(arguments)
