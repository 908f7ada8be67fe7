"""Write files so that nobody ever sees half of one."""

from __future__ import annotations

import os
from pathlib import Path


def write_file(path: Path, data: bytes) -> None:
    """Write ``data`` to a temporary file beside ``path``, then rename it to ``path``.

    Raises:
        OSError: if the folder is missing or cannot be written to; ``path`` is then as it was before.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_bytes(data)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)  # it is there only if something failed
