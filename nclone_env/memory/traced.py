"""Memory traced by tracemalloc: totals at every snapshot, and source lines with their callers at a few."""

from __future__ import annotations

import gc
import glob
import os
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from nclone_env.memory.measurements import SourceLine, Traced

_FRAMES = 6  # of the call stack of each traced block
# Allocations of tracemalloc and of the profiler itself.
_OWN_MEMORY = (
    tracemalloc.Filter(False, tracemalloc.__file__),
    tracemalloc.Filter(False, glob.escape(str(Path(__file__).parent)) + os.sep + "*"),
)

Lines = tuple[SourceLine, ...]


@contextmanager
def tracing() -> Iterator[None]:
    """Run tracemalloc inside the block; leave it running if it was running before."""
    already_tracing = tracemalloc.is_tracing()
    if not already_tracing:
        tracemalloc.start(_FRAMES)
    try:
        yield
    finally:
        if not already_tracing:
            tracemalloc.stop()


def live_lines() -> Lines:
    """Return every line with live traced memory and what called it, without the memory of the profiler.

    It takes up to a second. The lines are created while tracing; being allocated in this file, they are filtered out.
    """
    found: dict[tuple[str, int], SourceLine] = {}
    statistics = tracemalloc.take_snapshot().filter_traces(_OWN_MEMORY).statistics("traceback")  # largest first
    for item in statistics:
        place, *callers = reversed(item.traceback)
        key = (place.filename, place.lineno)
        before = found.get(key)
        if before is None:
            stack = tuple(f"{frame.filename}:{frame.lineno}" for frame in callers)
            found[key] = SourceLine(*key, item.size, item.count, stack)
        else:
            size, count = before.live_bytes + item.size, before.blocks + item.count
            found[key] = SourceLine(*key, size, count, before.callers)
    return tuple(found.values())


class TracedLog:
    """Traced memory in chronological order, without that of the profiler; its totals are in a preallocated array.

    Args:
        capacity: room for so many snapshots; when it is full, :meth:`thin` makes room.
    """

    def __init__(self, capacity: int):
        self._values = np.full((capacity, 2), -1.0)
        self._count = 0
        self._own = 0  # traced bytes of the profiler itself
        self.first: Lines = ()
        """Lines of the earlier of the last two calls of :meth:`take_lines`; of the only one if there was one."""
        self.last: Lines = ()
        """Lines of the last call."""

    def take(self, step: float) -> None:
        """Note the traced bytes at a step."""
        self._values[self._count] = step, tracemalloc.get_traced_memory()[0] - self._own
        self._count += 1

    def take_lines(self) -> None:
        """Note the lines with live memory, and by the way how much the profiler itself has allocated."""
        lines = live_lines()
        self.first, self.last = self.last or lines, lines
        gc.collect()  # tracemalloc's snapshots are part of reference cycles
        self._own = tracemalloc.get_traced_memory()[0] - sum(line.live_bytes for line in lines)

    def clear(self) -> None:
        """Drop all snapshots and lines."""
        self._count, self.first, self.last = 0, (), ()

    def thin(self) -> None:
        """Drop every second snapshot, but not the first."""
        kept = self._values[: self._count : 2].copy()
        self._values[: len(kept)] = kept
        self._count = len(kept)

    def records(self) -> tuple[Traced, ...]:
        """Return the snapshots in order."""
        return tuple(Traced(float(step), int(size)) for step, size in self._values[: self._count])
