"""Frame stacks: the last k observations of every environment, and the stacked arrays made of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nclone_env.env.arrays.buffers import Buffers, make_buffers
from nclone_env.memory_tree import MemoryNode
from nclone_env.obs.spec import ObservationSpec


class FrameStack:
    """The last ``depth`` observations of a batch, in a ring of arrays that the kernels write, one per step.

    The stack of a new episode, or of a restored snapshot, repeats its first observation.

    Args:
        specs: the arrays of one observation.
        num_envs: number of environments.
        depth: observations in a stack.
        with_final: also keep the last observations of episodes in same-step mode.
    """

    def __init__(self, specs: Sequence[ObservationSpec], num_envs: int, depth: int, with_final: bool):
        self._specs = tuple(specs)
        self._ring = [make_buffers(specs, num_envs) for _ in range(depth)]
        self.final: Buffers = make_buffers(specs, num_envs) if with_final else {}
        self._newest = 0
        self._restart = np.zeros(num_envs, dtype=np.bool_)

    @property
    def newest(self) -> Buffers:
        """The arrays of the newest observation."""
        return self._ring[self._newest]

    def advance(self) -> Buffers:
        """Return the arrays for the next observation, which replace the oldest ones."""
        self._newest = (self._newest + 1) % len(self._ring)
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
        self._read(self.newest, out, rows, out_rows)

    def read_final(self, out: Buffers, rows: np.ndarray) -> None:
        """As :meth:`read`, with ``final`` as the newest observation; call it before :meth:`fill`."""
        self._read(self.final, out, rows, rows)

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
        batches = [*self._ring, self.final]
        total = sum(array.nbytes for batch in batches for array in batch.values())
        return MemoryNode(f"frame stack of {len(self._ring)}", total)

    def _read(self, newest: Buffers, out: Buffers, rows: Any, out_rows: Any) -> None:
        depth = len(self._ring)
        for spec in self._specs:
            if not spec.stacks:
                out[spec.name][out_rows] = newest[spec.name][rows]
                continue
            out[spec.name][out_rows, depth - 1] = newest[spec.name][rows]
            for place in range(depth - 1):
                buffers = self._ring[(self._newest + 1 + place) % depth]
                out[spec.name][out_rows, place] = buffers[spec.name][rows]
