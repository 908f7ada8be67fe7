"""Memory traced by tracemalloc: totals at every snapshot, and source lines at some of them."""

import gc
import os
import site
import sysconfig
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from nclone_env.memory.measurements import Place, SourceLine, Traced
from nclone_env.memory.process import heap_bytes

_FRAMES = 16  # of the call stack of each traced block: enough to pass through wrappers to the caller
_LINE_SNAPSHOTS = 16
_COST = 10
"""Line snapshots take at most a tenth of the time."""
_PROBES = 4_000  # objects that a measurement of tracemalloc's tables makes
_PACKAGE = str(Path(__file__).parents[1]) + os.sep
_FOLDER = str(Path(__file__).parent) + os.sep
_CALLING = ("passes.py", "flat.py")  # modules of the profiler that call what is profiled
_LIBRARIES = tuple(
    folder + os.sep
    for folder in {*map(sysconfig.get_path, ("stdlib", "platstdlib", "purelib", "platlib")), site.getusersitepackages()}
)

Frame = tuple[str, int]


@contextmanager
def tracing() -> Iterator[None]:
    """Run tracemalloc inside the block; leave it running if it was running before."""
    already_tracing = tracemalloc.is_tracing()
    if not already_tracing:
        start_tracing()
    try:
        yield
    finally:
        if not already_tracing:
            tracemalloc.stop()


def start_tracing() -> None:
    """Start tracemalloc with call stacks deep enough for the report."""
    tracemalloc.start(_FRAMES)


def table_bytes() -> int:
    """Return the bytes of the allocator that tracemalloc's own tables take."""
    return int(tracemalloc.get_tracemalloc_memory() * _table_factor()) if tracemalloc.is_tracing() else 0


@cache
def _table_factor() -> float:
    """Measure how much more of the allocator's memory the tables take than tracemalloc says: headers of blocks."""
    before = heap_bytes()
    if before is None:
        return 1.0
    reported, kept = tracemalloc.get_tracemalloc_memory(), [None] * _PROBES
    for number in range(_PROBES):
        kept[number] = object()  # type: ignore[call-overload]
    after = heap_bytes()
    assert after is not None
    return max(1.0, (after.in_use - before.in_use) / (tracemalloc.get_tracemalloc_memory() - reported))


@cache
def is_own(file: str) -> bool:
    """Return whether a file is the user's: no library, nor part of this package."""
    return not (file.startswith((*_LIBRARIES, _PACKAGE, "<frozen")) or file == "<string>")


def place_of(stack: tuple[Frame, ...]) -> Place | None:
    """Return the place of a call stack, innermost frame first; None for memory of the profiler."""
    for number, (file, line) in enumerate(stack):
        if file.startswith(_FOLDER) and not (number and file.endswith(_CALLING)):
            return None
        if is_own(file):
            return Place(*stack[0], f"{file}:{line}")
    return Place(*stack[0], "")


def raw_traces() -> list[tuple[int, int, tuple[Frame, ...], int]]:
    """Return (domain, bytes, call stack, its full length) of each traced block; equal stacks are one object."""
    import _tracemalloc  # tracemalloc.take_snapshot() makes several objects of each trace, which takes far longer

    found: Any = _tracemalloc._get_traces()
    return list(found)


def live_lines() -> dict[Place, list[Any]]:
    """Return [bytes, blocks, call stack] of every line with live traced memory, without that of the profiler."""
    stacks: dict[int, list[Any]] = {}
    traces = raw_traces()
    for _, size, stack, _ in traces:
        entry = stacks.get(id(stack))
        if entry is None:
            stacks[id(stack)] = [size, 1, stack]
        else:
            entry[0] += size
            entry[1] += 1
    found: dict[Place, list[Any]] = {}
    for size, blocks, stack in stacks.values():
        place = place_of(stack)
        if place is None:
            continue
        entry = found.get(place)
        if entry is None:
            found[place] = [size, blocks, stack, size]
        else:
            entry[0] += size
            entry[1] += blocks
            if size > entry[3]:
                entry[2:] = stack, size
    return found


