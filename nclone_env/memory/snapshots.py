"""Snapshots of memory beside code that is judged: they keep little, take little of the time, and leave no garbage."""

import gc
import sys
import time
import tracemalloc
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from nclone_env.memory.measurements import Place, Snapshot, SourceLine, Traced
from nclone_env.memory.process import (
    committed_tree_bytes,
    heap_bytes,
    resident_bytes,
    shared_file_bytes,
    worker_sizes,
)
from nclone_env.memory.traced import Frame, live_lines, table_bytes
from nclone_env.memory.tree import MemoryNode

_LINE_SNAPSHOTS = 16
_LINE_COST = 10
"""Line snapshots take at most a tenth of the time."""
_clear_caches = getattr(sys, "_clear_internal_caches", None) or sys._clear_type_cache  # of Python 3.13 and before it
_CHEAP = 0.002  # seconds that a full collection may take in any case
_COST = 20
"""Longer ones take at most a twentieth of the time."""


class Garbage:
    """Collects garbage among the objects made since :meth:`leave_out`, however many there were before."""

    def __init__(self) -> None:
        self._left_out = 0  # objects
        self._cost = self._last = 0.0  # seconds of the last full collection, and when it ended
        self.all_full = True
        """Whether every collection was a full one. Only these empty the lists in which Python keeps freed tuples and
        numbers for new ones, and the cache in which it keeps names of attributes. Both count as live, of the line that
        allocated them first: up to a megabyte, reached after thousands of steps."""

    def collect(self) -> None:
        """Collect garbage; that of old objects only if this was fast the last time. Not if the code switched it off."""
        is_due = self._cost < max(_CHEAP, (time.perf_counter() - self._last) / _COST)
        self.all_full &= is_due and gc.isenabled()
        if not gc.isenabled():
            return
        start = time.thread_time()
        gc.collect(2 if is_due else 1)
        if is_due:
            _clear_caches()
            self._cost, self._last = time.thread_time() - start, time.perf_counter()

    def leave_out(self) -> None:
        """Leave what exists out of further collections, unless the code does so itself."""
        if not gc.get_freeze_count():
            gc.freeze()
            self._left_out = gc.get_freeze_count()
        self._cost = 0.0

    def include(self) -> None:
        """Undo :meth:`leave_out`, unless the code has left out more since."""
        if 0 < gc.get_freeze_count() <= self._left_out:
            gc.unfreeze()
        self._left_out = 0


class Held(NamedTuple):
    """Memory of this process, without the tables of tracemalloc, in bytes."""

    anonymous: int
    """In pages without a file."""
    native: int
    """In use according to the C library's allocator; -1 if unknown."""


def held_bytes() -> Held:
    """Return the memory of this process now."""
    tables, heap = table_bytes(), heap_bytes()
    return Held(resident_bytes().anonymous - tables, heap.in_use - tables if heap else -1)


class _Log:
    """Snapshots in chronological order, in a preallocated array: taking one keeps no new memory.

    When ``capacity`` of them are there, :meth:`thin` makes room.
    """

    def __init__(self, capacity: int, columns: int):
        self._values, self._count = np.full((capacity, columns), -1.0), 0  # its pages are committed now

    def __len__(self) -> int:
        """Return the number of snapshots."""
        return self._count

    def thin(self) -> None:
        """Drop every second snapshot, but not the first."""
        kept = self._values[: self._count : 2].copy()
        self._values[: len(kept)] = kept
        self._count = len(kept)


class SnapshotLog(_Log):
    """Snapshots of the memory of this process."""

    def __init__(self, capacity: int):
        super().__init__(capacity, len(Snapshot.__dataclass_fields__))
        self._own = Held(0, 0)  # what the profiler has taken since the first snapshot
        self.workers: Mapping[int, int] = {}
        """Bytes of each child process at the last snapshot, by its number."""

    def take(self, step: float, tree: MemoryNode, notes: int = 0) -> None:
        """Take a snapshot without collecting garbage, and without ``notes``, bytes of the profiler's own."""
        resident, heap, tables = resident_bytes(), heap_bytes(), table_bytes() + notes
        self.workers = worker_sizes("anonymous")
        self._values[self._count] = (
            step,
            resident.rss,
            resident.pss,
            resident.anonymous - tables - self._own.anonymous,
            sum(self.workers.values()),
            heap.in_use - tables - self._own.native if heap else -1,
            tree.bytes_where(mapped=False),
            committed_tree_bytes(tree),
            shared_file_bytes(),
        )
        self._count += 1

    @property
    def last_step(self) -> float:
        """Step of the last snapshot; -1 if there is none."""
        return float(self._values[self._count - 1, 0]) if self._count else -1.0

    def exclude(self, before: Held) -> None:
        """Leave what was taken since ``before`` out of all later snapshots: it is the profiler's."""
        taken = zip(self._own, held_bytes(), before)
        self._own = Held(*(own + max(0, after - earlier) for own, after, earlier in taken))

    def clear(self) -> None:
        """Drop all snapshots."""
        self._count, self._own = 0, Held(0, 0)

    def snapshots(self) -> tuple[Snapshot, ...]:
        """Return the snapshots in order."""
        return tuple(Snapshot(float(step), *map(int, rest)) for step, *rest in self._values[: self._count])


class TracedLog(_Log):
    """Traced memory, without that of the profiler: totals of all snapshots, and the source lines of some.

    ``collect`` collects garbage, after lines were noted.
    """

    def __init__(self, capacity: int, collect: Callable[[], object] = gc.collect):
        super().__init__(capacity, 2)
        self._collect = collect
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

        With ``lines`` they are those of the lines, which is exact, unless the last time was so recently that they take
        too long; with ``always`` even then, and the lines are kept.
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
        self._next = time.perf_counter() + _LINE_COST * (time.thread_time() - start)
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
