"""Frame stacks: the last k observations of every environment, and the stacked arrays made of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nclone_env.env.arrays.buffers import Buffers, make_buffers
from nclone_env.env.arrays.final import FinalPool, FinalRows
from nclone_env.memory import MemoryNode, arrays_node
from nclone_env.obs import ObservationSpec


class FrameStack:
    """The last ``depth`` observations of a batch, in a ring of arrays that the kernels write, one per step.

    The stack of a new episode, or of a restored snapshot, repeats its first observation.

    Attributes:
        final: the last observations of episodes, unstacked, of the current step in same-step mode.

    Args:
        with_final: also keep the last observations of episodes in same-step mode.
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
        """Write the stacks of the episodes that ended, whose newest observations are ``final``, into ``out``.

        Call it before :meth:`fill`.

        Args:
            ended: (n,) bool, the environments whose episode ended.
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