class TracedLog:
    """Traced memory in chronological order, without that of the profiler; its totals are in a preallocated array.

    Args:
        capacity: room for so many snapshots; when it is full, :meth:`thin` makes room.
        collect: collects garbage, after lines were noted.
    """

    def __init__(self, capacity: int, collect: Callable[[], object] = gc.collect):
        self._collect = collect
        self._values = np.full((capacity, 2), -1.0)
        self._count = 0
        self._own = 0  # traced bytes of the profiler itself
        self._numbers: dict[Place, int] = {}
        self._stacks: list[tuple[Frame, ...]] = []
        self._lines: list[tuple[float, np.ndarray]] = []
        self._spacing = 0.0  # steps between two lines that are kept
        self._next = 0.0
        self.whole = True
        """Whether tracemalloc ran at every snapshot: the code may stop it."""

    def take(self, step: float, lines: bool = False, always: bool = False) -> None:
        """Note the traced bytes at a step.

        Args:
            lines: from the lines, which is exact, unless the last time was so recently that they take too long.
            always: even then, and keep the lines.
        """
        self.whole &= tracemalloc.is_tracing()
        if lines and tracemalloc.is_tracing() and (always or time.perf_counter() >= self._next):
            size = self._take_lines(step, always)
            self._collect()
            self._own = tracemalloc.get_traced_memory()[0] - size
        else:
            size = tracemalloc.get_traced_memory()[0] - self._own
        self._values[self._count] = step, size
        self._count += 1

    def _take_lines(self, step: float, always: bool) -> int:
        """Return the bytes of all lines but the profiler's, and keep the lines if it is time to."""
        start = time.thread_time()
        lines = live_lines()
        if always or not self._lines or step - self._lines[-1][0] >= self._spacing:
            self._keep(step, lines)
        self._next = time.perf_counter() + _COST * (time.thread_time() - start)
        return sum(entry[0] for entry in lines.values())

    def _keep(self, step: float, lines: dict[Place, list[Any]]) -> None:
        """Keep the lines of a step; when there are too many, drop every second of the earlier ones."""
        if self._lines and self._lines[-1][0] == step:
            del self._lines[-1]
        if len(self._lines) == _LINE_SNAPSHOTS:
            del self._lines[1::2]
            self._spacing = self._lines[-1][0] - self._lines[-2][0]
        for place, (_, _, stack, *_) in lines.items():
            if place not in self._numbers:
                self._numbers[place] = len(self._stacks)
                self._stacks.append(stack)
        values = np.zeros((len(self._stacks), 2), np.int64)
        for place, (size, blocks, *_) in lines.items():
            values[self._numbers[place]] = size, blocks
        self._lines.append((step, values))

    def measure_again(self) -> None:
        """Take the next value from the lines in any case: the profiler has allocated something."""
        self._next = 0.0

    @property
    def nbytes(self) -> int:
        """Bytes of the notes on lines."""
        return sum(values.nbytes for _, values in self._lines)

    def clear(self) -> None:
        """Drop all snapshots and lines."""
        self._count, self._spacing, self._next, self.whole = 0, 0.0, 0.0, True
        self._lines.clear()

    def thin(self) -> None:
        """Drop every second snapshot, but not the first."""
        kept = self._values[: self._count : 2].copy()
        self._values[: len(kept)] = kept
        self._count = len(kept)

    def records(self) -> tuple[Traced, ...]:
        """Return the snapshots in order; none if tracemalloc did not run all the time."""
        if not self.whole:
            return ()
        return tuple(Traced(float(step), int(size)) for step, size in self._values[: self._count])

    def line_steps(self) -> tuple[float, ...]:
        """Return the step of each line snapshot."""
        return tuple(step for step, _ in self._lines)

    def lines(self) -> tuple[SourceLine, ...]:
        """Return every line that had live memory at a line snapshot."""
        table = np.zeros((len(self._lines), len(self._stacks), 2), np.int64)
        for number, (_, values) in enumerate(self._lines):
            table[number, : len(values)] = values
        rows = []
        for place, number in self._numbers.items():
            sizes, blocks = table[:, number].T.tolist()
            if any(sizes):
                callers = tuple(f"{file}:{line}" for file, line in self._stacks[number][1:])
                rows.append(SourceLine(place.file, place.line, tuple(sizes), tuple(blocks), callers, place.own))
        return tuple(rows)
