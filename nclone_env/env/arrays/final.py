"""Observations beyond the current ones: the last ones of episodes that end in same-step mode, and frame stacks.

Last observations are one row per episode that ended. Frame stacks are the last k observations of every environment,
and the stacked arrays made of them.
"""

from __future__ import annotations

import math
import mmap
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from nclone_env.env.arrays.buffers import ArraySpec, Buffers, make_buffers
from nclone_env.jit import copy_bytes, kernel, specialised
from nclone_env.memory import MemoryNode, arrays_node, merged
from nclone_env.obs import ObservationSpec, kernel_array

_SHARE_KEPT, _ROWS_KEPT = 1.5, 8  # a multiple of the usual number, and more: covers the scatter of independent ends
_STEPS_AVERAGED = 16  # for the usual number
_CAN_RELEASE = hasattr(mmap, "MADV_DONTNEED")


class FinalRows:
    """The k last observations of the episodes that end in one step of n environments.

    There is address space for all n; the system provides memory for the rows that have been written. In a step each
    episode that ends claims the next row (``jit.next_number`` of ``used``) and notes it in ``places``; afterwards
    :meth:`sort` brings the rows into the order of the environments, so they do not depend on the threads.

    Attributes:
        arrays: by name (n + 1, ...); the row after the last claimed one is scratch of :meth:`sort`.
        kernel_arrays: the arrays as kernels take them.
        used: (1,) int64, the number k of claimed rows.
        places: (n,) int32, the row of each environment whose episode ended; undefined for others.
    """

    def __init__(self, specs: Sequence[ArraySpec], num_envs: int, work: tuple[np.ndarray, np.ndarray, np.ndarray]):
        self.used, self.places, self._sources = work
        sizes = [math.prod(spec.shape) * spec.dtype.itemsize for spec in specs]
        self._memory = [reserve((num_envs + 1) * size) for size in sizes]
        self._rows = [
            np.ndarray((num_envs + 1, size), np.uint8, memory) for memory, size in zip(self._memory, sizes, strict=True)
        ]
        self.arrays: Buffers = {
            spec.name: np.ndarray((num_envs + 1, *spec.shape), spec.dtype, rows)
            for spec, rows in zip(specs, self._rows, strict=True)
        }
        self.kernel_arrays: Buffers = {name: kernel_array(name, array) for name, array in self.arrays.items()}
        self._written = 0
        self._unreferenced = self._references()

    @property
    def length(self) -> int:
        """The number k of episodes."""
        return self.used.item()

    @property
    def is_free(self) -> bool:
        """Whether no one else refers to any of the rows: NumPy makes every view refer to the owner of the memory."""
        return self._references() == self._unreferenced

    def view(self, name: str) -> np.ndarray:
        """Return an array (k, ...)."""
        return self.arrays[name][: self.length]

    def sort(self, ended: np.ndarray) -> None:
        """Bring the rows into the order of the environments whose episode ``ended``, (n,) bool."""
        count = self.length
        if count:
            self._written = max(self._written, count + 1)
        if count > 1:
            for rows in self._rows:
                _sorter()(ended, self.places, self._sources, rows)

    def fill(self, count: int) -> None:
        """Declare that the first ``count`` rows are written, in order."""
        self.used[0] = count
        self._written = max(self._written, count)

    def release(self, kept: int) -> None:
        """Give all pages but those of the first ``kept`` rows back to the system."""
        if self._written <= kept or not _CAN_RELEASE:
            return
        for memory, rows in zip(self._memory, self._rows, strict=True):
            first = -(-kept * rows.shape[1] // mmap.PAGESIZE) * mmap.PAGESIZE
            if first < rows.nbytes:
                memory.madvise(mmap.MADV_DONTNEED, first, rows.nbytes - first)
        self._written = kept

    def memory(self) -> MemoryNode:
        """Return the bytes of the written rows; the blocks are those of all rows."""
        written = self._written * sum(rows.shape[1] for rows in self._rows)
        return replace(arrays_node("final observations", self._rows, shared=False), own_bytes=written)

    def _references(self) -> int:
        return sum(map(sys.getrefcount, self._rows))


class FinalPool:
    """Hands out final rows that are safe to keep, and reuses them once they are unreferenced.

    The memory of an unusual number of rows, as when a time limit ends all episodes at once, goes back to the system in
    the first call after which they are unreferenced.
    """

    def __init__(self, specs: Sequence[ArraySpec], num_envs: int):
        self._specs, self._num_envs = tuple(specs), num_envs
        self._work = np.zeros(1, np.int64), np.zeros(num_envs, np.int32), np.zeros(num_envs, np.int32)
        self._made: list[FinalRows] = []
        self._usual = 0.0
        _sorter()

    def take(self) -> FinalRows:
        """Return unreferenced rows, none of them claimed; their contents are undefined."""
        used = self._work[0]
        self._usual += (used.item() - self._usual) / _STEPS_AVERAGED
        used[0] = 0
        free = [final for final in self._made if final.is_free]
        for final in free:
            final.release(_ROWS_KEPT + int(_SHARE_KEPT * self._usual))
        if free:
            return free[0]
        self._made.append(FinalRows(self._specs, self._num_envs, self._work))
        return self._made[-1]

    def memory(self) -> MemoryNode:
        """Return the bytes of the written rows, and of the arrays that describe them."""
        rows = (merged([final.memory() for final in self._made]),) if self._made else ()
        return MemoryNode("final rows", children=(arrays_node("places", self._work, shared=False), *rows))


def reserve(size: int) -> mmap.mmap:
    """Return ``size`` zeroed bytes of which only written pages take memory.

    NumPy's zeroed arrays do not promise that: the allocator may take them from its heap and write them in full.
    """
    private = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}
    return mmap.mmap(-1, max(size, 1), **private)


