"""Atomic writes, and locks on files between processes.

A file is complete or absent, never partial, also after a crash of the process or the machine.

A file is written under a temporary name, ``.nclone_env-<random digits>.<name>``, and locked meanwhile. The lock ends
with the process. So the next process that writes to the folder removes the files of killed processes and keeps those
being written. Process numbers could not tell them apart: they repeat in containers. On Windows, where no open file can
be renamed, they are not locked, and removed a day later.

Locks are held until they are released, and at the latest until the process ends. They are those of ``flock`` where
there is ``fcntl``, of ``LockFileEx`` on Windows. On file systems without locks every lock is free.
"""

import csv
import ctypes
import errno
import hashlib
import io
import math
import os
import pickle
import secrets
import shutil
import stat
import struct
import threading
import time
import tokenize
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

from nclone_env.errors import ConfigError, plain

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]
    import msvcrt

_PREFIX = ".nclone_env-"
LOCK = ".lock"
"""File that is locked in a folder by what writes to it: also while it trains, beside the name of the folder."""
_HERE, _EXCHANGE = -100, 2  # of renameat2: relative to the current folder; the flag of an exchange
_OPENS_FOLDERS = _REMOVES_OPEN = os.name != "nt"  # Windows renames and removes no file that is open
_OLD = 86400.0  # seconds after which a temporary file is abandoned where no lock on it can tell
_SAFELY = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_ZIP_END = 98  # bytes of the ends of a directory of members, with those of ZIP64
_KEPT = 50  # characters of a name, which with the prefix may have 255 bytes
_NO_LOCKS = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP)  # file systems of some clusters
UNREADABLE = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    EOFError,
    LookupError,
    MemoryError,
    OSError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
    pickle.UnpicklingError,
    struct.error,
    tokenize.TokenError,
    zipfile.BadZipFile,
    zlib.error,
)
"""What reading a damaged file of packed arrays raises: exceptions of ``numpy.load`` and ``torch.load``,
and of the ``zipfile`` below them, which pass on the errors of their parsers."""


def expanded(path: str | os.PathLike[str]) -> Path:
    """Return a path with the home folder in place of ``~``, as a shell does: variables, files and programs have none.

    The name of a user who does not exist stays.
    """
    return Path(os.path.expanduser(os.fsdecode(path)))


def variable(name: str) -> str:
    """Return an environment variable without the quotes and line ends of files of them, which some programs leave."""
    return os.environ.get(name, "").strip().strip("\"'")


def there(test: Callable[[], bool]) -> bool:
    """Return what ``Path.exists`` and its like do, False also for a name longer than the system takes.

    What a user names may as well be no file at all, but a set of levels or a bundled policy.
    """
    try:
        return test()
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            raise
        return False


def suffix_of(path: str | os.PathLike[str]) -> str:
    """Return the suffix of a name in small letters: cameras, old systems and some editors write large ones."""
    return Path(path).suffix.lower()


def inner_folders(folder: Path) -> str:
    """Return the end of a message about a folder without what it should hold: how to name the folders in it, if any."""
    has_some = there(folder.is_dir) and any(each.is_dir() and each.name[0] != "." for each in folder.iterdir())
    return f"; name the folders in it, as {plain(folder)}/* does in a shell" if has_some else ""


def write_file(path: str | os.PathLike[str], data: bytes) -> None:
    """Write ``data`` to a temporary file next to ``path``, then rename it to ``path``."""
    fill_file(path, lambda temporary: temporary.write_bytes(data))


def write_rows(path: Path, rows: Iterable[Iterable[Any]]) -> None:
    """Write rows as CSV, as :func:`write_file`; cells that are None are left empty."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    write_file(path, text.getvalue().encode())


def fill_file(path: str | os.PathLike[str], fill: Callable[[Path], Any]) -> None:
    """Call ``fill`` to write a temporary file next to ``path``, with its suffix, then rename it to ``path``.

    The contents reach the disk before the name does, so that a power failure leaves the old file or the new one.
    """
    path = expanded(path)
    with naming(path), temporary_beside(path) as temporary:
        fill(temporary)
        synchronise(temporary)
        temporary.replace(path)
        synchronise(path.parent)


@contextmanager
def unless_it_fails(what: object) -> Iterator[None]:
    """Leave out what only shows or exports results if it cannot be made, with one warning: work never ends with it."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - libraries that draw fail in any way, already as they are imported
        reason = next(iter(f"{error}".splitlines()), "")[:200]
        warnings.warn(f"{what} is left out: {type(error).__name__}: {plain(reason)}", RuntimeWarning, stacklevel=3)


