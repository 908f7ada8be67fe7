"""Stacks of the last observations: the last moments of every environment, and what is handed out made of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nclone_env.env.arrays.buffers import Buffers, make_buffers
from nclone_env.memory_tree import MemoryNode
from nclone_env.obs.spec import ObservationSpec


class FrameStack:
    """The last ``depth`` moments of a batch, in a ring that the kernels write, one moment a step.

    An episode, or the place a snapshot leads to, begins with its first moment repeated.

    Args:
        specs: the arrays of one moment.
        num_envs: number of environments.
        depth: moments of a stack.
        with_final: also keep the last moments of episodes that end and begin anew in the same step.
    """

    def __init__(self, specs: Sequence[ObservationSpec], num_envs: int, depth: int, with_final: bool):
        self._specs = tuple(specs)
        self._moments = [make_buffers(specs, num_envs) for _ in range(depth)]
        self.final: Buffers = make_buffers(specs, num_envs) if with_final else {}
        self._newest = 0
        self._restart = np.zeros(num_envs, dtype=np.bool_)

    @property
    def newest(self) -> Buffers:
        """The arrays of the latest moment."""
        return self._moments[self._newest]

    def advance(self) -> Buffers:
        """Return the arrays of the next moment, to be written; those of the oldest are used again."""
        self._newest = (self._newest + 1) % len(self._moments)
        return self.newest

    def restart(self, rows: Any) -> None:
        """Let the stacks of some environments begin with the moment that is written next."""
        self._restart[rows] = True

    def fill(self, begun: np.ndarray) -> None:
        """Repeat the newest moment in the stacks of environments that begin, (n,) bool, or were restarted."""
        rows = np.flatnonzero(begun | self._restart)
        for moment in self._moments if len(rows) else ():
            if moment is not self.newest:
                for name, array in moment.items():
                    array[rows] = self.newest[name][rows]
        self._restart[:] = False

    def read(self, out: Buffers, rows: Any = slice(None), out_rows: Any = slice(None)) -> None:
        """Write the stacks of some environments into rows of ``out``, oldest moment first."""
        self._read(self.newest, out, rows, out_rows)

    def read_final(self, out: Buffers, rows: np.ndarray) -> None:
        """As :meth:`read`, with ``final`` as the newest moment; call it before :meth:`fill`."""
        self._read(self.final, out, rows, rows)

    def copy_rows(self, source: FrameStack, source_rows: Any, rows: Any = slice(None)) -> None:
        """Make stacks copies of those of a batch, which may be this one."""
        for place in range(len(self._moments)):
            moment = self._moments[(self._newest + place) % len(self._moments)]
            other = source._moments[(source._newest + place) % len(self._moments)]
            for name, array in moment.items():
                array[rows] = other[name][source_rows]
        self._restart[rows] = source._restart[source_rows]

    def memory(self) -> MemoryNode:
        """Return the bytes of all moments."""
        batches = [*self._moments, self.final]
        total = sum(array.nbytes for batch in batches for array in batch.values())
        return MemoryNode(f"frame stack ({len(self._moments)} moments)", total)

    def _read(self, newest: Buffers, out: Buffers, rows: Any, out_rows: Any) -> None:
        depth = len(self._moments)
        for spec in self._specs:
            if not spec.stacks:
                out[spec.name][out_rows] = newest[spec.name][rows]
                continue
            out[spec.name][out_rows, depth - 1] = newest[spec.name][rows]
            for place in range(depth - 1):
                moment = self._moments[(self._newest + 1 + place) % depth]
                out[spec.name][out_rows, place] = moment[spec.name][rows]
