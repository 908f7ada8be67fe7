"""The cache of compiled kernels on disk, and before it the code that came with the package.

Numba's own cache is not used. Its public setting, ``NUMBA_CACHE_DIR``, would apply to every package of the process, and
it knows neither the callees of a kernel nor the constants of other files, so it would keep stale code. It numbers its
files in an index, which names the code of one signature as that of another if two processes write it at the same time,
and a file that a power failure has cut would fail every process from then on.
"""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from nclone_env._files import write_file
from nclone_env.jit import private
from nclone_env.jit.dispatcher import IS_PLAIN
from nclone_env.jit.folder import CODE_SUFFIX, cache_folder, packed, read_used, remove_unused_code, unpacked
from nclone_env.jit.notice import notice, say_once
from nclone_env.jit.shipped import python_tag, shipped_code
from nclone_env.jit.sources import identity
from nclone_env.jit.target import target


class KernelCache:
    """What Numba's dispatchers ask for compiled code of a kernel, with the names that they use.

    Functions without an ``identity`` are not cached. Without a ``cache_folder`` there is only the code that came with
    the package. Files are named on the first call of a kernel: only then is everything defined that it refers to.
    """

    def __init__(self, function: Callable[..., Any], options: Mapping[str, Any]):
        self._function, self._options = function, options

    @cached_property
    def _files(self) -> CodeFiles | None:
        code = identity(self._function)
        if code is None:
            return None
        key = f"{code} {'plain' if IS_PLAIN else 'fast'} {sorted(self._options.items())}"
        name = f"{self._function.__module__.rpartition('.')[2]}.{self._function.__qualname__}"
        name = name.replace("<", "").replace(">", "")  # of local functions; Windows forbids these
        return CodeFiles(f"{name}-{hashlib.sha256(key.encode()).hexdigest()[:16]}.{python_tag()}")

    @property
    def cache_path(self) -> str | None:
        """The folder, None if the kernel is not cached."""
        folder = None if self._files is None else cache_folder()
        return None if folder is None else os.fspath(folder)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the compiled code for a signature; None if there is none, so it is about to be compiled."""
        found = None
        try:
            if self._files is not None:
                found = self._load(self._files, sig, target_context)
        except Exception as error:  # noqa: BLE001 - another version of Numba may fail in any way
            private.say_missing("kernels are not read from the cache", error)
        if found is None:
            notice.begin(self._function)
        return found

    def _load(self, files: CodeFiles, sig: Any, context: Any) -> Any:
        payload = files.load(_key(sig, context))
        if payload is None:
            return None
        if IS_PLAIN:
            context.refresh()  # Numba knows the functions that the code calls only after this
        else:
            from nclone_env.jit.inner import loading_context  # which may not be there if the plain way is used

            context = loading_context(context, payload[0])
        return None if context is None else private.rebuilt(context, payload)

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep the compiled code for a signature; if that fails, with a warning or a line, only this process has it."""
        try:
            payload = None if self._files is None else private.reduced(data)
            if self._files is not None and payload is not None:
                self._files.save(_key(sig, data.target_context), payload)
        except OSError as error:
            message = f"compiled kernels are not cached: {self.cache_path}: {error.strerror}"
            warnings.warn(message, RuntimeWarning, stacklevel=2)
        except Exception as error:  # noqa: BLE001 - another version of Numba may fail in any way
            private.say_missing("kernels are not cached", error)


def _key(sig: Any, context: Any) -> tuple[Any, ...]:
    """Return what tells the codes of a kernel apart: types of arguments, and what the code was made for."""
    return sig, private.generated_for(context) if IS_PLAIN else tuple(target())


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
            say_once(f"machine code that came with the package is not used: {reason}")
        return code

    def save(self, key: tuple[Any, ...], code: Any) -> None:
        """Write the code of a key."""
        folder = self._folder()
        if folder is None:
            return
        remove_unused_code(folder)
        write_file(folder / self._file_name(key), packed(key, code))

    def _file_name(self, key: tuple[Any, ...]) -> str:
        return f"{self._name}.{hashlib.sha256(repr(key).encode()).hexdigest()[:16]}{CODE_SUFFIX}"
