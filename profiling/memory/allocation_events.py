"""Counts of what a call allocates: every event with memray, what tracemalloc can tell without it."""

from __future__ import annotations

import gc
import tempfile
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

try:
    import memray
except ImportError:
    memray = None

COUNTS_ALL = memray is not None
"""Whether all allocations are counted in this process."""
COUNTED = (
    "memray: allocations by malloc and its relatives (arrays, large objects), and of Python's small objects"
    if COUNTS_ALL
    else "tracemalloc, as memray is not installed: only blocks alive when the call returns, so that allocations "
    "are not compared; torch's memory is not seen"
)
"""What the numbers of :class:`Allocated` are in this process."""


class Allocated(NamedTuple):
    """What a call allocated; see ``COUNTED``."""

    blocks: int
    """Allocations from the system's allocator; without memray all traced blocks that are alive at the end."""
    objects: int
    """Allocations of Python's small objects; 0 without memray, where they are among the blocks."""
    size: int
    """Bytes of all of these."""
    peak: int
    """Largest number of bytes that were alive at a time, above those before the call."""


def allocated_by(call: Callable[[], object]) -> Allocated:
    """Call a function, keep its result until it is counted, and return what it allocated."""
    gc.collect()
    return _by_memray(call) if COUNTS_ALL else _by_tracemalloc(call)


def _by_memray(call: Callable[[], object]) -> Allocated:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "events.bin"
        with memray.Tracker(path, trace_python_allocators=True):
            kept = call()
        del kept
        with memray.FileReader(path) as reader:
            events = [(memray.AllocatorType(row.allocator), row.size) for row in reader.get_allocation_records()]
            peak = sum(row.size for row in reader.get_high_watermark_allocation_records(merge_threads=True))
    made = [(kind.name, size) for kind, size in events if not kind.name.endswith(("FREE", "MUNMAP"))]
    small = sum(name.startswith("PYMALLOC") for name, _ in made)
    return Allocated(len(made) - small, small, sum(size for _, size in made), peak)


def _by_tracemalloc(call: Callable[[], object]) -> Allocated:
    tracemalloc.start()
    kept = call()
    _, peak = tracemalloc.get_traced_memory()
    sizes = [trace.size for trace in tracemalloc.take_snapshot().traces]
    tracemalloc.stop()
    del kept
    return Allocated(len(sizes), 0, sum(sizes), peak)