def open_regular(path: str | os.PathLike[str], most: float = math.inf) -> BinaryIO:
    """Open a file of at most so many bytes; pipes and devices, which may have no end, are refused unread."""
    path = expanded(path)
    status = path.stat()
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "expected a file, got a device or pipe", str(path))
    if status.st_size > most:
        raise OSError(errno.EFBIG, f"expected at most {most:,} bytes, got {status.st_size:,}", str(path))
    return path.open("rb")


def check_directory(file: BinaryIO, most: int) -> None:
    """Refuse a zip file whose directory has more bytes than ``most``, which ``zipfile`` would read whole."""
    file.seek(-min(_ZIP_END, file.seek(0, io.SEEK_END)), io.SEEK_END)
    tail = file.read(_ZIP_END).rjust(_ZIP_END, b"\0")
    if tail[-22:-18] != b"PK\5\6" or tail[-2:] != b"\0\0":
        raise zipfile.BadZipFile("no directory of members at its end")
    size = int.from_bytes(tail[-10:-6], "little")
    if tail[-42:-38] == b"PK\6\7":  # of ZIP64, which counts instead
        size = max(size, int.from_bytes(tail[-58:-50], "little"))
    if size > most:
        raise zipfile.BadZipFile(f"a directory of members of {size:,} bytes")


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Let errors of the system that name no file, or a temporary one, name the file that is being written."""
    try:
        yield
    except OSError as error:
        if error.filename is not None and _PREFIX not in f"{error.filename} {error.filename2}":
            raise
        raise OSError(error.errno or errno.EIO, error.strerror or str(error), str(path)) from error


@contextmanager
def temporary_beside(path: Path, folder: bool = False) -> Iterator[Path]:
    """Yield the path of an empty hidden file next to ``path``, or folder, which is removed on exit if it is there.

    Those that killed processes have left there are removed first.
    """
    if not path.name:  # "." and "/"
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    remove_temporaries_once(path.parent.absolute())
    temporary = path.with_name(f"{_PREFIX}{secrets.token_hex(4)}.{path.name[-_KEPT:]}")
    with naming(path):
        descriptor = _create_folder(temporary) if folder else _create_file(temporary)
    try:
        yield temporary
    finally:
        if folder:
            shutil.rmtree(temporary, ignore_errors=True)
        else:
            temporary.unlink(missing_ok=True)
        os.close(descriptor)


def remove_temporaries(folder: Path) -> None:
    """Remove the temporary files and folders that killed processes have left in a folder."""
    with suppress(OSError):  # it is missing, or cannot be read
        for path in list(folder.glob(f"{_PREFIX}*")):
            with suppress(OSError):  # in use, removed meanwhile, or of another user
                _remove_abandoned(path)


@lru_cache(maxsize=256)
def remove_temporaries_once(folder: Path) -> None:
    """Call :func:`remove_temporaries` the first time that this process names a folder."""
    remove_temporaries(folder)


def _remove_abandoned(path: Path) -> None:
    """Remove a temporary file or folder."""
    if not _REMOVES_OPEN:
        if time.time() - path.stat().st_mtime > _OLD:
            _remove(path)
        return
    descriptor = os.open(path, os.O_RDONLY | _SAFELY)
    try:
        if lock_descriptor(descriptor):
            _remove(path)
    finally:
        os.close(descriptor)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink()


def _create_file(path: Path) -> int:
    """Create a file and return a descriptor that holds its lock."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
        if not _REMOVES_OPEN:
            os.close(descriptor)
            return os.open(os.devnull, os.O_RDONLY)
        lock_descriptor(descriptor)
        if path.exists():
            return descriptor
        os.close(descriptor)  # another process took it for abandoned before it was locked


def _create_folder(path: Path) -> int:
    """Create a folder and return a descriptor that holds its lock."""
    while True:
        path.mkdir()
        if not _OPENS_FOLDERS:
            return os.open(os.devnull, os.O_RDONLY)
        try:
            descriptor = os.open(path, os.O_RDONLY)
        except FileNotFoundError:
            continue  # as above
        except OSError:
            path.rmdir()
            raise
        lock_descriptor(descriptor)
        if path.exists():
            return descriptor
        os.close(descriptor)


