"""Snapshots of the memory of a process, in a preallocated array: taking one keeps no new memory."""

from typing import NamedTuple

import numpy as np

from nclone_env.memory.measurements import Snapshot
from nclone_env.memory.process import committed_tree_bytes, heap_bytes, resident_bytes, worker_bytes
from nclone_env.memory.traced import table_bytes
from nclone_env.memory.tree import MemoryNode


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


class SnapshotLog:
    """Snapshots in chronological order.

    Args:
        capacity: room for so many; when it is full, :meth:`thin` makes room.
    """

    def __init__(self, capacity: int):
        self._values = np.full((capacity, len(Snapshot.__dataclass_fields__)), -1.0)  # its pages are committed now
        self._count = 0
        self._own = Held(0, 0)  # what the profiler has taken since the first snapshot

    def __len__(self) -> int:
        """Return the number of snapshots."""
        return self._count

    def take(self, step: float, tree: MemoryNode, notes: int = 0) -> None:
        """Take a snapshot; it collects no garbage first.

        Args:
            notes: bytes of the profiler's own notes, to be left out.
        """
        resident, heap, tables = resident_bytes(), heap_bytes(), table_bytes() + notes
        self._values[self._count] = (
            step,
            resident.rss,
            resident.pss,
            resident.anonymous - tables - self._own.anonymous,
            worker_bytes("anonymous"),
            heap.in_use - tables - self._own.native if heap else -1,
            tree.bytes_where(mapped=False),
            committed_tree_bytes(tree),
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

    def thin(self) -> None:
        """Drop every second snapshot, but not the first."""
        kept = self._values[: self._count : 2].copy()
        self._values[: len(kept)] = kept
        self._count = len(kept)

    def snapshots(self) -> tuple[Snapshot, ...]:
        """Return the snapshots in order."""
        return tuple(Snapshot(float(step), *map(int, rest)) for step, *rest in self._values[: self._count])
