"""Garbage collection beside code that is judged: it takes little of the time, and leaves no garbage to be counted."""

import gc
import sys
import time

_clear_caches = getattr(sys, "_clear_internal_caches", None) or sys._clear_type_cache  # of Python 3.13 and before it
_CHEAP = 0.002  # seconds that a full collection may take in any case
_COST = 20
"""Longer ones take at most a twentieth of the time."""


class Garbage:
    """Collects garbage among the objects made since :meth:`leave_out`, however many there were before."""

    def __init__(self) -> None:
        self._left_out = 0  # objects
        self._cost = self._last = 0.0  # seconds of the last full collection, and when it ended
        self.all_full = True
        """Whether every collection was a full one. Only these empty the lists in which Python keeps freed tuples and
        numbers for new ones, and the cache in which it keeps names of attributes. Both count as live, of the line that
        allocated them first: up to a megabyte, reached after thousands of steps."""

    def collect(self) -> None:
        """Collect garbage; that of old objects only if this was fast the last time. Not if the code switched it off."""
        is_due = self._cost < max(_CHEAP, (time.perf_counter() - self._last) / _COST)
        self.all_full &= is_due and gc.isenabled()
        if not gc.isenabled():
            return
        start = time.thread_time()
        gc.collect(2 if is_due else 1)
        if is_due:
            _clear_caches()
            self._cost, self._last = time.thread_time() - start, time.perf_counter()

    def leave_out(self) -> None:
        """Leave what exists out of further collections, unless the code does so itself."""
        if not gc.get_freeze_count():
            gc.freeze()
            self._left_out = gc.get_freeze_count()
        self._cost = 0.0

    def include(self) -> None:
        """Undo :meth:`leave_out`, unless the code has left out more since."""
        if 0 < gc.get_freeze_count() <= self._left_out:
            gc.unfreeze()
        self._left_out = 0
