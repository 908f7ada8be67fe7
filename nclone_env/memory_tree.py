"""The one small way in which every owner of memory reports it.

An object that owns buffers has ``memory() -> MemoryNode``. Nodes form a tree; a leaf says how many bytes there
are and whether all environments share them or they grow with the number of environments.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np


@dataclass(frozen=True)
class MemoryNode:
    """A named amount of memory, or a group of such amounts.

    Attributes:
        name: what owns the bytes.
        own_bytes: bytes owned directly, without those of ``children``.
        shared: True if the bytes do not grow with the number of environments.
        children: parts, reported one by one.
    """

    name: str
    own_bytes: int = 0
    shared: bool = False
    children: tuple[MemoryNode, ...] = ()

    @property
    def total_bytes(self) -> int:
        """Bytes of this node and everything below it."""
        return self.own_bytes + sum(child.total_bytes for child in self.children)

    def bytes_where(self, shared: bool) -> int:
        """Bytes of all nodes of the tree that are shared, or of all that are per environment."""
        own = self.own_bytes if self.shared == shared else 0
        return own + sum(child.bytes_where(shared) for child in self.children)

    def walk(self, depth: int = 0) -> Iterator[tuple[int, MemoryNode]]:
        """Yield (depth, node) of the whole tree, parents first."""
        yield depth, self
        for child in self.children:
            yield from child.walk(depth + 1)


class MemoryOwner(Protocol):
    """Anything that can say what memory it owns."""

    def memory(self) -> MemoryNode:
        """Return the tree of owned bytes."""
        ...


def array_group(name: str, arrays: Mapping[str, np.ndarray], *, shared: bool) -> MemoryNode:
    """Return a node with one leaf for each non-empty array.

    Args:
        name: name of the group.
        arrays: leaf name to the array that owns the bytes.
        shared: whether all environments share these arrays.
    """
    leaves = tuple(MemoryNode(key, int(value.nbytes), shared) for key, value in arrays.items() if value.nbytes)
    return MemoryNode(name, children=leaves)
