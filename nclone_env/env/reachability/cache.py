"""The fields of ``reachability`` that are kept: a bounded number, the least recently used makes room for a new one."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition, Lock
from typing import NamedTuple
from weakref import WeakValueDictionary

import numpy as np

from nclone_env.constants import REGULAR_DOOR
from nclone_env.level.level_set import LevelSet
from nclone_env.level.routes.distance import FIELD_SHAPE
from nclone_env.level.routes.doors import PLANES, free_nodes, write_reach_fields
from nclone_env.memory_tree import MemoryNode
from nclone_env.obs.reachability import BITS, key_width

_LEAST_SLOTS, _SLOTS_A_LEVEL = 64, 2
_EMPTY = -1.0


class CacheCounts(NamedTuple):
    """How a cache is used.

    Attributes:
        slots: entries there is room for.
        used: entries there are.
        hits: answers from an entry that was there.
        misses: answers for which an entry was computed.
        evictions: entries that made room for others.
        total_bytes: memory of all slots; the system gives it when a slot is first used.
    """

    slots: int
    used: int
    hits: int
    misses: int
    evictions: int
    total_bytes: int


class FieldCache:
    """Fields of the levels of a set by key (``obs.reachability``), in preallocated slots that kernels read by number.

    Many threads may read at the same time, between :meth:`begin_reading` and :meth:`end_reading`; whoever changes
    entries is alone. What a field holds follows from its key, so answers do not depend on what is kept.

    Args:
        levels: what is played.
        slots: how many entries are kept.
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
        """Wait until nobody changes anything; return the time that readers write into ``last_use`` of what they use."""
        with self._turn:
            while self._writers:
                self._turn.wait()
            self._readers += 1
            return next(self._clock)

    def end_reading(self, hits: int) -> None:
        """Let others change entries again; ``hits`` answers were found."""
        with self._turn:
            self._readers -= 1
            self._hits += hits
            if not self._readers:
                self._turn.notify_all()

    @contextmanager
    def providing(self, key: np.ndarray) -> Iterator[int]:
        """Hold the entry of a key, computed if it is not there, while nobody else reads or changes any.

        Gives the time, as :meth:`begin_reading` does.
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

    def counts(self) -> CacheCounts:
        """Return how the cache has been used."""
        with self._turn:
            used = int(np.count_nonzero(self.last_use >= 0))
            counters = (self._hits, self._misses, self._evictions)
            return CacheCounts(len(self.keys), used, *counters, self.fields.nbytes)

    def memory(self) -> MemoryNode:
        """Return the bytes of all slots."""
        index = MemoryNode("index", self.keys.nbytes + self.last_use.nbytes, shared=True)
        slots = MemoryNode(f"{len(self.keys)} slots", self.fields.nbytes, shared=True)
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


def shared_cache(levels: LevelSet, slots: int | None) -> FieldCache:
    """Return the cache that all environments of this process with a level set and a number of slots share.

    Args:
        levels: what is played.
        slots: how many entries are kept; None: two a level, 64 at least.
    """
    count = max(_LEAST_SLOTS, _SLOTS_A_LEVEL * len(levels.levels)) if slots is None else slots
    with _sharing:
        cache = _shared.get((id(levels), count))  # which keeps the levels, so that the number stays theirs
        if cache is None:
            cache = _shared[id(levels), count] = FieldCache(levels, count)
        return cache


def compute_fields(levels: LevelSet, key: np.ndarray, out: np.ndarray) -> None:
    """Write the fields of a key, (3, 51, 89) float32."""
    arrays, header = levels.arrays, levels.arrays.header[int(key[0])]
    bits = np.array([int(key[1 + k // BITS]) >> k % BITS & 1 for k in range(BITS * (len(key) - 1))], dtype=np.bool_)
    doors = arrays.doors[header["first_door"] :][: header["door_count"]]
    doors = doors[doors["type"] != REGULAR_DOOR]
    count = int(header["exit_count"])
    opened = bits[len(doors) :][:count] if count > 1 else np.zeros(count, dtype=np.bool_)
    table = arrays.entities[header["first_entity"] + header["first_exit"] :]
    ends = [[(int(e["x"]), int(e["y"])) for e in table[k : 2 * count : 2]] for k in range(2)]
    exits = [point for point, is_open in zip(ends[0], opened, strict=True) if is_open] or ends[0]
    switches = [point for point, is_open in zip(ends[1], opened, strict=True) if not is_open]
    write_reach_fields(free_nodes(arrays.tiles[int(key[0])]), doors[bits[: len(doors)]], switches, exits, out)
