"""Compiled calls in short pieces: Python answers Ctrl-C only between two calls."""

from __future__ import annotations

from collections.abc import Iterator
from time import perf_counter

_LONGEST, _SHORTEST = 0.05, 0.01  # seconds of a piece: far below a second, far above the cost of a call
_FIRST, _GROWTH = 64, 4


class Pace:
    """Cuts ranges into pieces of about a hundredth of a second, by how long the last pieces took.

    Results must not depend on where a range is cut. One slow piece makes the next ones shorter, a fast one longer.
    """

    __slots__ = ("_size",)

    def __init__(self) -> None:
        self._size = _FIRST

    def pieces(self, first: int, last: int) -> Iterator[tuple[int, int]]:
        """Yield the ends of the pieces of a range; each is to be processed before the next one is asked for."""
        while first < last:
            end = min(last, first + self._size)
            began = perf_counter()
            yield first, end
            self.adjust(end - first, perf_counter() - began)
            first = end

    def count(self, size: int) -> int:
        """Return the number of pieces of a range of this size."""
        return -(-size // self._size)

    def adjust(self, size: int, seconds: float) -> None:
        """Take notice of how long a piece took."""
        if seconds > _LONGEST:
            self._size = max(1, int(size * _SHORTEST / seconds))
        elif seconds < _SHORTEST and size == self._size:
            self._size *= _GROWTH
