"""``reachability`` of a batch: answers the queries of a step from the cache of fields.

Like the action mask it is written after the step by a kernel of its own, which environments without it do not compile.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from nclone_env.env.reachability.cache import FieldCache
from nclone_env.jit import kernel, specialised
from nclone_env.level.level_set import LevelSet
from nclone_env.memory_tree import MemoryNode, array_group
from nclone_env.obs.half import round_vector
from nclone_env.obs.reachability import KEY, NO_QUERIES, PENDING, find_slot, make_queries, write_reachability
from nclone_env.obs.spec import REACHABILITY

_NAME = "reachability"


class Reachability:
    """The queries of a batch, and what answers them.

    Args:
        levels: what is played.
        cache: of fields of these levels.
        num_envs: number of environments.
        seats: number of places from which threads may write at the same time.
        dtype: of the observation, float32 or float16.
        with_final: also answer about the last moments of episodes that begin anew in the same step.
    """

    def __init__(
        self, levels: LevelSet, cache: FieldCache, num_envs: int, seats: int, dtype: np.dtype, with_final: bool
    ):
        self.cache = cache
        self._levels = levels
        self.queries = make_queries(num_envs, levels)
        self.final_queries = make_queries(num_envs, levels) if with_final else NO_QUERIES
        self._hints = np.zeros(num_envs, dtype=np.int32)
        self._is_half = dtype == np.float16
        self._scratch = np.zeros((seats if self._is_half else 0, len(REACHABILITY)), dtype=np.float32)
        nothing = np.zeros((0, len(REACHABILITY)), dtype=dtype)
        self._write = specialised(answer_range, *self._arguments(self.queries, nothing), 0, 0, 0, 0, 0)

    def answer(
        self,
        out: Mapping[str, np.ndarray],
        final: Mapping[str, np.ndarray],
        base: int,
        seat: int,
        first: int,
        last: int,
    ) -> None:
        """Answer the pending queries about environments ``first`` to ``last - 1``.

        Args:
            out: observations of a step.
            final: last observations of episodes; may be empty.
            base: environment whose row is the first of both.
            seat: of the thread that calls.
            first: first environment.
            last: end of the environments.
        """
        self._answer(self.queries, out[_NAME], base, seat, first, last)
        if final:
            self._answer(self.final_queries, final[_NAME], base, seat, first, last)

    def memory(self) -> MemoryNode:
        """Return the bytes of queries and fields."""
        own = {"queries": self.queries, "final queries": self.final_queries, "slots last used": self._hints}
        queries = array_group("queries", {**own, "scratch": self._scratch}, shared=False)
        return MemoryNode(_NAME, children=(queries, self.cache.memory()))

    def _answer(self, queries: np.ndarray, out: np.ndarray, base: int, seat: int, first: int, last: int) -> None:
        arguments = self._arguments(queries, out)
        time = self.cache.begin_reading()
        hits, misses = 0, 0
        try:
            hits, misses = self._write(*arguments, time, base, seat, first, last)
        finally:
            self.cache.end_reading(hits)
        if misses:
            for index in (first + np.flatnonzero(queries[first:last, PENDING])).tolist():
                with self.cache.providing(queries[index, KEY:]) as time:
                    self._write(*arguments, time, base, seat, index, index + 1)

    def _arguments(self, queries: np.ndarray, out: np.ndarray) -> tuple[Any, ...]:
        cache = self.cache
        vectors, half = (self._scratch, out.view(np.uint16)) if self._is_half else (out, _NO_HALF)
        return (self._levels.arrays, cache.fields, cache.keys, cache.last_use, queries, self._hints, vectors, half)


_NO_HALF = np.zeros((0, len(REACHABILITY)), dtype=np.uint16)


@kernel
def answer_range(levels, fields, keys, last_use, queries, hints, out, half, time, base, seat, first, last):
    """Answer the pending queries whose fields are there.

    Args:
        levels: ``LevelArrays``.
        fields: (3 S, 51, 89) float32.
        keys: (S, key) float64.
        last_use: (S,) int64, written.
        queries: (n, Q) float64.
        hints: (n,) int32, the slot each environment used last, written.
        out: (n, 11) float32; the rows of the scratch if they are rounded to float16 afterwards.
        half: (n, 11) uint16, bits of float16; no rows where float32 is asked for.
        time: what to write into ``last_use``.
        base: environment whose row is the first to write.
        seat: row of the scratch to use.
        first: first environment.
        last: end of the environments.

    Returns:
        How many were answered, and how many not.
    """
    hits, misses = 0, 0
    for index in range(first, last):
        if queries[index, PENDING] == 0.0:
            continue
        slot = find_slot(keys, queries, index, hints[index])
        if slot < 0:
            misses += 1
            continue
        hits += 1
        hints[index], last_use[slot] = slot, time
        rounded = half.shape[0] > 0
        place = seat if rounded else index - base
        write_reachability(levels, fields, slot, queries, index, place, out)
        if rounded:
            round_vector(out, place, half, index - base)
        queries[index, PENDING] = 0.0
    return hits, misses
