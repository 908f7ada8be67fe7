"""Writing a file so that nobody ever sees half of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any


def write_atomically(path: Path, write: Callable[[Path], Any]) -> None:
    """Let ``write`` fill a temporary file beside ``path``, then rename it; parent folders are made.

    Args:
        path: the file to make or to replace.
        write: gets the path of the temporary file, whose name ends like that of ``path``.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".partial-{path.name}")
    try:
        write(temporary)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
