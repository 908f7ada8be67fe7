"""Where the package keeps files between processes: ``NCLONE_ENV_CACHE_DIR``, else ``nclone_env`` in the user's cache.

Compiled kernels are in a subfolder named after the ``source_digest``. Creating a new one removes the folders of other
sources that no process has used for thirty days.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import time
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from nclone_env.jit.sources import source_digest

_UNUSED_DAYS = 30
_KERNEL_FOLDER = re.compile(r"(removed-)?[0-9a-f]{16}")


def cache_root() -> Path:
    """Return the folder of everything this package keeps between processes; it need not exist."""
    root = os.environ.get("NCLONE_ENV_CACHE_DIR")
    return Path(root) if root else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "nclone_env"


@lru_cache(maxsize=1)
def cache_folder() -> Path:
    """Return the folder of compiled kernels; a temporary one if the user's cache cannot be written."""
    folder = cache_root() / source_digest()
    try:
        if not folder.is_dir():
            folder.mkdir(parents=True, exist_ok=True)
            _remove_unused(folder.parent)
        tempfile.TemporaryFile(dir=folder).close()
        os.utime(folder)  # the time of last use
    except OSError:
        folder = Path(tempfile.mkdtemp(prefix="nclone_env-"))
    return folder


def _remove_unused(root: Path) -> None:
    """Remove kernel folders that were not used for thirty days.

    They are renamed first: a process about to use one finds it empty and compiles.
    """
    oldest = time.time() - _UNUSED_DAYS * 86400
    for folder in root.iterdir():
        with suppress(OSError):  # another process may be removing it
            if _KERNEL_FOLDER.fullmatch(folder.name) and folder.stat().st_mtime < oldest:
                removed = folder.with_name(f"removed-{folder.name.removeprefix('removed-')}")
                folder.replace(removed)
                shutil.rmtree(removed, ignore_errors=True)
