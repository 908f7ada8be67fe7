"""Files of searches that go on later: an ``.npz`` archive with one JSON text and the arrays of each search.

The text names the format, the level by the SHA-256 of its tiles and records, and the arguments of the search; a file
is only accepted for the same ones. Only the used rows of an archive are stored. Nothing in the file is executed.
Names, dtypes and shapes are checked, and damage is detected, but not forgery of the numbers: compiled code follows the
indices among them, so go on only with searches of your own.
"""

import json
import math
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from nclone_env._files import UNREADABLE, fill_file, open_regular
from nclone_env.errors import FormatError, shortened
from nclone_env.jit import module_digest

SEARCH_SUFFIX = ".search.npz"
_FORMAT = 1
_MOST_SEARCHES = 1000
_MOST_BYTES = 1 << 36


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
    source: str = ""
    """File for messages."""


def save_search(path: Path, level: str, arguments: Mapping[str, Any], search: SavedSearch) -> None:
    """Write a search of a level, given by its digest, to a file, which is complete or absent.

    ``arguments`` are those of ``solve`` that must be the same when the search goes on.

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


def load_search(path: Path, level: str, arguments: Mapping[str, Any]) -> SavedSearch:
    """Read a search from a file.

    Raises:
        FormatError: if it is not the file of a search, or of a search with other arguments.
        OSError: if it cannot be read.
    """
    arrays, text = _read(path)
    for name, expected in _conditions(level, arguments).items():
        if text.get(name) != expected:
            raise FormatError(str(path), name, f"{expected!r} as in this call", shortened(text.get(name)))
    for name, is_valid in _VALUES.items():
        if not is_valid(text.get(name)):
            raise FormatError(str(path), name, "what 'solve' has saved", shortened(text.get(name)))
    best = arrays.pop("best", None)
    if text["completed"] != _are_inputs(best):
        raise FormatError(str(path), "best", "the inputs of a solution if there is one", "others")
    searches: list[dict[str, np.ndarray]] = [{} for _ in range(text["searches"])]
    for name, array in arrays.items():
        number, _, key = name.partition(" ")
        if number not in map(str, range(len(searches))):
            raise FormatError(str(path), "arrays", f"those of {len(searches)} searches", shortened(name))
        searches[int(number)][key] = array
    counts = {name: text[name] for name in ("stage", "won", "first", "before", "seconds", "rounds")}
    return SavedSearch(best=best, searches=searches, source=str(path), **counts)


def _read(path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Return the arrays of a file by name, and its text."""
    with open_regular(path, _MOST_BYTES) as opened:
        try:
            _check_sizes(opened)
            with np.load(opened, allow_pickle=False) as file:
                arrays = {name: np.asarray(file[name]) for name in file.files}
            text = json.loads(arrays.pop("text").tobytes())
            if not isinstance(text, dict):
                raise ValueError(f"a text of type {type(text).__name__}")
        except UNREADABLE as error:
            expected = "the file of a search that 'solve' has saved"
            raise FormatError(str(path), "file", expected, shortened(str(error))) from error
    return arrays, text


def _check_sizes(file: BinaryIO) -> None:
    """Reject packed members: a small file could fill the memory with them."""
    with zipfile.ZipFile(file) as archive:
        for member in archive.infolist():
            if member.compress_type != zipfile.ZIP_STORED:
                raise ValueError("packed members")
    file.seek(0)


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**40


def _are_inputs(best: np.ndarray | None) -> bool:
    """Return whether an array is (T,) uint8 input bytes."""
    return best is not None and best.dtype == np.uint8 and best.ndim == 1 and best.size > 0 and bool(best.max() < 16)


_VALUES: Mapping[str, Callable[[Any], bool]] = {
    "stage": lambda value: isinstance(value, str),
    "won": lambda value: isinstance(value, dict) and all(_is_count(frames) for frames in value.values()),
    "first": _is_count,
    "before": _is_count,
    "seconds": lambda value: type(value) is float and 0.0 <= value < math.inf,
    "rounds": _is_count,
    "searches": lambda value: _is_count(value) and value <= _MOST_SEARCHES,
    "completed": lambda value: type(value) is bool,
}
"""Whether a value of the text is possible, by name."""


def _conditions(level: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return what must be the same when a search goes on; ``code`` changes with the sources of the search."""
    code = module_digest("nclone_env.plan.solver")
    return {"format": _FORMAT, "code": code, "level": level, **arguments}
