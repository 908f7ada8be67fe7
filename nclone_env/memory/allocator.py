"""Bytes that the C library's allocator has handed out: it sees every leak of native code, down to single bytes.

Resident memory hides such leaks, because freed heap is reused without becoming smaller.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

_FIELDS = (
    *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
    *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
)


class _Mallinfo2(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_size_t) for name in _FIELDS)  # of <malloc.h>


class HeapBytes(NamedTuple):
    """Memory of the C library's allocator, over all of its arenas."""

    in_use: int
    """Bytes of blocks that were not freed, with their headers; small ones of Python's own allocator are not seen."""
    free: int
    """Bytes of freed blocks that the allocator keeps."""


def heap_bytes() -> HeapBytes | None:
    """Return what ``mallinfo2`` reports; None without glibc 2.33 or later."""
    query = _mallinfo2()
    if query is None:
        return None
    info = query()
    return HeapBytes(info.uordblks + info.hblkhd, info.fordblks)


def trim_heap() -> bool:
    """Give the pages of freed blocks back to the system; return whether the allocator can."""
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (AttributeError, OSError, TypeError):  # another C library, or Windows
        return False
    return True


@cache
def _mallinfo2() -> Callable[[], _Mallinfo2] | None:
    try:
        query = ctypes.CDLL(None).mallinfo2
    except (AttributeError, OSError, TypeError):  # another C library, or Windows
        return None
    query.restype = _Mallinfo2
    return query
