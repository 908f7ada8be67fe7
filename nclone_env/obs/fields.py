"""The ``reachability`` of a batch: answers the queries of a step from a cache of distance fields.

Like the action mask it is written after the step by a kernel of its own; environments without it do not compile it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition, Lock
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import numpy as np

from nclone_env.config import EnvironmentConfig
from nclone_env.game import REGULAR_DOOR
from nclone_env.jit import kernel, specialised
from nclone_env.level import FIELD_ROW, FIELD_SHAPE, PLANES, LevelArrays, LevelSet, free_nodes, write_reach_fields
from nclone_env.memory import MemoryNode, array_group, array_node, arrays_node
from nclone_env.obs.half import words
from nclone_env.obs.reachability import (
    KEY,
    NO_QUERIES,
    PENDING,
    find_slot,
    key_bits,
    key_width,
    make_queries,
    write_reachability,
)
from nclone_env.obs.spec import REACHABILITY

_NAME = "reachability"
_OWN_ROWS = np.zeros(0, dtype=np.int32)
_MIN_SLOTS, _SLOTS_PER_LEVEL = 64, 2
_EMPTY = -1.0


class QueryArrays(NamedTuple):
    """Queries and the cached fields that answer them.

    Attributes:
        levels: ``LevelArrays``.
        fields: (3 S * 51 * 89,) float32, read; three fields per cache slot.
        rows: (1, 51) ``FIELD_ROW``, read; the rows of each field, with a length for every node.
        keys: (S, key) float64, read.
        last_use: (S,) int64, written.
        queries: (n, Q) float64; columns in ``obs.reachability``.
        hints: (n,) int32, written; the slot that each environment used last.
    """

    levels: LevelArrays
    fields: np.ndarray
    rows: np.ndarray
    keys: np.ndarray
    last_use: np.ndarray
    queries: np.ndarray
    hints: np.ndarray


class Reachability:
    """The queries of a batch, and the pass of its calls (``env.compiled.passes``) that answers them."""

    def __init__(self, config: EnvironmentConfig, levels: LevelSet, num_envs: int, with_final: bool):
        self.cache = cache = shared_cache(levels)
        self.queries = make_queries(num_envs, levels)
        self.final_queries = make_queries(num_envs, levels) if with_final else NO_QUERIES
        self._hints = np.zeros(num_envs, dtype=np.int32)
        shared = (levels.arrays, cache.fields.reshape(-1), _whole_rows(), cache.keys, cache.last_use)
        self._arrays = QueryArrays(*shared, self.queries, self._hints)
        self._final_arrays = QueryArrays(*shared, self.final_queries, self._hints)
        unused = words(np.zeros((0, len(REACHABILITY)), config.observation.dtype))
        self._answer_range = specialised(answer_range, self._arrays, unused, _OWN_ROWS, 0, 0, 0, 0)

    def __call__(self, call: Any, worker: int, first: int, last: int) -> None:
        """Answer the pending queries of environments ``first`` to ``last - 1``."""
        self._answer(self._arrays, words(call.out[_NAME]), _OWN_ROWS, call.base, first, last)
        if call.final is not None:
            final = call.final.kernel_arrays[_NAME]
            self._answer(self._final_arrays, final, call.final.places, call.base, first, last)

    def memory(self) -> MemoryNode:
        """Return the bytes of queries and fields."""
        own = {"queries": self.queries, "final queries": self.final_queries, "slots last used": self._hints}
        queries = array_group("queries", own, shared=False)
        return MemoryNode(_NAME, children=(queries, self.cache.memory()))

    def _answer(
        self, arrays: QueryArrays, out: np.ndarray, places: np.ndarray, base: int, first: int, last: int
    ) -> None:
        time = self.cache.begin_reading()
        try:
            pending = self._answer_range(arrays, out, places, time, base, first, last)
        finally:
            self.cache.end_reading()
        if pending:
            for index in (first + np.flatnonzero(arrays.queries[first:last, PENDING])).tolist():
                with self.cache.providing(arrays.queries[index, KEY:]) as time:
                    self._answer_range(arrays, out, places, time, base, index, index + 1)


def _whole_rows() -> np.ndarray:
    """Return the (1, 51) ``FIELD_ROW`` of a field with a length for every node."""
    rows = np.zeros((1, FIELD_SHAPE[0]), FIELD_ROW)
    rows["first"], rows["count"] = FIELD_SHAPE[1] * np.arange(FIELD_SHAPE[0]), FIELD_SHAPE[1]
    return rows


@kernel
def answer_range(arrays, out, places, time, base, first, last):
    """Answer the pending queries whose fields are in the cache.

    Args:
        out: (n, 11) float32, or the words of float32 or float16 (``obs.half``).
        places: (n,) int32, the row to write for each environment; (0,): their own rows.
        time: value to write into ``last_use``.
        base: environment of the first row of ``out`` and of ``places``.

    Returns:
        Number of queries left pending.
    """
    queries, hints = arrays.queries, arrays.hints
    pending = 0
    for index in range(first, last):
        if queries[index, PENDING] == 0.0:
            continue
        slot = find_slot(arrays.keys, queries, index, hints[index])
        if slot < 0:
            pending += 1
            continue
        hints[index], arrays.last_use[slot] = slot, time
        row = index - base if places.shape[0] == 0 else int(places[index - base])
        write_reachability(arrays.levels, arrays.fields, arrays.rows, slot, queries, index, out[row])
        queries[index, PENDING] = 0.0
    return pending


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

    def begin_reading(self) -> int:
        """Wait for changes to end; return the time that the reader writes into ``last_use`` of the slots it uses."""
        with self._turn:
            while self._writers:
                self._turn.wait()
            self._readers += 1
            return next(self._clock)

    def end_reading(self) -> None:
        """Allow changes again."""
        with self._turn:
            self._readers -= 1
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

    def memory(self) -> MemoryNode:
        """Return the bytes of all slots."""
        index = arrays_node("index", (self.keys, self.last_use), shared=True)
        slots = array_node(f"{len(self.keys)} slots", self.fields, shared=True)
        return MemoryNode("fields of reachability", children=(slots, index))

    def _provide(self, key: np.ndarray) -> None:
        if not (self.keys == key).all(axis=1).any():
            slot = int(self.last_use.argmin())
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
