"""The profiler in the interpreter of another program: it is there before the program, and has the last word after it.

The interpreter runs the program itself. The report is written when all else has ended that the interpreter waits for
and calls at its end, or before something ends the process at once: a signal, ``os._exit``, another program.
"""

import fcntl
import importlib
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Collection
from contextlib import suppress
from functools import wraps
from importlib.machinery import BuiltinImporter, FrozenImporter, PathFinder
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

from nclone_env._table import format_bytes
from nclone_env.errors import ConfigError, plain, shortened
from nclone_env.memory.flat import check_done
from nclone_env.memory.measure.process import resident_bytes
from nclone_env.memory.show import write_report
from nclone_env.memory.watch import Watch, fault_of

INTERRUPTED = "interrupted"
"""What the parent is told, before the verdict, if the program was interrupted because its time was over."""
_PROGRESS = 10.0  # seconds between two lines on stderr
_AGAIN = 5.0  # seconds after which a program that has not stopped is interrupted again
_DEADLY = (signal.SIGTERM, signal.SIGHUP, signal.SIGXCPU)
"""Signals that others send to end a process, and that give it time."""
_FORK = r"This process .* is multi-threaded, use of fork"
_HIGHEST = 512


class Passenger:
    """The profile of the program that this interpreter runs."""

    current: "Passenger | None" = None

    def __init__(
        self, name: str, folder: str, json: bool, html: bool, trace: bool, seconds: float | None, parent: int | None
    ):
        Passenger.current = self
        self._folder, self._json, self._html = Path(folder), json, html
        self._encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
        self._streams = [_aside(number) for number in (1, 2, *([] if parent is None else [parent]))]
        if parent is not None:
            os.close(parent)
        self._process, self._is_over = os.getpid(), False
        self._next, self._seconds, self._interrupted = _PROGRESS, seconds, False
        if sys.version_info >= (3, 12):  # there are the threads of the profiler
            warnings.filterwarnings("ignore", _FORK, DeprecationWarning)
        os.register_at_fork(after_in_child=self._leave_copy)
        for number in _DEADLY:
            if signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, self._die)
        os._exit = self._first(os._exit)
        os.execv, os.execve = self._first(os.execv), self._first(os.execve)
        self.watch = Watch(name, None, 0, None, trace, self._look)
        self.watch.__enter__()

    def end(self, report: bool = True, flush: bool = True) -> None:
        """End the profile and write the report, once and only in the process where it began."""
        if self._is_over or os.getpid() != self._process:
            return
        self._is_over = True
        for stream in (sys.stdout, sys.stderr) if flush else ():
            with suppress(Exception):  # of any kind: the interpreter says so itself when it flushes them
                stream.flush()
        self._write(report)

    def _write(self, report: bool) -> None:
        """Write the report beside the streams of the program: it may have closed or replaced them."""
        try:
            self.watch.__exit__(None, None, None)
            stats = self.watch.stats
            if self.watch.fault:
                self._say(1, f"nclone-env: {self.watch.fault}\n")
            if stats is None or not report:
                return
            text = write_report(stats, self._folder, self._json, self._html)
            self._say(0, text)
            self._say(2, f"{INTERRUPTED * self._interrupted} {stats.verdict}")
        except OSError as error:
            self._say(1, f"nclone-env: {plain(error)}\n")
        except Exception as error:  # noqa: BLE001 - a fault of the profiler must not change how the program ends
            self._say(1, f"nclone-env: {fault_of(error)}\n")

    def _say(self, stream: int, text: str) -> None:
        for number, identity in self._streams[stream : stream + 1]:
            data = text.encode(self._encoding, "backslashreplace")
            with suppress(OSError):  # it is closed, or its reader has ended
                while data and _identity(number) == identity:
                    data = data[os.write(number, data) :]

    def _first(self, call: Callable[..., Any]) -> Any:
        """Return a function that ends the process, with the report before it."""

        @wraps(call)
        def wrapped(*arguments: Any, **named: Any) -> Any:
            is_sure = call.__name__ == "_exit" or os.access(arguments[0] if arguments else named["path"], os.X_OK)
            if is_sure:
                self.end(flush=False)
            return call(*arguments, **named)

        return wrapped

    def _die(self, number: int, frame: FrameType | None) -> None:
        """End as the signal does without a handler, with the report before it."""
        if self._interrupted and not self._is_over:
            raise KeyboardInterrupt
        self.end(flush=False)
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    def _look(self, now: float) -> None:
        """Print the answer so far now and then, and interrupt the program when its time is over; ``now``: seconds."""
        if now >= self._next:
            self._next += _PROGRESS
            seen, size = self.watch.so_far(), format_bytes(resident_bytes().rss)
            self._say(1, f"nclone-env: {now:.0f} s, {size} resident{'; so far ' * bool(seen)}{seen}\n")
        if self._seconds is not None and now >= self._seconds and not self._is_over:
            self._interrupted, self._seconds = True, now + _AGAIN
            can_interrupt = callable(signal.getsignal(signal.SIGINT))  # not in a background job of a shell
            main = threading.main_thread().ident
            assert main is not None
            signal.pthread_kill(main, signal.SIGINT if can_interrupt else signal.SIGTERM)  # wakes it from a wait

    def _leave_copy(self) -> None:
        """Leave a copy of the process that the program has made: it ends as it does alone, and keeps no pipe open."""
        for number, _ in self._streams:
            with suppress(OSError):
                os.close(number)
        self._streams.clear()
        for signalled in _DEADLY:
            if signal.getsignal(signalled) == self._die:
                with suppress(ValueError):
                    signal.signal(signalled, signal.SIG_DFL)


