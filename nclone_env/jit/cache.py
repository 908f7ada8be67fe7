"""The cache of compiled kernels on disk.

Numba's private locator classes decide where code is cached and when it is stale. They are replaced here for kernels
alone: the public setting, ``NUMBA_CACHE_DIR``, would apply to every package of the process. A Numba without them fails
on import.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cached_property
from typing import Any

from numba.core import caching

from nclone_env.jit.dispatcher import IS_PLAIN
from nclone_env.jit.folder import cache_folder
from nclone_env.jit.sources import code_digest


class KernelCache(caching.NullCache):
    """Opens the cache of a kernel on its first call: only then is everything defined that the kernel refers to.

    Functions without a ``code_digest`` are not cached.
    """

    def __init__(self, function: Callable[..., Any]):
        self._function = function

    @cached_property
    def _files(self) -> caching.NullCache | caching.FunctionCache:
        return _Files(self._function) if code_digest(self._function) else caching.NullCache()

    @property
    def cache_path(self) -> str | None:
        """The folder, None if the kernel is not cached."""
        return self._files.cache_path

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the compiled code for a signature, None if there is none."""
        return self._files.load_overload(sig, target_context)

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep the compiled code for a signature."""
        self._files.save_overload(sig, data)


class _Locator(caching._CacheLocator):
    """Names the files of a kernel; the name contains the digest, so processes with other sources use other files."""

    def __init__(self, function: Callable[..., Any]):
        place = f"{function.__module__}:{function.__code__.co_firstlineno}"
        self._key = f"{code_digest(function)} {'plain' if IS_PLAIN else 'fast'} {place}"

    def get_cache_path(self) -> str:
        return str(cache_folder())

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
