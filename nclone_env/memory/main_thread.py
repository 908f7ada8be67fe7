"""Calls in the main thread, between two of its instructions, as those of signal handlers.

A look at all objects must not overlap with running code: the interpreter resizes a tuple that it is making only while
nothing else refers to it, and raises SystemError otherwise.
"""

from __future__ import annotations

import _thread
import ctypes
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_PATIENCE = 1.0  # seconds to wait for the main thread
_AFTERWARDS = 0.01
_UNDISTURBED = 0.5  # seconds before another thread may interrupt what is called
_Pending = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
_KEPT: list[object] = []  # the interpreter may call them at any time


def call_in_main_thread(function: Callable[[], object]) -> None:
    """Call a function in the main thread, or here if that runs no instructions now, and wait for its end."""
    claimed, done = threading.Lock(), threading.Event()

    def call() -> None:
        if claimed.acquire(blocking=False):
            try:
                with _undisturbed():
                    function()
            finally:
                done.set()

    call_later(call)
    if not done.wait(_PATIENCE):
        call()
        done.wait()


def call_later(function: Callable[[], object]) -> None:
    """Call a function at the next instruction of the main thread, and do not wait."""

    def call(_: object) -> int:
        interrupts: list[int] = []
        before = signal.getsignal(signal.SIGINT)
        if before is not None:  # None: of native code, which raises nothing here
            signal.signal(signal.SIGINT, lambda number, frame: interrupts.append(number))  # they are for the code
        try:
            function()
        finally:
            if before is not None:
                signal.signal(signal.SIGINT, before)
        if interrupts:
            threading.Timer(_AFTERWARDS, _thread.interrupt_main).start()
        return 0

    pending = _Pending(call)
    _KEPT.append(pending)
    ctypes.pythonapi.Py_AddPendingCall(pending, None)


@contextmanager
def _undisturbed() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(_UNDISTURBED)
    try:
        yield
    finally:
        sys.setswitchinterval(before)
