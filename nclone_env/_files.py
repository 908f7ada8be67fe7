"""Write files so that nobody ever sees half of one."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any


def write_file(path: Path, data: bytes) -> None:
    """Write ``data`` to a temporary file beside ``path``, then rename it to ``path``.

    Raises:
        OSError: if the folder is missing or cannot be written to; ``path`` is then as it was before.
    """
    fill_file(path, lambda temporary: temporary.write_bytes(data))


def fill_file(path: Path, fill: Callable[[Path], Any]) -> None:
    """Let ``fill`` write a temporary file beside ``path``, then rename it to ``path``.

    Args:
        path: the file to make or to replace.
        fill: gets the path of the temporary file, whose name ends like that of ``path``.

    Raises:
        OSError: if the folder is missing or cannot be written to; ``path`` is then as it was before.
    """
    temporary = path.with_name(f".{os.getpid()}.{path.name}")
    try:
        fill(temporary)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)  # it is there only if something failed