def synchronise(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    if not _OPENS_FOLDERS and path.is_dir():
        return  # Windows writes names at once
    descriptor = os.open(path, os.O_RDONLY if _OPENS_FOLDERS else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def replace_folder(folder: Path, path: Path) -> None:
    """Give a folder the name ``path``; a folder of that name takes the other name, in the same instant.

    A symbolic link there would itself be exchanged, not the folder that it denotes.
    """
    for each in (*folder.rglob("*"), folder):
        synchronise(each)
    if path.exists():
        _exchange(folder, path)
    else:
        folder.rename(path)
    synchronise(path.parent)


def _exchange(left: Path, right: Path) -> None:
    """Exchange two names in one step with Linux or macOS, else in three: a crash between them leaves a third name."""
    rename, paths = _rename_at_once()
    if rename is None:
        aside = right.with_name(f"{_PREFIX}{secrets.token_hex(4)}.{right.name[-_KEPT:]}")
        right.rename(aside)
        left.rename(right)
        aside.rename(left)
    elif rename(*paths(os.fsencode(left), os.fsencode(right)), _EXCHANGE):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(right))


def _rename_at_once() -> tuple[Callable[..., int] | None, Callable[[bytes, bytes], tuple[Any, ...]]]:
    """Return the system call that exchanges names, if there is one, and how it takes the paths."""
    library = None if os.name == "nt" else ctypes.CDLL(None, use_errno=True)
    linux, macos = getattr(library, "renameat2", None), getattr(library, "renamex_np", None)
    if linux is not None:
        return linux, lambda left, right: (_HERE, left, _HERE, right)
    return macos, lambda left, right: (left, right)


def lock_descriptor(descriptor: int) -> bool:
    """Lock an open file; return whether no other process, or descriptor of this one, has locked it."""
    try:
        if fcntl is not None:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        else:
            os.lseek(descriptor, 0, os.SEEK_SET)
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
    except OSError as error:
        if error.errno in _NO_LOCKS:
            return True
        if isinstance(error, BlockingIOError) or (fcntl is None and isinstance(error, PermissionError)):
            return False
        raise
    return True


class FileLock:
    """A file that this process creates, if it is missing, and locks; :meth:`release` removes it."""

    def __init__(self, path: Path):
        self._path = path
        while True:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
            try:
                if not lock_descriptor(descriptor):
                    raise BlockingIOError(errno.EAGAIN, "another process has locked it", str(path))
                with suppress(FileNotFoundError):
                    if os.path.samestat(os.fstat(descriptor), path.stat()):
                        self._descriptor = descriptor
                        return
            except OSError:
                os.close(descriptor)
                raise
            os.close(descriptor)  # its last owner removed the file in between

    def release(self, remove: bool = True) -> None:
        """End the lock, and remove the file, which on Windows is only possible afterwards."""
        if remove and fcntl is not None:
            self._path.unlink(missing_ok=True)
        os.close(self._descriptor)
        if remove and fcntl is None:
            with suppress(OSError):  # another process has it open by now
                self._path.unlink(missing_ok=True)


class Claims:
    """What a call writes, claimed by its thread until :meth:`release`, so that no two calls write to one place.

    The name of each file or folder is locked beside it, and a folder that is there also within, as ``train`` does. A
    thread may claim again what it has claimed.
    """

    _held: ClassVar[dict[tuple[int, Path], FileLock]] = {}

    def __init__(self) -> None:
        self._own = ExitStack()

    def add(self, *paths: Path) -> None:
        """Claim files or folders."""
        for path in paths:
            target = Path(os.path.realpath(path))
            digest = hashlib.sha256(os.fsencode(target.name)).hexdigest()[:8]
            self._lock(target.with_name(f"{_PREFIX}lock-{digest}.{plain(target.name)[-_KEPT:]}"), path)
            if _REMOVES_OPEN and target.is_dir():  # a folder with an open file cannot be replaced elsewhere
                self._lock(target / LOCK, path)

    def _lock(self, lock: Path, path: Path) -> None:
        key = threading.get_ident(), lock
        if key in self._held:
            return
        try:
            held = self._held[key] = FileLock(lock)
        except BlockingIOError as error:
            raise ConfigError(f"{path}: another process is writing there; wait for it, or name another") from error
        except OSError:
            return  # no such folder, or a read-only one: writing the file reports it

        def release() -> None:
            del self._held[key]
            with suppress(OSError):
                held.release()

        self._own.callback(release)

    def release(self) -> None:
        """End the claims; otherwise the end of the process does."""
        self._own.close()


@contextmanager
def claimed(*paths: Path) -> Iterator[None]:
    """Claim files or folders while they are written."""
    claims = Claims()
    try:
        claims.add(*paths)
        yield
    finally:
        claims.release()
