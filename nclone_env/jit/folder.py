"""Compiled kernels between processes: in a folder of the cache named after the ``compiler_digest``.

Each kernel is in files named after its own digest. Creating a folder removes those of other compilers, and compiling a
kernel the code, that no process has used for thirty days.
"""

import os
import pickle
import re
import shutil
import time
import warnings
import zlib
from contextlib import suppress
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from nclone_env._cache import cache_root, close_to_others, distrust, is_trusted, make_private
from nclone_env._files import remove_temporaries
from nclone_env.jit.sources import compiler_digest

_UNUSED_DAYS = 30
_KERNEL_FOLDER = re.compile(r"(removed-)?[0-9a-f]{16}")
CODE_SUFFIX, PART_SUFFIX = ".nbc", ".nbp"


@lru_cache(maxsize=1)
def cache_folder() -> Path | None:
    """Return the folder of compiled kernels, None with a warning if there is none that can be trusted.

    A folder that can only be read is used as far as it goes. Without one there is no temporary folder instead: compiled
    kernels are in the memory of the process anyway, and no other process would find them. It is no error either, since
    only time is lost, and jobs in containers and on clusters have foreign folders through no fault of their own.
    """
    folder = cache_root() / compiler_digest()
    with suppress(OSError):  # what cannot be written may still be read
        if not folder.is_dir():
            make_private(folder)
            _remove_unused(folder.parent)
        remove_temporaries(folder)
        os.utime(folder)  # the time of last use
    doubt = distrust(folder)
    if doubt:
        warnings.warn(
            f"compiled kernels are not cached: {doubt}; set NCLONE_ENV_CACHE_DIR to a folder of your own",
            RuntimeWarning,
            stacklevel=2,
        )
    return None if doubt else folder


def _remove_unused(root: Path) -> None:
    """Remove kernel folders that were not used for thirty days.

    They are renamed first: a process about to use one finds it empty and compiles.
    """
    for folder in root.iterdir():
        with suppress(OSError):  # another process may be removing it
            if _KERNEL_FOLDER.fullmatch(folder.name) and _is_unused(folder):
                removed = folder.with_name(f"removed-{folder.name.removeprefix('removed-')}")
                folder.replace(removed)
                shutil.rmtree(removed, ignore_errors=True)


@cache
def remove_unused_code(folder: Path) -> None:
    """Remove the files of a kernel folder that were not used for thirty days; once in a process."""
    for path in folder.glob("*"):  # of a folder that was removed meanwhile, none
        with suppress(OSError):  # another process may be removing it
            if path.suffix in (CODE_SUFFIX, PART_SUFFIX) and _is_unused(path):
                path.unlink()


def _is_unused(path: Path) -> bool:
    return path.stat().st_mtime < time.time() - _UNUSED_DAYS * 86400


def packed(key: Any, value: Any) -> bytes:
    """Return the contents of a file of compiled code: CRC-32 of the rest, then the packed pickle of a key and a value.

    Packed files have a tenth of the size, as most of machine code is names; unpacking takes a few milliseconds.
    """
    data = zlib.compress(pickle.dumps((key, value), protocol=5), level=1)
    return zlib.crc32(data).to_bytes(4, "little") + data


def unpacked(data: bytes | None, key: Any) -> Any:
    """Return the value in a file; None if there is no file, or it is damaged or of another key."""
    if data is None or int.from_bytes(data[:4], "little") != zlib.crc32(data[4:]) or len(data) <= 4:
        return None
    try:
        stored, value = pickle.loads(zlib.decompress(data[4:]))
    except Exception:  # noqa: BLE001 - whatever is raised for what this package did not write
        return None
    return value if stored == key else None


def write_private(path: Path, data: bytes) -> None:
    """Write a new file of the cache that others cannot change."""
    close_to_others(path)
    path.write_bytes(data)


def read_used(path: Path) -> bytes | None:
    """Return the contents of a file of the cache, and mark it as used; None if there is none that can be trusted."""
    try:
        if not path.is_file() or not is_trusted(path):
            return None
        data = path.read_bytes()
    except OSError:
        return None
    with suppress(OSError):  # a folder that can only be read
        os.utime(path)
    return data
