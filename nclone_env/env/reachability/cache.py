"""The distance fields of ``reachability``: a bounded LRU cache shared by the environments of a process."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition, Lock
from typing import NamedTuple
from weakref import WeakValueDictionary

import numpy as np

from nclone_env.kinds import REGULAR_DOOR
from nclone_env.level import LevelSet
from nclone_env.level.routes import FIELD_SHAPE, PLANES, free_nodes, write_reach_fields
from nclone_env.memory_tree import MemoryNode, array_node, arrays_node
from nclone_env.obs import key_bits, key_width

_MIN_SLOTS, _SLOTS_PER_LEVEL = 64, 2
_EMPTY = -1.0


class FieldCounts(NamedTuple):
    """Usage of a cache.

    Attributes:
        slots: capacity in entries.
        used: entries in the cache.
        hits: answers from a cached entry.
        misses: answers that computed an entry.
        evictions: entries replaced by others.
        total_bytes: memory of all slots; a page is committed when its slot is first used.
    """

    slots: int
    used: int
    hits: int
    misses: int
    evictions: int
    total_bytes: int


class FieldCache:
    """Fields of the levels of a set by key (``obs.reachability``), in preallocated slots that kernels read by number.

    Many threads may read at the same time, between :meth:`begin_reading` and :meth:`end_reading`; changes are
    exclusive. A field depends only on its key, so answers do not depend on the state of the cache.
    """

    def __init__(self, levels: LevelSet, slots: int):
        self.fields = np.zeros((PLANES * slots, *FIELD_SHAPE), dtype=np.float32)
        self.keys = np.full((slots, key_width(levels)), _EMPTY)
        self.last_use = np.full(slots, -1, dtype=np.int64)
        self._levels = levels
        self._clock = itertools.count()
        self._turn = Condition()
        self._readers, self._writers = 0, 0
        self._hits = self._misses = self._evictions = 0

    def begin_reading(self) -> int:
        """Wait for changes to end; return the time that the reader writes into ``last_use`` of the slots it uses."""
        with self._turn:
            while self._writers:
                self._turn.wait()
            self._readers += 1
            return next(self._clock)

    def end_reading(self, hits: int) -> None:
        """Allow changes again; ``hits`` is the number of answers found."""
        with self._turn:
            self._readers -= 1
            self._hits += hits
            if not self._readers:
                self._turn.notify_all()

    @contextmanager
    def providing(self, key: np.ndarray) -> Iterator[int]:
        """Hold the entry of a key, computed if it is missing, with exclusive access to the cache.

        Yields the time, as :meth:`begin_reading` returns it.
        """
        with self._turn:
            self._writers += 1
            try:
                while self._readers:
                    self._turn.wait()
                time = next(self._clock)
                self._provide(key)
                yield time
            finally:
                self._writers -= 1
                self._turn.notify_all()

    def counts(self) -> FieldCounts:
        """Return the usage so far."""
        with self._turn:
            used = int(np.count_nonzero(self.last_use >= 0))
            counters = (self._hits, self._misses, self._evictions)
            return FieldCounts(len(self.keys), used, *counters, self.fields.nbytes)

    def memory(self) -> MemoryNode:
        """Return the bytes of all slots."""
        index = arrays_node("index", (self.keys, self.last_use), shared=True)
        slots = array_node(f"{len(self.keys)} slots", self.fields, shared=True)
        return MemoryNode("fields of reachability", children=(slots, index))

    def _provide(self, key: np.ndarray) -> None:
        if (self.keys == key).all(axis=1).any():
            self._hits += 1
            return
        slot = int(self.last_use.argmin())
        self._evictions += int(self.last_use[slot] >= 0)
        self._misses += 1
        compute_fields(self._levels, key, self.fields[PLANES * slot : PLANES * (slot + 1)])
        self.keys[slot] = key


_shared: WeakValueDictionary[tuple[int, int], FieldCache] = WeakValueDictionary()
_sharing = Lock()


def slot_count(levels: LevelSet) -> int:
    """Return the capacity of the cache of a level set in entries: with fewer than are in use every step is slow."""
    return max(_MIN_SLOTS, _SLOTS_PER_LEVEL * len(levels.levels))


def shared_cache(levels: LevelSet) -> FieldCache:
    """Return the cache shared by all environments of this process with the same level set."""
    count = slot_count(levels)
    with _sharing:
        cache = _shared.get((id(levels), count))  # the cache keeps the levels alive, so the id stays theirs
        if cache is None:
            cache = _shared[id(levels), count] = FieldCache(levels, count)
        return cache


def compute_fields(levels: LevelSet, key: np.ndarray, out: np.ndarray) -> None:
    """Write the fields of a key, (3, 51, 89) float32."""
    arrays, header = levels.arrays, levels.arrays.header[int(key[0])]
    bits = key_bits(key)
    doors = arrays.doors[header["first_door"] :][: header["door_count"]]
    doors = doors[doors["type"] != REGULAR_DOOR]
    count = int(header["exit_count"])
    opened = bits[len(doors) :][:count] if count > 1 else np.zeros(count, dtype=np.bool_)
    table = arrays.entities[header["first_entity"] + header["first_exit"] :]
    ends = [[(int(e["x"]), int(e["y"])) for e in table[k : 2 * count : 2]] for k in range(2)]
    exits = [point for point, is_open in zip(ends[0], opened, strict=True) if is_open] or ends[0]
    switches = [point for point, is_open in zip(ends[1], opened, strict=True) if not is_open]
    write_reach_fields(free_nodes(arrays.tiles[int(key[0])]), doors[bits[: len(doors)]], switches, exits, out)
