"""Says on stderr that kernels are being compiled: for half a minute, once, nothing else would be seen.

A line, and on a terminal a bar below it. ``NCLONE_ENV_QUIET=1`` turns both off.
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache
from types import FunctionType, ModuleType
from typing import Any

from nclone_env._files import variable
from nclone_env._table import bar
from nclone_env.jit.parts import has_parts
from nclone_env.jit.sources import names_in

_TYPED, _OPTIMISED = 0.07, 0.03  # seconds for one function: one core of an AMD EPYC
_WORTH_SAYING = 2.0  # seconds
_INSIDE = 0.75  # of the time is spent before the last function is typed
_BETWEEN = 0.1  # seconds


class NotCompiledError(Exception):
    """A kernel is not in the cache."""


_may_compile: ContextVar[bool] = ContextVar("may_compile", default=True)


@contextmanager
def only_compiled() -> Iterator[None]:
    """Raise a ``NotCompiledError`` at the first kernel that would have to be compiled."""
    mark = _may_compile.set(False)
    try:
        yield
    finally:
        _may_compile.reset(mark)


class Notice:
    """What is said about the compilations of a process.

    Nothing is said about kernels that take less than two seconds, nor about those inside of one that was announced.
    """

    def __init__(self) -> None:
        self._known: set[Callable[..., Any]] = set()
        self._name = ""
        self._count = self._done = 0
        self._began = self._drawn = 0.0

    def begin(self, function: Callable[..., Any]) -> None:
        """Announce a kernel that is not in the cache, if it takes long; within ``only_compiled`` refuse it."""
        if not _may_compile.get():
            raise NotCompiledError(function.__name__)
        inside = kernels_in(function) - self._known
        seconds = len(inside) * _OPTIMISED + sum(not has_parts(each) for each in inside) * _TYPED
        if variable("NCLONE_ENV_QUIET") == "1" or seconds < _WORTH_SAYING:
            return
        self._known |= inside
        self._name, self._count, self._done = function.__name__, len(inside), 0
        self._began = self._drawn = time.monotonic()
        say(f"nclone_env: compiling {self._name} and {self._count - 1} functions in it, once: about {seconds:.0f} s\n")

    def advance(self) -> None:
        """Count a function that was compiled as a part of the announced kernel, and draw the bar on a terminal."""
        self._done += 1
        now = time.monotonic()
        if self._name and now - self._drawn > _BETWEEN and _has_terminal():
            self._drawn = now
            say(self._bar(min(1.0, self._done / self._count) * _INSIDE, now))

    def end(self, is_done: bool) -> None:
        """End the line of the bar: the announced kernel is compiled, or an error or Ctrl-C has ended it."""
        if self._name and self._drawn > self._began:
            say((self._bar(1.0, time.monotonic()) if is_done else "") + "\n")
        self._name = ""

    def _bar(self, share: float, now: float) -> str:
        return f"\r\x1b[K{bar(share)} {share:4.0%} {now - self._began:3.0f} s"


def say(text: str) -> None:
    """Write to stderr, if there is one."""
    with suppress(OSError, ValueError, AttributeError):  # no stderr, or a closed one
        sys.stderr.write(text)
        sys.stderr.flush()


@cache
def say_once(text: str) -> None:
    """Write a line to stderr, the same one once in a process and none with ``NCLONE_ENV_QUIET=1``."""
    if variable("NCLONE_ENV_QUIET") != "1":
        say(f"nclone_env: {text}\n")


def _has_terminal() -> bool:
    return sys.stderr is not None and not sys.stderr.closed and sys.stderr.isatty()


def kernels_in(function: Callable[..., Any]) -> set[Callable[..., Any]]:
    """Return the Python functions of a kernel and of all kernels that it calls."""
    found: set[Callable[..., Any]] = set()
    pending = [function]
    while pending:
        current = pending.pop()
        if current not in found:
            found.add(current)
            pending += [
                value.py_func for value in _values(current) if isinstance(getattr(value, "py_func", None), FunctionType)
            ]
    return found


def _values(function: Callable[..., Any]) -> Iterator[Any]:
    """Yield what a function may refer to: its closure, its globals, and attributes of modules among them."""
    yield from (cell.cell_contents for cell in function.__closure__ or ())
    names = set(names_in(function.__code__))
    for value in [function.__globals__[name] for name in names & function.__globals__.keys()]:
        if isinstance(value, ModuleType):
            yield from (getattr(value, name) for name in names if hasattr(value, name))
        else:
            yield value


notice = Notice()
"""The one of this process."""
