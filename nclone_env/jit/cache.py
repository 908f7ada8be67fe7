"""The cache of compiled kernels on disk, and before it the machine code that a wheel brings.

Numba's own cache is not used. Its public setting, ``NUMBA_CACHE_DIR``, would apply to every package of the process, and
it knows neither the callees of a kernel nor the constants of other files, so it would keep stale code. It numbers its
files in an index, which names the code of one signature as that of another if two processes write it at the same time,
and a file that a power failure has cut would fail every process from then on.

A wheel brings files as in the cache, and a manifest with their digests, in a folder of the package that is only read. A
file is unpickled only if its SHA-256 is that of the manifest. Code is found under the name that it would have in the
cache, so code of other sources, for another processor or of another Numba is never found. If a kernel is compiled
therefore, a line on stderr says why.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numba

from nclone_env._files import fill_file
from nclone_env.jit import private
from nclone_env.jit.dispatcher import IS_PLAIN
from nclone_env.jit.folder import (
    CODE_SUFFIX,
    cache_folder,
    packed,
    read_used,
    remove_unused_code,
    unpacked,
    write_private,
)
from nclone_env.jit.notice import notice, say_once
from nclone_env.jit.sources import compiler_digest, fields_of, identity
from nclone_env.jit.target import CodeTarget, target

FOLDER = Path(__file__).parents[1] / "_code"
MANIFEST = "manifest.json"


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
    return sig, fields_of(sig), private.generated_for(context) if IS_PLAIN else tuple(target())


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
        data = packed(key, code)
        fill_file(folder / self._file_name(key), lambda temporary: write_private(temporary, data))

    def _file_name(self, key: tuple[Any, ...]) -> str:
        return f"{self._name}.{hashlib.sha256(repr(key).encode()).hexdigest()[:16]}{CODE_SUFFIX}"


def python_tag() -> str:
    """Return the part of the names of files that stands for this Python; Windows has no ABI flags."""
    return f"py{sys.version_info[0]}{sys.version_info[1]}{getattr(sys, 'abiflags', '')}"


def write_manifest(folder: Path, baselines: Iterable[str]) -> None:
    """Write the manifest of a folder of compiled code, for processes like this one; remove all other files."""
    for path in folder.iterdir():
        if path.suffix != CODE_SUFFIX:
            path.unlink()
    manifest = {
        "numba": numba.__version__,
        "compiler": compiler_digest(),
        "python": python_tag(),
        "targets": [target()._replace(processor=name, features="") for name in baselines],
        "files": {path.name: _digest(path.read_bytes()) for path in sorted(folder.glob(f"*{CODE_SUFFIX}"))},
    }
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1))


def shipped_code(name: str) -> tuple[bytes | None, str]:
    """Return a file of compiled code that came with the package, named as in the cache; None if there is no valid one.

    Also return why there is none; empty if none is to be expected.
    """
    files, reason = _manifest()
    path, digest = FOLDER / name, files.get(name)
    if digest is None:
        return None, reason or _other_sources(name, files)
    try:
        data = path.read_bytes()
    except OSError as error:
        return None, f"{path}: {error.strerror}"
    return (data, "") if _digest(data) == digest else (None, f"{path} is damaged; install the package again")


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@lru_cache(maxsize=1)
def _manifest() -> tuple[Mapping[str, str], str]:
    """Return the digests of the files by name, and why there are none; empty for a package without code."""
    path = FOLDER / MANIFEST
    try:
        manifest = json.loads(path.read_bytes())
        reason = _difference(manifest)
        files = {str(name): str(digest) for name, digest in manifest["files"].items()}
    except FileNotFoundError:
        return {}, ""
    except OSError as error:
        return {}, f"{path}: {error.strerror}"
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}, f"{path} is damaged; install the package again"
    return ({}, reason) if reason else (files, "")


def _difference(manifest: Mapping[str, Any]) -> str:
    """Return why code cannot be for this process; empty if it may be."""
    targets = [CodeTarget(*each) for each in manifest["targets"]]
    if manifest["python"] != python_tag():
        return f"it is for {manifest['python']}, this is {python_tag()}"
    if manifest["numba"] != numba.__version__:
        return f"it is for numba {manifest['numba']}, this is {numba.__version__}"
    if manifest["compiler"] != compiler_digest():
        return "it is for another NumPy, or for other settings of Numba (the variables NUMBA_...)"
    if target() not in targets:
        return f"it is for {', '.join(each.processor for each in targets)}, this is {target().processor}"
    return ""


def _other_sources(name: str, files: Iterable[str]) -> str:
    """Return a reason if a kernel has code of other sources; empty if it has none, or only for other arguments."""
    kernel, _, rest = name.partition("-")
    digests = {other.split("-")[1].partition(".")[0] for other in files if other.startswith(f"{kernel}-")}
    changed = digests and rest.partition(".")[0] not in digests
    return "it is of other sources than those installed" if changed else ""