@lru_cache(maxsize=1)
def _sorter() -> Callable[..., None]:
    numbers = np.zeros(0, np.int32)
    return specialised(sort_rows, np.zeros(0, np.bool_), numbers, numbers, np.zeros((0, 0), np.uint8))


@kernel
def sort_rows(ended, places, sources, rows):
    """Bring rows, (n + 1, b) uint8, written in any order, into that of the environments; ``sources`` is scratch.

    ``ended``, (n,) bool, tells which environments have a row, and ``places``, (n,) int32, which. The row after the last
    used one is overwritten.
    """
    count, size = 0, rows.shape[1]
    for index in range(ended.shape[0]):
        if ended[index]:
            sources[count] = places[index]
            count += 1
    for first in range(count):
        if sources[first] == first:
            continue
        copy_bytes(rows, count * size, rows, first * size, size)
        row = first
        while sources[row] != first:
            source = int(sources[row])
            copy_bytes(rows, row * size, rows, source * size, size)
            sources[row] = row
            row = source
        copy_bytes(rows, row * size, rows, count * size, size)
        sources[row] = row


class FrameStack:
    """The last ``depth`` observations of a batch, in a ring of arrays that the kernels write, one per step.

    The stack of a new episode, or of a restored snapshot, repeats its first observation.

    Attributes:
        final: the last observations of episodes, unstacked, of the current step; None unless ``with_final``.
    """

    def __init__(self, specs: Sequence[ObservationSpec], num_envs: int, depth: int, with_final: bool):
        self._specs = tuple(specs)
        self._ring = [make_buffers(specs, num_envs) for _ in range(depth)]
        self._finals = FinalPool(specs, num_envs) if with_final else None
        self.final: FinalRows | None = None
        self._newest = 0
        self._restart = np.zeros(num_envs, dtype=np.bool_)

    @property
    def newest(self) -> Buffers:
        """The arrays of the newest observation."""
        return self._ring[self._newest]

    def advance(self) -> Buffers:
        """Return the arrays for the next observation, which replace the oldest ones."""
        self._newest = (self._newest + 1) % len(self._ring)
        self.final = self._finals.take() if self._finals else None
        return self.newest

    def restart(self, rows: Any) -> None:
        """Restart the stacks of some environments with the observation that is written next."""
        self._restart[rows] = True

    def fill(self, begun: np.ndarray) -> None:
        """Repeat the newest observation in the stacks of restarted environments and where ``begun``, (n,) bool."""
        rows = np.flatnonzero(begun | self._restart)
        for buffers in self._ring if len(rows) else ():
            if buffers is not self.newest:
                for name, array in buffers.items():
                    array[rows] = self.newest[name][rows]
        self._restart[:] = False

    def read(self, out: Buffers, rows: Any = slice(None), out_rows: Any = slice(None)) -> None:
        """Write the stacks of some environments into rows of ``out``, oldest observation first."""
        newest = {name: array[rows] for name, array in self.newest.items()}
        self._read(newest, out, rows, out_rows)

    def read_final(self, out: FinalRows, ended: np.ndarray) -> None:
        """Write the stacks of episodes that ``ended``, (n,) bool, into ``out``; the newest observations are ``final``.

        Call it before :meth:`fill`.
        """
        if self.final is None or not self.final.length:
            return
        self.final.sort(ended)
        out.fill(self.final.length)
        newest = {name: self.final.view(name) for name in self.final.arrays}
        self._read(newest, out.arrays, ended, slice(self.final.length))

    def copy_rows(self, source: FrameStack, source_rows: Any, rows: Any = slice(None)) -> None:
        """Copy stacks from another batch, or within this one."""
        for offset in range(len(self._ring)):
            buffers = self._ring[(self._newest + offset) % len(self._ring)]
            other = source._ring[(source._newest + offset) % len(self._ring)]
            for name, array in buffers.items():
                array[rows] = other[name][source_rows]
        self._restart[rows] = source._restart[source_rows]

    def memory(self) -> MemoryNode:
        """Return the bytes of all observations."""
        batches = [array for batch in self._ring for array in batch.values()]
        children = (self._finals.memory(),) if self._finals else ()
        return MemoryNode(
            f"frame stack of {len(self._ring)}",
            children=(arrays_node("observations", batches, shared=False), *children),
        )

    def _read(self, newest: Buffers, out: Buffers, rows: Any, out_rows: Any) -> None:
        """Write stacks of ``newest``, already those of ``rows``, and the earlier observations of ``rows``."""
        depth = len(self._ring)
        for spec in self._specs:
            if not spec.stacks:
                out[spec.name][out_rows] = newest[spec.name]
                continue
            stacks = out[spec.name].reshape(-1, depth, *spec.shape)  # a view, with the channel that ``out`` may lack
            stacks[out_rows, depth - 1] = newest[spec.name]
            for place in range(depth - 1):
                buffers = self._ring[(self._newest + 1 + place) % depth]
                stacks[out_rows, place] = buffers[spec.name][rows]
