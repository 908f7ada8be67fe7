"""The ``reachability`` of a batch: answers the queries of a step from the cache of distance fields.

Like the action mask it is written after the step by a kernel of its own; environments without it do not compile it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nclone_env.env.compiled.passes import Call
from nclone_env.env.reachability.cache import FieldCache
from nclone_env.jit import kernel, specialised
from nclone_env.level import LevelArrays, LevelSet
from nclone_env.memory_tree import MemoryNode, array_group
from nclone_env.obs import KEY, NO_QUERIES, PENDING, REACHABILITY, find_slot, make_queries, words, write_reachability

_NAME = "reachability"
_OWN_ROWS = np.zeros(0, dtype=np.int32)


class QueryArrays(NamedTuple):
    """Queries and the cached fields that answer them.

    Attributes:
        levels: ``LevelArrays``.
        fields: (3 S, 51, 89) float32, read; three fields per cache slot.
        keys: (S, key) float64, read.
        last_use: (S,) int64, written.
        queries: (n, Q) float64; columns in ``obs.reachability``.
        hints: (n,) int32, written; the slot that each environment used last.
    """

    levels: LevelArrays
    fields: np.ndarray
    keys: np.ndarray
    last_use: np.ndarray
    queries: np.ndarray
    hints: np.ndarray


class Reachability:
    """The queries of a batch, and the pass that answers them.

    Args:
        dtype: of the observation, float32 or float16.
        with_final: also answer for the last observations of episodes in same-step mode.
    """

    def __init__(self, levels: LevelSet, cache: FieldCache, num_envs: int, dtype: np.dtype, with_final: bool):
        self.cache = cache
        self.queries = make_queries(num_envs, levels)
        self.final_queries = make_queries(num_envs, levels) if with_final else NO_QUERIES
        self._hints = np.zeros(num_envs, dtype=np.int32)
        shared = (levels.arrays, cache.fields, cache.keys, cache.last_use)
        self._arrays = QueryArrays(*shared, self.queries, self._hints)
        self._final_arrays = QueryArrays(*shared, self.final_queries, self._hints)
        unused = words(np.zeros((0, len(REACHABILITY)), dtype))
        self._answer_range = specialised(answer_range, self._arrays, unused, _OWN_ROWS, 0, 0, 0, 0)

    def __call__(self, call: Call, worker: int, first: int, last: int) -> None:
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
        hits, misses = 0, 0
        try:
            hits, misses = self._answer_range(arrays, out, places, time, base, first, last)
        finally:
            self.cache.end_reading(hits)
        if misses:
            for index in (first + np.flatnonzero(arrays.queries[first:last, PENDING])).tolist():
                with self.cache.providing(arrays.queries[index, KEY:]) as time:
                    self._answer_range(arrays, out, places, time, base, index, index + 1)


@kernel
def answer_range(arrays, out, places, time, base, first, last):
    """Answer the pending queries whose fields are in the cache.

    Args:
        out: (n, 11) float32, or the words of float32 or float16 (``obs.half``).
        places: (n,) int32, the row to write for each environment; (0,): their own rows.
        time: value to write into ``last_use``.
        base: environment of the first row of ``out`` and of ``places``.

    Returns:
        Number of queries answered, and number left pending.
    """
    queries, hints = arrays.queries, arrays.hints
    hits, misses = 0, 0
    for index in range(first, last):
        if queries[index, PENDING] == 0.0:
            continue
        slot = find_slot(arrays.keys, queries, index, hints[index])
        if slot < 0:
            misses += 1
            continue
        hits += 1
        hints[index], arrays.last_use[slot] = slot, time
        row = index - base if places.shape[0] == 0 else int(places[index - base])
        write_reachability(arrays.levels, arrays.fields, slot, queries, index, out[row])
        queries[index, PENDING] = 0.0
    return hits, misses
