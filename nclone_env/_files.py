"""Write files so that nobody ever sees half of one."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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
    with temporary_beside(path) as temporary:
        fill(temporary)
        temporary.replace(path)


@contextmanager
def temporary_beside(path: Path) -> Iterator[Path]:
    """Give a hidden path beside ``path`` that nobody else writes to; what is there at the end is removed."""
    temporary = path.with_name(f".{os.getpid()}-{secrets.token_hex(4)}.{path.name}")
    try:
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)
