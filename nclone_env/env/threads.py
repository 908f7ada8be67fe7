"""Splits a batch of environments over threads that wait for work: the kernels release the interpreter lock."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread
from types import TracebackType
from typing import Any

Task = Callable[[int, int, int], None]
"""Is called as ``task(seat, first, last)``; no two calls with one seat run at the same time."""

OWN_SEAT = 0
"""Seat of the thread that calls."""
_SMALLEST_SHARE = 64  # environments per thread below which handing work over costs more than it saves


class Workers:
    """Threads that run kernels over ranges of environments, one range a thread; results do not depend on the split.

    The threads are started with the first work for them, and again in a child process, which inherits none.

    Args:
        num_envs: environments of the batch.
        num_threads: how many threads share the work; by default one per core if there is enough of it.
    """

    def __init__(self, num_envs: int, num_threads: int | None = None):
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        threads = num_threads or min(cores, max(1, num_envs // _SMALLEST_SHARE))
        self.count = max(1, min(threads, num_envs))
        self._inboxes: list[SimpleQueue[Any]] = []
        self._owner = 0

    @property
    def seats(self) -> int:
        """Number of seats, each with scratch memory of its own: one for the calling thread, one for each worker."""
        return self.count + 1

    def run(self, task: Task, first: int, last: int, done: SimpleQueue[Any]) -> None:
        """Call ``task`` for parts of a range, one of them in this thread, and wait for all.

        Args:
            task: what to do.
            first: begin of the range.
            last: end of the range.
            done: an empty queue for the threads' answers, empty again in the end.
        """
        if self.count == 1:
            task(OWN_SEAT, first, last)
            return
        own, *others = self._parts(first, last)
        self._hand_out(task, others, done)
        try:
            task(OWN_SEAT, *own)
        finally:  # no answer may be left for the next call
            self.wait(len(others), done)

    def start(self, task: Task, first: int, last: int, done: SimpleQueue[Any]) -> int:
        """Begin with the work of :meth:`run` in other threads; return how many answers :meth:`wait` has to expect."""
        parts = self._parts(first, last)
        self._hand_out(task, parts, done)
        return len(parts)

    @staticmethod
    def wait(answers: int, done: SimpleQueue[Any]) -> None:
        """Wait for a number of answers; raise what went wrong in a thread."""
        failures = [failure for _ in range(answers) if (failure := done.get()) is not None]
        if failures:
            raise failures[0]

    def _parts(self, first: int, last: int) -> list[tuple[int, int]]:
        count, size = min(self.count, last - first), last - first
        return [(first + size * k // count, first + size * (k + 1) // count) for k in range(count)]

    def _hand_out(self, task: Task, parts: list[tuple[int, int]], done: SimpleQueue[Any]) -> None:
        if self._owner != os.getpid():
            self._inboxes = [SimpleQueue() for _ in range(self.count)]
            self._owner = os.getpid()
            weakref.finalize(self, _dismiss, self._inboxes)
            for seat, inbox in enumerate(self._inboxes, start=OWN_SEAT + 1):
                Thread(target=_work, args=(seat, inbox), name=f"nclone-env-{seat}", daemon=True).start()
        for inbox, part in zip(self._inboxes, parts, strict=False):
            inbox.put((task, part, done))

    def close(self) -> None:
        """End the threads."""
        if self._owner == os.getpid():
            _dismiss(self._inboxes)
        self._inboxes, self._owner = [], 0


def _work(seat: int, inbox: SimpleQueue[Any]) -> None:
    """Do what comes in until None does."""
    while (job := inbox.get()) is not None:
        task, part, done = job
        with _Answer(done):
            task(seat, *part)
        del job, task, part, done


class _Answer:
    """Hands what a task raises, or None, to whoever waits, who raises it; the thread goes on."""

    def __init__(self, done: SimpleQueue[Any]):
        self._done = done

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(self, kind: type | None, failure: BaseException | None, trace: TracebackType | None) -> bool:
        """Answer."""
        self._done.put(failure)
        return True


def _dismiss(inboxes: list[SimpleQueue[Any]]) -> None:
    for inbox in inboxes:
        inbox.put(None)
