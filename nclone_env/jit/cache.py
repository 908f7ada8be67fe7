"""The cache of compiled kernels on disk, and before it the code that came with the package.

Numba's private locator classes decide where code is cached and when it is stale. They are replaced here for kernels
alone: the public setting, ``NUMBA_CACHE_DIR``, would apply to every package of the process. A Numba without them fails
on import. So are its files: Numba numbers them in an index, which names the code of one signature as that of another if
two processes write it at the same time, and a file that a power failure has cut would fail every process from then on.
"""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

from numba.core import caching

from nclone_env._files import write_file
from nclone_env.jit.dispatcher import IS_PLAIN
from nclone_env.jit.folder import CODE_SUFFIX, cache_folder, packed, read_used, remove_unused_code, unpacked
from nclone_env.jit.notice import notice
from nclone_env.jit.shipped import say_unused, shipped_code
from nclone_env.jit.sources import identity
from nclone_env.jit.target import target


class KernelCache(caching.NullCache):
    """Opens the cache of a kernel on its first call: only then is everything defined that the kernel refers to.

    Functions without an ``identity`` are not cached. Without a ``cache_folder`` there is only the code that came with
    the package.
    """

    def __init__(self, function: Callable[..., Any]):
        self._function = function

    @cached_property
    def _files(self) -> caching.NullCache | caching.FunctionCache:
        return caching.NullCache() if identity(self._function) is None else _Files(self._function)

    @property
    def cache_path(self) -> str | None:
        """The folder, None if the kernel is not cached."""
        folder = cache_folder() if isinstance(self._files, _Files) else None
        return None if folder is None else os.fspath(folder)

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
        self._key = f"{identity(function)} {'plain' if IS_PLAIN else 'fast'}"

    def get_cache_path(self) -> str:
        return ""  # not before it is needed: code that came with the package needs none

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

    def reduce(self, compiled: Any) -> Any:
        return super().reduce(compiled._replace(type_annotation=""))

    def rebuild(self, target_context: Any, payload: Any) -> Any:
        if not IS_PLAIN:
            from nclone_env.jit.inner import loading_context  # which may not be there if the plain way is used

            target_context = loading_context(target_context, payload[0])
        return None if target_context is None else super().rebuild(target_context, payload)


class _Files(caching.FunctionCache):
    _impl_class = _FilesFormat

    def __init__(self, function: Callable[..., Any]):
        super().__init__(function)
        self._cache_file = CodeFiles(self._impl.filename_base)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        if IS_PLAIN:
            return super().load_overload(sig, target_context)
        return self._load_overload(sig, target_context)

    def _index_key(self, sig: Any, codegen: Any) -> tuple[Any, ...]:
        sig, numbas, function = super()._index_key(sig, codegen)
        return sig, numbas if IS_PLAIN else tuple(target()), function


class CodeFiles:
    """The files of a kernel, one for each signature.

    ``folder`` returns where they are kept, None if nothing is; it is not called for what came with the package.
    """

    def __init__(self, name: str, folder: Callable[[], Path | None] = cache_folder):
        self._name, self._folder = name, folder

    def load(self, key: tuple[Any, ...]) -> Any:
        """Return the code of a key, as it came with the package or from the cache; None if neither has valid code."""
        name = self._file_name(key)
        shipped, reason = shipped_code(name)
        code = unpacked(shipped, key)
        folder = self._folder() if code is None else None
        if folder is not None:
            code = unpacked(read_used(folder / name), key)
        if code is None and reason:
            say_unused(reason)
        return code

    def save(self, key: tuple[Any, ...], code: Any) -> None:
        """Write the code of a key.

        Raises:
            OSError: if the file cannot be written.
        """
        folder = self._folder()
        if folder is None:
            return
        remove_unused_code(folder)
        write_file(folder / self._file_name(key), packed(key, code))

    def _file_name(self, key: tuple[Any, ...]) -> str:
        return f"{self._name}.{hashlib.sha256(repr(key).encode()).hexdigest()[:16]}{CODE_SUFFIX}"
