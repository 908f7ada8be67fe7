"""Reuse of arrays: a pool that recycles unreferenced arrays, and a ring of fixed batches."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

import numpy as np

from nclone_env.env.arrays.buffers import ArraySpec, Buffers
from nclone_env.memory_tree import MemoryNode, arrays_node

T = TypeVar("T")


class RecyclingPool:
    """Hands out arrays that are safe to keep, and reuses them once they are unreferenced.

    It hands out views. NumPy makes every further view refer to the array that owns the memory too, so the reference
    count of the owner shows whether any view is left. Arrays are allocated on first use.
    """

    __slots__ = ("_made", "_num_envs", "_specs")

    def __init__(self, specs: Sequence[ArraySpec], num_envs: int):
        self._specs = tuple(specs)
        self._made: tuple[list[np.ndarray], ...] = tuple([] for _ in specs)
        self._num_envs = num_envs

    def take(self) -> Buffers:
        """Return by name a view of an unreferenced array, allocated if there is none; its contents are undefined."""
        return {spec.name: self._free(spec, made)[:] for spec, made in zip(self._specs, self._made, strict=True)}

    def _free(self, spec: ArraySpec, made: list[np.ndarray]) -> np.ndarray:
        for array in made:
            if sys.getrefcount(array) == _UNREFERENCED:
                return array
        made.append(np.zeros((self._num_envs, *spec.shape), spec.dtype))
        return made[-1]

    def memory(self, name: str) -> MemoryNode:
        """Return the bytes of all arrays."""
        return MemoryNode(name, children=tuple(self._nodes()))

    def _nodes(self) -> list[MemoryNode]:
        return [
            arrays_node(f"{spec.name} x {len(arrays)}", arrays, shared=False)
            for spec, arrays in zip(self._specs, self._made, strict=True)
            if arrays
        ]


def _unreferenced_count() -> int:
    """Return the reference count of an unreferenced array in the loop of ``RecyclingPool._free``."""
    arrays = [np.zeros(1)]
    for array in arrays:
        return sys.getrefcount(array)
    raise AssertionError


_UNREFERENCED = _unreferenced_count()


class Ring(Generic[T]):
    """Hands out ``count`` items in turn, each made when first needed."""

    def __init__(self, make: Callable[[], T], count: int):
        self._make = make
        self._turns = itertools.cycle(range(count))
        self.made: list[T] = []

    def take(self) -> T:
        """Return the next item; it is handed out again ``count`` calls later."""
        turn = next(self._turns)
        if turn == len(self.made):
            self.made.append(self._make())
        return self.made[turn]
