"""Memory accounting: every owner of buffers reports them as a tree of nodes.

Owners implement ``memory() -> MemoryNode``. A leaf holds the size of a buffer, and whether it is shared by all
environments or grows with their number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from mmap import mmap
from typing import Protocol

import numpy as np

from nclone_env._table import format_bytes, table


@dataclass(frozen=True)
class MemoryNode:
    """A named amount of memory, or a group of nodes.

    Attributes:
        name: name of the owner.
        own_bytes: bytes owned directly, without those of ``children``.
        shared: True if the bytes do not grow with the number of environments.
        children: parts of this node.
        mapped: True if the bytes are pages of a memory-mapped file, shared between processes.
        blocks: (address, bytes) of the arrays that make up ``own_bytes``, as far as they are known. They are valid only
            while the owner lives; the profiler reads from them which pages are committed.
    """

    name: str
    own_bytes: int = 0
    shared: bool = False
    children: tuple[MemoryNode, ...] = ()
    mapped: bool = False
    blocks: tuple[tuple[int, int], ...] = field(default=(), repr=False, compare=False)

    def __str__(self) -> str:
        """Return the tree as a table: total bytes by name, and which are shared or in a mapped file."""
        kinds = {(True, False): "shared", (True, True): "shared, mapped file"}
        rows = (
            ("  " * depth + node.name, format_bytes(node.total_bytes), kinds.get((node.shared, node.mapped), ""))
            for depth, node in self.walk()
        )
        return "\n".join(table(("memory", "bytes", ""), rows))

    @property
    def total_bytes(self) -> int:
        """Bytes of this node and its descendants."""
        return self.own_bytes + sum(child.total_bytes for child in self.children)

    def bytes_where(self, shared: bool | None = None, mapped: bool | None = None) -> int:
        """Return the bytes of the nodes of the tree that are ``shared`` or not, and ``mapped`` or not; None: either."""
        nodes = (node for _, node in self.walk() if shared in (None, node.shared) and mapped in (None, node.mapped))
        return sum(node.own_bytes for node in nodes)

    def walk(self, depth: int = 0) -> Iterator[tuple[int, MemoryNode]]:
        """Yield (depth, node) for every node of the tree, parents first."""
        yield depth, self
        for child in self.children:
            yield from child.walk(depth + 1)


class MemoryOwner(Protocol):
    """An object that reports the memory it owns."""

    def memory(self) -> MemoryNode:
        """Return the tree of owned bytes."""


def array_group(name: str, arrays: Mapping[str, np.ndarray], *, shared: bool) -> MemoryNode:
    """Return a node with one leaf per non-empty array, all of them shared by all environments or none."""
    leaves = tuple(array_node(key, value, shared=shared) for key, value in arrays.items() if value.nbytes)
    return MemoryNode(name, children=leaves)


def array_node(name: str, array: np.ndarray, *, shared: bool) -> MemoryNode:
    """Return the node of one array."""
    return MemoryNode(name, int(array.nbytes), shared, mapped=is_mapped(array), blocks=_blocks((array,)))


def arrays_node(name: str, arrays: Sequence[np.ndarray], *, shared: bool) -> MemoryNode:
    """Return one node for several arrays, none of them in a mapped file."""
    return MemoryNode(name, sum(array.nbytes for array in arrays), shared, blocks=_blocks(arrays))


def _blocks(arrays: Iterable[np.ndarray]) -> tuple[tuple[int, int], ...]:
    whole = (array for array in arrays if array.nbytes and array.flags.c_contiguous)
    return tuple((int(array.__array_interface__["data"][0]), array.nbytes) for array in whole)


def merged(trees: Sequence[MemoryNode]) -> MemoryNode:
    """Return one tree for owners of the same kind, such as several environments with the same levels.

    Bytes that grow with the number of environments are added up; shared bytes are those of the first tree with them.
    """
    first = trees[0]
    names = dict.fromkeys(child.name for tree in trees for child in tree.children)
    children = (merged([child for tree in trees for child in tree.children if child.name == name]) for name in names)
    if first.shared:
        return replace(first, children=tuple(children))
    return replace(
        first,
        own_bytes=sum(tree.own_bytes for tree in trees),
        blocks=tuple(block for tree in trees for block in tree.blocks),
        children=tuple(children),
    )


def is_mapped(array: np.ndarray) -> bool:
    """Return whether an array is backed by a memory-mapped file."""
    base: object = array
    while isinstance(base, np.ndarray):
        base = base.base
    return isinstance(base.obj if isinstance(base, memoryview) else base, mmap)
