"""When a program imports and compiles, seen from what its threads do now and then; and how its workers tell.

A worker process runs :func:`begin` from its start on: a thread that says when it imports or compiles, and waits until
the profiler of its parent asks for lines. Worker processes that are not forked run this file on its own, so that it
imports nothing of the package before it is asked.
"""

import os
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from types import FrameType

_PACKAGE = str(Path(__file__).parents[1])
_MAKING = os.path.join(_PACKAGE, "jit", ""), os.path.join(_PACKAGE, "render", "raster.py")
"""Compiles kernels, and draws glyphs: once per machine, from thousands of small arrays."""
_COMPILERS = ("numba/core", "numba/np", "llvmlite", "torch/_inductor", "jax/_src/interpreters")
_PARTS = tuple(f"/{part}/".replace("/", os.sep) for part in _COMPILERS)
_SAME = 150.0  # milliseconds within which two sightings are one
REQUEST, LOADING = "trace", ".loading"
"""Name of the file by which a parent asks, and ending of that by which a process says that it imports or compiles."""
SPAWNED = "spawned worker"
"""Name under which a worker process that is not forked runs this file."""
_POLL = 0.1  # seconds


class Loading:
    """Stretches of a run in which code was imported or compiled."""

    def __init__(self) -> None:
        self._stretches: list[list[float]] = []
        self.last = 0.0
        """Milliseconds of the last sighting."""
        self.milliseconds = 0.0
        """In which code was seen to be imported or compiled."""
        self._before = 0.0

    def look(self, place: float, now: float, workers: bool = False) -> bool:
        """Look at all threads at ``place``, a step of the program or a time, and ``now``; times are in milliseconds.

        ``workers`` tells whether a worker process imports or compiles.
        """
        loads = workers or is_loading()
        if loads:
            self.milliseconds += now - self._before
            if self._stretches and now - self.last < _SAME:
                self._stretches[-1][1] = place
            else:
                self._stretches.append([place, place])
            self.last = now
        self._before = now
        return loads

    def restart(self) -> None:
        """Forget the stretches so far."""
        self._stretches.clear()

    def longest_without(self, first: float, last: float) -> tuple[float, float]:
        """Return the bounds of the longest stretch between two places in which nothing was seen."""
        edges = [first, *(place for stretch in self._stretches for place in stretch), last]
        gaps = [(max(first, low), min(last, high)) for low, high in zip(edges[::2], edges[1::2])]
        return max(gaps, key=lambda gap: gap[1] - gap[0])


def is_loading() -> bool:
    """Return whether a thread of this process, other than the calling one, imports or compiles now."""
    this = threading.get_ident()
    return any(_loads(frame) for thread, frame in sys._current_frames().items() if thread != this)


def _loads(innermost: FrameType) -> bool:
    frame: FrameType | None = innermost
    while frame is not None:
        file = frame.f_code.co_filename
        if file.startswith(("<frozen importlib", *_MAKING)) or any(part in file for part in _PARTS):
            return True
        frame = frame.f_back
    return False


def begin(folder: Path) -> None:
    """Begin to wait until there is a request in the folder of a profile, or that is removed."""
    threading.Thread(target=_wait, args=(folder,), daemon=True, name="memory profiler").start()


def _wait(folder: Path) -> None:
    sign = folder / f"{os.getpid()}{LOADING}"
    with suppress(OSError):  # the folder is removed at the end
        while folder.exists():
            if is_loading():
                sign.touch()
            elif (folder / REQUEST).exists():
                from nclone_env.memory.workers import trace

                trace(folder)
                return
            time.sleep(_POLL)


if __name__ == SPAWNED:
    begin(Path(globals()["folder"]))
