"""Atomic writes: a file is complete or absent, never partial."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


def write_file(path: Path, data: bytes) -> None:
    """Write ``data`` to a temporary file next to ``path``, then rename it to ``path``.

    Raises:
        OSError: if the folder is missing or not writable; ``path`` is left unchanged.
    """
    fill_file(path, lambda temporary: temporary.write_bytes(data))


def fill_file(path: Path, fill: Callable[[Path], Any]) -> None:
    """Call ``fill`` to write a temporary file next to ``path``, then rename it to ``path``.

    Args:
        path: file to create or replace.
        fill: writes the temporary file, given its path; the suffix is that of ``path``.

    Raises:
        OSError: if the folder is missing or not writable; ``path`` is left unchanged.
    """
    with temporary_beside(path) as temporary:
        fill(temporary)
        temporary.replace(path)


@contextmanager
def temporary_beside(path: Path) -> Iterator[Path]:
    """Yield the path of a unique hidden file next to ``path``; the file is removed on exit if it exists."""
    temporary = path.with_name(f".{os.getpid()}-{secrets.token_hex(4)}.{path.name}")
    try:
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)
