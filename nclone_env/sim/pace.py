"""Compiled calls in short pieces: Python answers Ctrl-C only between two calls."""

from collections.abc import Iterator
from time import perf_counter

_LONGEST, _SHORTEST = 0.05, 0.01  # seconds of a piece: far below a second, far above the cost of a call
_FIRST, _GROWTH = 1, 4  # a step of one environment may take half a second


class Pace:
    """Cuts ranges into pieces of about a hundredth of a second, by how long the last pieces took.

    Results must not depend on where a range is cut. One slow piece makes the next ones shorter, a fast one longer.
    ``size`` items are the most of the next piece.
    """

    __slots__ = ("size",)

    def __init__(self) -> None:
        self.size = _FIRST

    def pieces(self, first: int, last: int) -> Iterator[tuple[int, int]]:
        """Yield the ends of the pieces of a range; each is to be processed before the next one is asked for."""
        while first < last:
            end, began = min(last, first + self.size), perf_counter()
            yield first, end
            self.adjust(end - first, perf_counter() - began)
            first = end

    def adjust(self, size: int, seconds: float) -> None:
        """Take notice of how long a piece took; the pieces of a range that is cut evenly may be half as long."""
        if seconds > _LONGEST:
            self.size = max(1, int(size * _SHORTEST / seconds))
        elif seconds < _SHORTEST and 2 * size >= self.size:
            self.size *= _GROWTH
