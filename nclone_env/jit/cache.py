"""The cache of compiled kernels on disk.

Numba's private locator classes decide where code is cached and when it is stale. They are replaced here for kernels
alone: the public setting, ``NUMBA_CACHE_DIR``, would apply to every package of the process. A Numba without them fails
on import. So are its files: Numba numbers them in an index, which names the code of one signature as that of another if
two processes write it at the same time, and a file that a power failure has cut would fail every process from then on.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import warnings
import zlib
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

from numba.core import caching

from nclone_env._files import write_file
from nclone_env.jit.dispatcher import IS_PLAIN
from nclone_env.jit.folder import CODE_SUFFIX, cache_folder, remove_unused_code
from nclone_env.jit.notice import notice
from nclone_env.jit.sources import code_digest


class KernelCache(caching.NullCache):
    """Opens the cache of a kernel on its first call: only then is everything defined that the kernel refers to.

    Functions without a ``code_digest`` are not cached, and none is without a ``cache_folder``.
    """

    def __init__(self, function: Callable[..., Any]):
        self._function = function

    @cached_property
    def _files(self) -> caching.NullCache | caching.FunctionCache:
        cached = code_digest(self._function) is not None and cache_folder() is not None
        return _Files(self._function) if cached else caching.NullCache()

    @property
    def cache_path(self) -> str | None:
        """The folder, None if the kernel is not cached."""
        return self._files.cache_path

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the compiled code for a signature; None if there is none, so it is about to be compiled."""
        found = self._files.load_overload(sig, target_context)
        if found is None:
            notice.begin(self._function)
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep the compiled code for a signature; if that fails, with a warning, only this process has it."""
        try:
            self._files.save_overload(sig, data)
        except OSError as error:
            message = f"compiled kernels are not cached: {self.cache_path}: {error.strerror}"
            warnings.warn(message, RuntimeWarning, stacklevel=2)


class _Locator(caching._CacheLocator):
    """Names the files of a kernel; the name contains the digest, so processes with other sources use other files."""

    def __init__(self, function: Callable[..., Any]):
        place = f"{function.__module__}:{function.__code__.co_firstlineno}"
        self._key = f"{code_digest(function)} {'plain' if IS_PLAIN else 'fast'} {place}"

    def get_cache_path(self) -> str:
        return str(cache_folder())

    def ensure_cache_path(self) -> None:
        """Do nothing: ``cache_folder`` has created it."""

    def get_source_stamp(self) -> str:
        return self._key

    def get_disambiguator(self) -> str:
        return hashlib.sha256(self._key.encode()).hexdigest()[:16]

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> _Locator:
        return cls(py_func)


class _FilesFormat(caching.CompileResultCacheImpl):
    _locator_classes = [_Locator]  # noqa: RUF012 - the name and type Numba reads


class _Files(caching.FunctionCache):
    _impl_class = _FilesFormat

    def __init__(self, function: Callable[..., Any]):
        super().__init__(function)
        self._cache_file = CodeFiles(Path(self._cache_path), self._impl.filename_base)


class CodeFiles:
    """The files of a kernel, one for each signature: CRC-32 of the rest, then the pickle of a key and the code.

    Args:
        folder: where they are.
        name: begins their names.
    """

    def __init__(self, folder: Path, name: str):
        self._folder, self._name = folder, name

    def load(self, key: tuple[Any, ...]) -> Any:
        """Return the code of a key; None if there is no file, or it is damaged. The file is marked as used."""
        path = self._path(key)
        try:
            data = path.read_bytes()
        except OSError:
            return None
        with suppress(OSError):  # a folder that can only be read
            os.utime(path)
        if int.from_bytes(data[:4], "little") != zlib.crc32(data[4:]) or len(data) <= 4:
            return None
        stored, code = pickle.loads(data[4:])
        return code if stored == key else None

    def save(self, key: tuple[Any, ...], code: Any) -> None:
        """Write the code of a key.

        Raises:
            OSError: if the file cannot be written.
        """
        remove_unused_code(self._folder)
        data = caching.dumps((key, code))
        write_file(self._path(key), zlib.crc32(data).to_bytes(4, "little") + data)

    def _path(self, key: tuple[Any, ...]) -> Path:
        return self._folder / f"{self._name}.{hashlib.sha256(repr(key).encode()).hexdigest()[:16]}{CODE_SUFFIX}"