def call(path: str) -> None:
    """Call MODULE:FUNCTION, or end the process with an error in one line."""
    if sys.path[:1] not in ([""], [os.getcwd()]):  # -P leaves it out
        sys.path.insert(0, os.getcwd())
    try:
        check_done("path", path, _function(path)())
    except ConfigError as error:
        if Passenger.current is not None:
            Passenger.current.end(report=False)
        sys.stderr.write(f"nclone-env: {plain(error)}\n")
        sys.exit(2)


def _function(path: str) -> Callable[[], object]:
    module, _, name = path.partition(":")
    try:
        function = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:  # ValueError: an empty name
        raise ConfigError(f"path: expected MODULE:FUNCTION that can be imported, got {path!r}: {error}") from error
    if not callable(function):
        raise ConfigError(f"path: expected a function, got {path!r}, which is {shortened(function)}")
    found: Callable[[], object] = function
    return found


def give_way(known: Collection[str], folder: str | None) -> None:
    """Forget the modules, but for those ``known``, whose names the program's own folder has: it imports its own."""
    if folder is None:
        return
    new = [name for name in sys.modules if name not in known]
    hidden = {name for name in new if "." not in name and _is_other(sys.modules[name], name, folder)}
    for name in new:
        if name.partition(".")[0] in hidden:
            del sys.modules[name]


def _is_other(module: ModuleType, name: str, folder: str) -> bool:
    if BuiltinImporter.find_spec(name) is not None or FrozenImporter.find_spec(name) is not None:
        return False
    spec = PathFinder.find_spec(name, [folder])
    return spec is not None and spec.loader is not None and spec.origin != getattr(module, "__file__", None)


def _aside(number: int) -> tuple[int, tuple[int, int]]:
    """Return a copy of a file descriptor, and which file it is; the program's own files get the numbers they have."""
    try:
        copy = fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, min(_HIGHEST, os.sysconf("SC_OPEN_MAX") // 2))
        return copy, _identity(copy)
    except OSError:
        return -1, (0, 0)


def _identity(number: int) -> tuple[int, int]:
    found = os.fstat(number)
    return found.st_dev, found.st_ino
