"""Snapshots of memory beside code that is judged, and the source lines behind it: they keep and take little.

Lines are traced by tracemalloc. It sees no memory of native code: of that the allocator's count is read line by line,
which takes several times as long, in short stretches once native memory has been seen to grow.
"""

import ctypes
import gc
import os
import sys
import sysconfig
import time
import tracemalloc
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from operator import itemgetter
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import numpy as np

from nclone_env.memory.measure.measurements import Place, Snapshot, SourceLine, Traced
from nclone_env.memory.measure.process import (
    committed_bytes,
    committed_tree_bytes,
    heap_bytes,
    is_mapped_block,
    reserved_blocks,
    resident_bytes,
    shared_file_bytes,
    worker_sizes,
)
from nclone_env.memory.measure.tree import MemoryNode

_LINE_SNAPSHOTS = 16
_LINE_COST = 10  # part of the time that line snapshots take at most
_clear_caches = getattr(sys, "_clear_internal_caches", None) or sys._clear_type_cache  # of Python 3.13 and before it
_CHEAP, _COST = 0.002, 20  # seconds that a full collection may take in any case; part of the time of longer ones
_FRAMES = 16  # of the call stack of each traced block: enough to pass through wrappers to the caller
_LEFT = 180
"""Bytes of each traced block that stay resident after a look at all: of its trace, and of copies of the tables."""
_PROBES = 4_000  # objects that a measurement of tracemalloc's tables makes
_PACKAGE = str(Path(__file__).parents[2]) + os.sep
FOLDER = str(Path(__file__).parents[1]) + os.sep
_CALLING = ("passes.py", "flat.py")  # modules of the profiler that call what is profiled
_LIBRARIES = tuple({sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib")})
_INSTALLED = tuple(f"{os.sep}{name}{os.sep}" for name in ("site-packages", "dist-packages"))
"""Folders of libraries, whichever Python they belong to."""
_EVENTS = 3000  # lines, calls and returns of a stretch
_LONGEST = 2  # times the processor seconds of a budget, by the clock
_STRETCHES = 10
_LEAST = 1024  # bytes of a line that mean something
_LEAST_SEEN = 0.1
"""Of what grew while lines were watched: if they took less in all, that is noise beside what was not seen."""
_UNIT = 8  # bytes: sizes are known this exactly beside tracemalloc's tables, which are estimated
_asked: list["NativeLines"] = []
"""Those that the main thread is asked to begin a stretch of: that may happen after their end."""

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
    return max(1.0, (after - before) / (tracemalloc.get_tracemalloc_memory() - reported))


@cache
def is_own(file: str) -> bool:
    """Return whether a file is the user's: no library, wherever it is installed, nor part of this package."""
    if file.startswith((*_LIBRARIES, _PACKAGE, "<frozen")) or file == "<string>":
        return False
    if any(part in file for part in _INSTALLED):
        return False
    # Last, as records of packages may take seconds to read.
    above = [folder for folder in sys.path if file.startswith(folder + os.sep)]
    return not any(file[len(folder) + 1 :].split(os.sep)[0] in _recorded(folder) for folder in above)


@cache
def _recorded(folder: str) -> frozenset[str]:
    """Return the files and folders that installed libraries list in a folder, as ``pip --target`` makes one."""
    names: set[str] = set()
    for record in Path(folder).glob("*.dist-info/RECORD"):
        with suppress(OSError, UnicodeDecodeError):
            names.update(line.split("/")[0].split(",")[0] for line in record.read_text().splitlines())
    return frozenset(names)


def place_of(stack: tuple[Frame, ...]) -> Place | None:
    """Return the place of a call stack, innermost frame first; None for memory of the profiler."""
    for number, (file, line) in enumerate(stack):
        if file.startswith(FOLDER) and not (number and file.endswith(_CALLING)):
            return None
        if is_own(file):
            return Place(*stack[0], f"{file}:{line}")
    return Place(*stack[0], "")


def live_lines() -> dict[Place, list[Any]]:
    """Return [bytes, blocks, largest call stack] of every line with live traced memory, but for the profiler's."""
    import _tracemalloc  # tracemalloc.take_snapshot() makes several objects of each trace, which takes far longer

    stacks: dict[int, list[Any]] = {}
    traces: Any = _tracemalloc._get_traces()  # held: equal stacks are one object
    for _, size, stack, _ in traces:
        entry = stacks.get(id(stack))
        if entry is None:
            stacks[id(stack)] = [size, 1, stack]
        else:
            entry[0] += size
            entry[1] += 1
    found: dict[Place, list[Any]] = {}
    for size, blocks, stack in sorted(stacks.values(), key=itemgetter(0), reverse=True):
        place = place_of(stack)
        if place is not None:
            entry = found.setdefault(place, [0, 0, stack])
            entry[0] += size
            entry[1] += blocks
    return found


class Garbage:
    """Collects garbage among the objects made since :meth:`leave_out`, however many there were before."""

    def __init__(self) -> None:
        self._left_out = 0  # objects
        self._cost = self._last = 0.0  # seconds of the last full collection, and when it ended
        self.all_full = True
        """Whether every collection was a full one. Only these empty Python's free lists and its cache of attributes,
        which count as live."""

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
    return Held(resident_bytes().anonymous - table_bytes(), _native_bytes())


def _native_bytes() -> int:
    heap = heap_bytes()
    return heap - table_bytes() if heap is not None else -1


class FilledBlocks:
    """Memory that the program reserved at once and writes bit by bit: each page is committed when it is."""

    def __init__(self) -> None:
        self._found: dict[int, tuple[int, bool, int, int]] = {}
        """By the address of a block its bytes, whether it is one of the C library, which may give it back, the
        committed bytes when it was noted, and the most since."""

    def note(self) -> None:
        """Note what is reserved and yet to be written in part, with what is committed of it now."""
        for address, size in reserved_blocks():
            end = address + size
            while address in self._found:  # a heap grows
                address += self._found[address][0]
            if (left := end - address) > 0 and (committed := committed_bytes([(address, left)])) < left:
                self._found[address] = left, is_mapped_block(address, left), committed, committed

    def grown_bytes(self) -> int:
        """Return what was committed since of blocks that are still there; a fork hides it, as its pages are shared."""
        self._found = {
            address: (size, is_block, before, max(most, committed_bytes([(address, size)])))
            for address, (size, is_block, before, most) in self._found.items()
            if not is_block or is_mapped_block(address, size)
        }
        return sum(most - before for *_, before, most in self._found.values())


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

    def take(
        self,
        step: float,
        tree: MemoryNode,
        notes: int = 0,
        left: int = 0,
        in_workers: Callable[[], Mapping[int, int | None]] = dict,
    ) -> None:
        """Take a snapshot without collecting garbage, and without ``notes``, bytes of the profiler's own.

        ``left`` bytes are resident that it has freed, or that count as owned; ``in_workers`` tells its bytes in child
        processes, None where they are not known, before or after a look at them: that process has as much as before.
        """
        resident, heap, tables = resident_bytes(), heap_bytes(), table_bytes() + notes
        ours, sizes = in_workers(), worker_sizes("anonymous")
        unknown = {child for known in (ours, in_workers()) for child, taken in known.items() if taken is None}
        self.workers = {
            child: self.workers.get(child, size) if child in unknown else size - (ours.get(child) or 0)
            for child, size in sizes.items()
        }
        self._values[self._count] = (
            step,
            resident.rss,
            resident.pss,
            resident.anonymous - tables - left - self._own.anonymous,
            sum(self.workers.values()) if unknown.isdisjoint(sizes) else -1,
            heap - tables - self._own.native if heap is not None else -1,
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
        self._stacks: dict[Place, tuple[Frame, ...]] = {}  # of each line, in the order of its rows in the notes
        self._lines: list[tuple[float, np.ndarray]] = []
        self._spacing = 0.0  # steps between two lines that are kept
        self._next = 0.0
        self.left = 0
        """Bytes that looks at all traced blocks have freed, and that are resident yet."""
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

    @property
    def last_bytes(self) -> int:
        """Traced bytes at the last snapshot."""
        return int(self._values[self._count - 1, 1])

    def _take_lines(self, step: float, always: bool) -> int:
        """Return the bytes of all lines but the profiler's, and keep the lines if it is time to."""
        start = time.thread_time()
        lines = live_lines()
        self.left = max(self.left, _LEFT * sum(entry[1] for entry in lines.values()))
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
        for place, (*_, stack) in lines.items():
            self._stacks.setdefault(place, stack)
        values = [lines[place][:2] if place in lines else (0, 0) for place in self._stacks]
        self._lines.append((step, np.array(values, np.int64).reshape(-1, 2)))

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
        for (place, stack), (sizes, blocks) in zip(self._stacks.items(), table.transpose(1, 2, 0).tolist()):
            if any(sizes):
                callers = tuple(f"{file}:{line}" for file, line in stack[1:])
                rows.append(SourceLine(place.file, place.line, tuple(sizes), tuple(blocks), callers, place.own))
        return tuple(rows)


class Budget:
    """The time of a search, or of a stretch in which lines are watched: processor seconds of the calling thread.

    Beside a program that goes on it is at most twice as long by the clock, as there are no snapshots meanwhile: this
    thread may have to wait for a processor, or the program for something else.
    """

    def __init__(self, seconds: float, by_clock: bool = True):
        self._by_clock = by_clock
        self._ends = time.thread_time() + seconds, time.perf_counter() + _LONGEST * seconds

    @property
    def is_over(self) -> bool:
        """Whether no time is left."""
        return self._left() <= 0

    def part(self, share: float) -> "Budget":
        """Return a budget of a share of what is left."""
        return Budget(share * max(0.0, self._left()), self._by_clock)

    def _left(self) -> float:
        processor, clock = self._ends[0] - time.thread_time(), (self._ends[1] - time.perf_counter()) / _LONGEST
        return min(processor, clock) if self._by_clock else processor


class NativeLines:
    """Bytes of the C library's allocator that each line of the main thread took and did not free."""

    def __init__(self) -> None:
        self._found: Counter[tuple[str, int]] = Counter()  # times that a line took or freed so many units
        self._watched: list[FrameType] = []
        self._line = ""
        self._in_use = 0
        self._went_on = 0.0  # seconds on the clock at which the program went on after the last event
        self._rate = self._expected = 0.0  # bytes a second, and in the time that the program had in all stretches
        self._events = 0
        self._budget = Budget(0.0)
        self._stretches = 0
        self._limits = 1.0, True  # of a stretch: arguments of its budget

    @property
    def is_watching(self) -> bool:
        """Whether there is a stretch now."""
        return bool(self._watched)

    def watch(self, seconds: float, rate: float, by_clock: bool) -> None:
        """Begin a stretch of so long, at the next instruction of the main thread, unless there were enough.

        ``rate`` is the growth seen without watching, in bytes a second; ``by_clock`` is that of a :class:`Budget`.
        """
        if heap_bytes() is not None and not self._watched and self._stretches < _STRETCHES:
            self._limits, self._rate = (seconds, by_clock), rate
            _asked.append(self)
            if ctypes.pythonapi.Py_AddPendingCall(_begin_asked, None):  # there are too many
                _asked.remove(self)

    def skip(self) -> None:
        """Leave out what was taken since the last line, by the profiler."""
        if self._watched:
            self._go_on()

    def close(self) -> None:
        """Begin no more stretches, and end the one that there may be in this thread."""
        self._stretches = _STRETCHES
        self._stop()

    def shares(self) -> dict[str, float]:
        """Return the share of each line, as ``file:line``, in the memory that was taken and not freed.

        What was seen once may be noise: a table of another thread, or of the profiler. So a line has a share if it has
        taken something beside its largest piece, and none has if all of them took too little to explain the growth.
        """
        largest: dict[str, int] = {}
        for line, units in self._found:
            largest[line] = max(units * _UNIT, largest.get(line, 0))
        taken = {line: size for line, size in unfreed(self._found).items() if line and size - largest[line] >= _LEAST}
        whole = sum(taken.values())
        return {line: size / whole for line, size in taken.items()} if whole >= _LEAST_SEEN * self._expected else {}

    def _stop(self) -> None:
        if self._watched:
            sys.settrace(None)
            for frame in self._watched:
                frame.f_trace = None
            self._watched = []

    def _begin(self, _: Any) -> int:
        frame: FrameType | None = sys._getframe(1)
        if self._stretches >= _STRETCHES or sys.gettrace() is not None:  # a debugger, or a measurement of coverage
            return 0
        self._stretches += 1
        self._events, self._budget = 0, Budget(*self._limits)
        self._line = _own_line(frame)
        while frame is not None:
            if is_own(frame.f_code.co_filename):
                frame.f_trace = self._trace
                self._watched.append(frame)
            frame = frame.f_back
        self._go_on()
        if self._watched:  # last: a pending call that makes traced calls never ends if another one waits
            sys.settrace(self._trace)
        return 0

    def _trace(self, frame: FrameType, event: str, argument: Any) -> Any:
        """Count what was taken since the last event for the line before, at calls of libraries only when time is up."""
        now, is_over = time.perf_counter(), self._budget.is_over
        file = frame.f_code.co_filename
        is_ours = file.startswith(FOLDER)  # what the profiler takes is no line's
        if not (is_over or is_ours or is_own(file)):  # a line of the user may call a library for hours
            return None
        self._expected += self._rate * (now - self._went_on)
        self._found[self._line, round((_native_bytes() - self._in_use) / _UNIT)] += 1
        self._events += 1
        if is_over or self._events > _EVENTS:
            self._stop()
            return None
        self._line = "" if is_ours else _own_line(frame.f_back if event == "return" else frame)
        self._go_on()
        return None if is_ours else self._trace

    def _go_on(self) -> None:
        """Let the program go on: what is taken, and the time that passes, until the next event is its own."""
        self._in_use, self._went_on = _native_bytes(), time.perf_counter()


@ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
def _begin_asked(_: Any) -> int:
    return _asked.pop()._begin(None)  # the last that is called: from here on calls are traced


def unfreed(found: Mapping[tuple[str, int], int]) -> dict[str, int]:
    """Return the bytes that each line took and none freed, by the times that it took, or freed, so many units.

    A block may be freed by another line, again and again.
    """
    by_size: dict[int, list[tuple[str, int]]] = defaultdict(list)
    for (line, units), times in found.items():
        if units:
            by_size[abs(units)].append((line, times if units > 0 else -times))
    taken: Counter[str] = Counter()
    for size, changes in by_size.items():
        took = sum(times for _, times in changes if times > 0)
        both = min(took, took - sum(times for _, times in changes))
        for sign in (1, -1):
            left = both
            for times, line in sorted(((sign * times, line) for line, times in changes), reverse=True):
                gone = min(max(0, times), left)
                left -= gone
                taken[line] += sign * size * _UNIT * (max(0, times) - gone)
    return dict(taken)


def _own_line(frame: FrameType | None) -> str:
    while frame is not None and not is_own(frame.f_code.co_filename):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame is not None else ""
