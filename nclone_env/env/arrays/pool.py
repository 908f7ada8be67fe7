"""Who may write an array again, and when: memory that is recycled once nobody holds it, and rings of it."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

import numpy as np

from nclone_env.env.arrays.buffers import ArraySpec, Buffers
from nclone_env.memory_tree import MemoryNode

T = TypeVar("T")


class RecyclingPool:
    """Hands out arrays that are safe to keep, and reuses those that nobody keeps.

    What is handed out are views; NumPy makes every further view refer to the owner of the memory too, so the
    owner's reference count tells whether anyone still holds a part of it. Nothing is made before it is asked for.
    """

    def __init__(self, specs: Sequence[ArraySpec], num_envs: int):
        self._arrays: dict[str, list[np.ndarray]] = {spec.name: [] for spec in specs}
        self._shapes = {spec.name: ((num_envs, *spec.shape), spec.dtype) for spec in specs}

    def take(self) -> Buffers:
        """Return by name a view of an array that nobody else holds, made if there is none; contents are anything."""
        return {name: self._free(name)[:] for name in self._arrays}

    def _free(self, name: str) -> np.ndarray:
        for array in self._arrays[name]:
            if sys.getrefcount(array) == _UNHELD:
                return array
        shape, dtype = self._shapes[name]
        array = np.zeros(shape, dtype)
        self._arrays[name].append(array)
        return array

    def memory(self, name: str) -> MemoryNode:
        """Return the bytes of all arrays."""
        return MemoryNode(name, children=tuple(self._nodes()))

    def _nodes(self) -> list[MemoryNode]:
        return [
            MemoryNode(f"{name} x {len(arrays)}", sum(array.nbytes for array in arrays))
            for name, arrays in self._arrays.items()
            if arrays
        ]


def _count_unheld() -> int:
    """Return the reference count that the loop of ``RecyclingPool._free`` sees of an array that nobody holds."""
    arrays = [np.zeros(1)]
    for array in arrays:
        return sys.getrefcount(array)
    raise AssertionError


_UNHELD = _count_unheld()


class Ring(Generic[T]):
    """Hands out the same few things in turn, each made when its turn first comes."""

    def __init__(self, make: Callable[[], T], count: int):
        self._make = make
        self._turns = itertools.cycle(range(count))
        self.made: list[T] = []

    def take(self) -> T:
        """Return the next one; it is handed out again ``count`` calls later."""
        turn = next(self._turns)
        if turn == len(self.made):
            self.made.append(self._make())
        return self.made[turn]
