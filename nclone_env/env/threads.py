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
_PARTS = 4  # a thread, if they are not smaller than that


class Job:
    """The parts of a range, each for the thread that takes it first; used again and again by one caller.

    A thread that comes late finds no part left, or helps with the next work. Nothing of a task is kept when it is
    done, whoever comes late: its arrays may be meant for somebody else by then.
    """

    __slots__ = ("_done", "_first", "_last", "_numbers", "_owed", "_parts", "_task")

    def __init__(self) -> None:
        self._done: SimpleQueue[Any] = SimpleQueue()
        self._task: Task | None = None
        self._first = self._last = self._parts = self._owed = 0
        self._numbers = iter(range(0))

    def begin(self, task: Task, first: int, last: int, parts: int) -> None:
        """Offer the parts of a range; their numbers come last, as they are what others look for.

        If the caller was interrupted while it waited, by a key say, the work of then is waited for first.
        """
        self._await_answers()
        self._task, self._first, self._last, self._parts, self._owed = task, first, last, parts, parts
        self._numbers = iter(range(parts))  # the interpreter gives no two threads the same one

    def work(self, seat: int) -> None:
        """Take parts until none is left; there is one answer a part."""
        for number in self._numbers:
            with self:
                self._task(seat, self._bound(number), self._bound(number + 1))  # type: ignore[misc]

    def __enter__(self) -> None:
        """Begin with a part."""

    def __exit__(self, kind: type | None, failure: BaseException | None, trace: TracebackType | None) -> bool:
        """Answer for a part with what it raised, or None; whoever waits raises it, and this thread goes on."""
        self._done.put(failure)
        return True

    def finish(self) -> None:
        """Wait for all parts; raise what went wrong in one."""
        wrong = self._await_answers()
        self._task = None
        if wrong is not None:
            raise wrong

    def _await_answers(self) -> BaseException | None:
        wrong: BaseException | None = None
        while self._owed > 0:
            wrong = self._done.get() or wrong
            self._owed -= 1
        return wrong

    def _bound(self, number: int) -> int:
        return self._first + (self._last - self._first) * number // self._parts


class Workers:
    """Threads that run kernels over ranges of environments; results do not depend on who does what.

    A range is cut into more parts than there are threads, and whoever is free takes the next: a thread that wakes up
    late, or shares its core with another process, keeps nobody waiting. The threads are started with the first work
    for them, and again in a child process, which inherits none.

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

    def run(self, job: Job, task: Task, first: int, last: int) -> None:
        """Call ``task`` for the parts of a range, some of them in this thread, and wait for all.

        Args:
            job: none of whose work is under way.
            task: what to do.
            first: begin of the range.
            last: end of the range.
        """
        if self.count == 1:
            task(OWN_SEAT, first, last)
            return
        job.begin(task, first, last, self._parts(last - first))
        self._hand_out(job, self.count - 1)
        job.work(OWN_SEAT)
        job.finish()

    def start(self, job: Job, task: Task, first: int, last: int) -> None:
        """Begin with the work of :meth:`run` in other threads; ``job.finish`` waits for it."""
        job.begin(task, first, last, self._parts(last - first))
        self._hand_out(job, self.count)

    def _parts(self, size: int) -> int:
        """Return into how many parts to cut a range: at least one a thread, more if there is enough work."""
        return min(size, max(self.count, min(_PARTS * self.count, size // _SMALLEST_SHARE)))

    def _hand_out(self, job: Job, threads: int) -> None:
        if self._owner != os.getpid():
            self._inboxes = [SimpleQueue() for _ in range(self.count)]
            self._owner = os.getpid()
            weakref.finalize(self, _dismiss, self._inboxes)
            for seat, inbox in enumerate(self._inboxes, start=OWN_SEAT + 1):
                Thread(target=_work, args=(seat, inbox), name=f"nclone-env-{seat}", daemon=True).start()
        for inbox in self._inboxes[:threads]:
            inbox.put(job)

    def close(self) -> None:
        """End the threads."""
        if self._owner == os.getpid():
            _dismiss(self._inboxes)
        self._inboxes, self._owner = [], 0


def _work(seat: int, inbox: SimpleQueue[Any]) -> None:
    """Do what comes in until None does."""
    while (job := inbox.get()) is not None:
        job.work(seat)
        del job


def _dismiss(inboxes: list[SimpleQueue[Any]]) -> None:
    for inbox in inboxes:
        inbox.put(None)
