"""Committed pages of address ranges, read from ``/proc/self/pagemap``.

The operating system commits a page when it is first written. What an owner reports is the size of its arrays; what it
costs is the part of them in committed pages.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path

import numpy as np

from nclone_env.memory_tree import MemoryNode

_PAGEMAP = Path("/proc/self/pagemap")
_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
_ENTRY = 8  # bytes of an entry of the page map
_PRESENT, _SWAPPED, _OWN = 63, 62, 56  # bits of an entry; own: mapped only here, as the common page of zeros is not
_FARTHEST = 256  # pages between two blocks that are still read together


def committed_bytes(blocks: Iterable[tuple[int, int]]) -> int:
    """Return the bytes of (address, bytes) ranges that lie in committed pages; of all if that is unknown here."""
    ranges = np.array([(address, address + size) for address, size in blocks if size], dtype=np.int64).reshape(-1, 2)
    if not len(ranges) or not _PAGEMAP.exists():
        return int((ranges[:, 1] - ranges[:, 0]).sum())
    ranges = ranges[np.argsort(ranges[:, 0])]
    with closing(_PAGEMAP.open("rb", buffering=0)) as pagemap:
        return sum(_committed(pagemap.fileno(), group) for group in _neighbours(ranges))


def committed_tree_bytes(tree: MemoryNode) -> int:
    """Return the committed bytes of a tree without mapped files; nodes that name no blocks count whole."""
    nodes = [node for _, node in tree.walk() if node.own_bytes and not node.mapped]
    unknown = sum(node.own_bytes for node in nodes if not node.blocks)
    return unknown + committed_bytes(block for node in nodes for block in node.blocks)


def _neighbours(ranges: np.ndarray) -> Iterator[np.ndarray]:
    """Yield sorted ranges, (n, 2) int64 [first, past the last address], in groups with small gaps."""
    ends = np.maximum.accumulate(ranges[:, 1])
    far = ranges[1:, 0] - ends[:-1] > _FARTHEST * _PAGE
    yield from np.split(ranges, np.flatnonzero(far) + 1)


def _committed(pagemap: int, ranges: np.ndarray) -> int:
    first, last = int(ranges[:, 0].min()) // _PAGE, (int(ranges[:, 1].max()) - 1) // _PAGE
    entries = np.frombuffer(os.pread(pagemap, (last - first + 1) * _ENTRY, first * _ENTRY), dtype=np.uint64)
    bits = ((entries >> np.uint64(_PRESENT)) & (entries >> np.uint64(_OWN)) | (entries >> np.uint64(_SWAPPED))) & 1
    committed = bits.astype(np.int64)
    before = np.concatenate(([0], np.cumsum(committed))) * _PAGE  # committed bytes before each page
    inner = ranges - first * _PAGE
    starts, ends = inner[:, 0], inner[:, 1]
    head, tail = starts // _PAGE, (ends - 1) // _PAGE
    whole = before[tail + 1] - before[head]
    cut = (starts - head * _PAGE) * committed[head] + ((tail + 1) * _PAGE - ends) * committed[tail]
    return int((whole - cut).sum())
