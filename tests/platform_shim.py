"""Takes from Python what Windows and macOS lack, as far as a Linux can pretend.

    python -m pytest -p tests.platform_shim tests/level

Gone are modules such as ``fcntl`` and ``resource``; of ``os``, ``fork``, ``nice``, user numbers, ``sched_getaffinity``
and flags of ``open``; signals that Windows lacks; ``/proc`` and ``/sys``; ``mallinfo2`` and ``renameat2`` of the C
library. ``msvcrt`` is a stand-in that locks as Windows does: the lock ends with the process. Files that this process
has open can be neither renamed nor removed.
"""

import builtins
import ctypes
import importlib.abc
import io
import os
import shutil
import signal
import sys
from contextlib import suppress
from types import ModuleType
from typing import Any

import _pytest.tmpdir
import pytest

MODULES = ("fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "syslog")
OF_OS = (
    "fork",
    "forkpty",
    "nice",
    "getuid",
    "geteuid",
    "getgid",
    "sched_getaffinity",
    "sched_setaffinity",
    "O_NOFOLLOW",
    "O_NONBLOCK",
    "mkfifo",
    "getpgid",
    "setsid",
    "killpg",
    "posix_fadvise",
    "posix_fallocate",
    "sysconf",
)
SIGNALS = ("SIGPIPE", "SIGKILL", "SIGUSR1", "SIGUSR2", "SIGALRM", "SIGHUP", "alarm", "setitimer", "pthread_sigmask")
HIDDEN = ("/proc", "/sys")


class _Hidden(importlib.abc.MetaPathFinder):
    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name in MODULES:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def _msvcrt(fcntl: ModuleType) -> ModuleType:
    """Return a stand-in for the module of Windows that locks bytes of files."""
    module = ModuleType("msvcrt")
    module.LK_NBLCK, module.LK_UNLCK = 2, 0

    def locking(descriptor: int, mode: int, count: int) -> None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB if mode else fcntl.LOCK_UN)
        except BlockingIOError as error:
            raise PermissionError(13, "Permission denied") from error

    module.locking = locking
    return module


def _is_hidden(path: Any) -> bool:
    return isinstance(path, (str, bytes, os.PathLike)) and os.fspath(path).startswith(
        HIDDEN if isinstance(os.fspath(path), str) else tuple(map(os.fsencode, HIDDEN))
    )


def _without_hidden(real: Any, place: int = 0) -> Any:
    def call(*args: Any, **kwargs: Any) -> Any:
        if len(args) > place and _is_hidden(args[place]):
            raise FileNotFoundError(2, "No such file or directory", str(args[place]))
        return real(*args, **kwargs)

    return call


def _if_closed(real: Any, list_folder: Any, read_link: Any) -> Any:
    """Return a function of ``os`` that refuses files that this process has open."""

    def is_open(number: str, names: set[str]) -> bool:
        try:
            return read_link(f"/proc/self/fd/{number}") in names
        except OSError:
            return False

    def call(*args: Any, **kwargs: Any) -> Any:
        names = {os.path.realpath(path) for path in args if isinstance(path, (str, os.PathLike))}
        if any(is_open(number, names) for number in list_folder("/proc/self/fd")):
            raise PermissionError(13, "The process cannot access the file: it is open", os.fspath(args[0]))
        return real(*args, **kwargs)

    return call


class _Library:
    """The C library of another system."""

    def __init__(self, *args: Any, **kwargs: Any):
        self._real = _CDLL(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name in ("mallinfo2", "renameat2"):
            raise AttributeError(name)
        return getattr(self._real, name)


_CDLL = ctypes.CDLL


def hide() -> None:
    """Remove everything, for this process."""
    import asyncio  # noqa: F401 - as the three below while it can be: they have other code for Windows
    import fcntl
    import multiprocessing.util  # noqa: F401
    import subprocess  # noqa: F401
    import tempfile  # noqa: F401

    sys.modules["msvcrt"] = _msvcrt(fcntl)
    shutil._use_fd_functions, shutil._rmtree_impl = False, shutil._rmtree_unsafe  # before and since Python 3.14
    for name in MODULES:
        sys.modules.pop(name, None)
    sys.meta_path.insert(0, _Hidden())
    for name in OF_OS:
        if hasattr(os, name):
            delattr(os, name)
    for name in SIGNALS:
        if hasattr(signal, name):
            delattr(signal, name)
    for name in ("rename", "replace", "unlink", "remove"):
        setattr(os, name, _if_closed(getattr(os, name), os.listdir, os.readlink))
    builtins.open = io.open = _without_hidden(io.open)
    os.stat, os.open, os.listdir, os.readlink = map(_without_hidden, (os.stat, os.open, os.listdir, os.readlink))
    ctypes.CDLL = _Library  # type: ignore[misc]
    import nclone_env._files as files

    files._OPENS_FOLDERS = files._REMOVES_OPEN = False
    files.fcntl, files.msvcrt = None, sys.modules["msvcrt"]


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    config.option.timeout_method = "thread"
    _pytest.tmpdir.get_user_id = lambda: None  # as pytest has it on Windows
    with suppress(ImportError):
        import torch.distributed.launcher  # noqa: F401 - it has other code for Windows
    hide()
