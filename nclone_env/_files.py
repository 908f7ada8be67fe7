"""Atomic writes: a file is complete or absent, never partial, also after a crash of the process or the machine."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_TEMPORARY = re.compile(r"\.(\d+)-[0-9a-f]{8}\..+")


def write_file(path: Path, data: bytes) -> None:
    """Write ``data`` to a temporary file next to ``path``, then rename it to ``path``.

    Raises:
        OSError: if the folder is missing or not writable; ``path`` is left unchanged.
    """
    fill_file(path, lambda temporary: temporary.write_bytes(data))


def fill_file(path: Path, fill: Callable[[Path], Any]) -> None:
    """Call ``fill`` to write a temporary file next to ``path``, then rename it to ``path``.

    The contents reach the disk before the name does, so that a power failure leaves the old file or the new one.

    Args:
        path: file to create or replace.
        fill: writes the temporary file, given its path; the suffix is that of ``path``.

    Raises:
        OSError: if the folder is missing or not writable; ``path`` is left unchanged.
    """
    with temporary_beside(path) as temporary:
        fill(temporary)
        _synchronise(temporary)
        temporary.replace(path)
        _synchronise(path.parent)


@contextmanager
def temporary_beside(path: Path) -> Iterator[Path]:
    """Yield the path of a unique hidden file next to ``path``; the file is removed on exit if it exists."""
    temporary = path.with_name(f".{os.getpid()}-{secrets.token_hex(4)}.{path.name}")
    try:
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)


def remove_temporaries(folder: Path) -> None:
    """Remove the temporary files in a folder whose processes have ended without finishing them."""
    for path in folder.iterdir():
        match = _TEMPORARY.fullmatch(path.name)
        if match and not _is_running(int(match.group(1))):
            path.unlink(missing_ok=True)


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


def _synchronise(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
