"""Memory accounting: every owner of buffers reports them as a tree of nodes.

Owners implement ``memory() -> MemoryNode``. A leaf holds the size of a buffer, and whether it is shared by all
environments or grows with their number.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from mmap import mmap
from typing import Protocol

import numpy as np


@dataclass(frozen=True)
class MemoryNode:
    """A named amount of memory, or a group of nodes.

    Attributes:
        name: name of the owner.
        own_bytes: bytes owned directly, without those of ``children``.
        shared: True if the bytes do not grow with the number of environments.
        children: parts of this node.
        mapped: True if the bytes are pages of a memory-mapped file, shared between processes.
    """

    name: str
    own_bytes: int = 0
    shared: bool = False
    children: tuple[MemoryNode, ...] = ()
    mapped: bool = False

    @property
    def total_bytes(self) -> int:
        """Bytes of this node and its descendants."""
        return self.own_bytes + sum(child.total_bytes for child in self.children)

    def bytes_where(self, shared: bool) -> int:
        """Return the bytes of all shared nodes of the tree, or of all per-environment nodes."""
        own = self.own_bytes if self.shared == shared else 0
        return own + sum(child.bytes_where(shared) for child in self.children)

    def walk(self, depth: int = 0) -> Iterator[tuple[int, MemoryNode]]:
        """Yield (depth, node) for every node of the tree, parents first."""
        yield depth, self
        for child in self.children:
            yield from child.walk(depth + 1)


class MemoryOwner(Protocol):
    """An object that reports the memory it owns."""

    def memory(self) -> MemoryNode:
        """Return the tree of owned bytes."""
        ...


def array_group(name: str, arrays: Mapping[str, np.ndarray], *, shared: bool) -> MemoryNode:
    """Return a node with one leaf per non-empty array.

    Args:
        name: name of the group.
        arrays: name of the leaf to array.
        shared: whether all environments share these arrays.
    """
    leaves = tuple(array_node(key, value, shared=shared) for key, value in arrays.items() if value.nbytes)
    return MemoryNode(name, children=leaves)


def array_node(name: str, array: np.ndarray, *, shared: bool) -> MemoryNode:
    """Return the node of one array."""
    return MemoryNode(name, int(array.nbytes), shared, mapped=is_mapped(array))


def is_mapped(array: np.ndarray) -> bool:
    """Return whether an array is backed by a memory-mapped file."""
    base: object = array
    while isinstance(base, np.ndarray):
        base = base.base
    return isinstance(base.obj if isinstance(base, memoryview) else base, mmap)
