"""A thread pool that runs kernels over ranges of environments; the kernels release the interpreter lock."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from threading import Thread
from typing import Any

Task = Callable[[int, int, int], None]
"""Called as ``task(worker, first, last)``; no two calls with the same worker slot run at the same time."""

CALLING_THREAD = 0
"""Worker slot of the thread that calls."""
_MIN_CHUNK = 64  # environments; handing over less work costs more than it saves
_CHUNKS_PER_THREAD = 4  # unless they would be smaller than that


def available_cores() -> int:
    """Return the number of processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Job:
    """A range of environments in chunks, each processed by the first free thread; reused by one caller.

    A thread that arrives late finds no chunk left, or helps with the next range. No thread keeps a reference to a
    finished task: its arrays may be in use elsewhere by then.
    """

    __slots__ = ("_chunks", "_done", "_first", "_last", "_numbers", "_outstanding", "_task")

    def __init__(self) -> None:
        self._done: SimpleQueue[BaseException | None] = SimpleQueue()
        self._task: Task | None = None
        self._first = self._last = self._chunks = self._outstanding = 0
        self._numbers = iter(range(0))

    def begin(self, task: Task, first: int, last: int, chunks: int) -> None:
        """Offer the chunks of a range to threads that call :meth:`work`.

        If the caller was interrupted while it waited for an earlier range, that range is finished first.
        """
        self._await_outcomes()
        self._task, self._first, self._last = task, first, last
        self._chunks = self._outstanding = chunks
        self._numbers = iter(range(chunks))  # set last: threads look here; the interpreter hands out each number once

    def work(self, worker: int) -> None:
        """Process chunks until none is left, and report the outcome of each."""
        for number in self._numbers:
            try:
                self._task(worker, self._bound(number), self._bound(number + 1))  # type: ignore[misc]
            except BaseException as failure:  # noqa: BLE001 - finish() raises it in the caller; this thread goes on
                self._done.put(failure)
            else:
                self._done.put(None)

    def finish(self) -> None:
        """Wait for all chunks; raise the exception of one that failed."""
        failure = self._await_outcomes()
        self._task = None
        if failure is not None:
            raise failure

    def _await_outcomes(self) -> BaseException | None:
        failure: BaseException | None = None
        while self._outstanding > 0:
            failure = self._done.get() or failure
            self._outstanding -= 1
        return failure

    def _bound(self, number: int) -> int:
        return self._first + (self._last - self._first) * number // self._chunks


class Workers:
    """Threads that run tasks over ranges of environments; results do not depend on the schedule.

    A range is cut into more chunks than there are threads, and each free thread takes the next chunk, so a thread that
    wakes up late or shares its core with another process does not delay the others. Threads are started on first use,
    and again in a forked child process, which inherits none.

    Args:
        num_envs: environments of the batch.
        num_threads: number of threads; by default one per core, fewer for small batches.
        min_chunk: smallest range that is worth handing over.
    """

    __slots__ = ("__weakref__", "_inboxes", "_min_chunk", "_owner", "count")

    def __init__(self, num_envs: int, num_threads: int | None = None, min_chunk: int = _MIN_CHUNK):
        threads = num_threads or min(available_cores(), max(1, num_envs // min_chunk))
        self.count = max(1, min(threads, num_envs))
        self._min_chunk = min_chunk
        self._inboxes: Sequence[SimpleQueue[Any]] = ()
        self._owner = 0

    @property
    def slots(self) -> int:
        """Number of worker slots, each with its own scratch memory: the calling thread's and one per thread."""
        return self.count + 1

    def run(self, job: Job, task: Task, first: int, last: int) -> None:
        """Process a range, in part in this thread, and wait for all of it.

        Args:
            job: a job without outstanding chunks.
            task: called for each chunk.
            first: first environment.
            last: one past the last environment.
        """
        if self.count == 1:
            task(CALLING_THREAD, first, last)
            return
        job.begin(task, first, last, self._count_chunks(last - first))
        self._hand_out(job, self.count - 1)
        job.work(CALLING_THREAD)
        job.finish()

    def start(self, job: Job, task: Task, first: int, last: int) -> None:
        """Begin to process a range in other threads; ``job.finish`` waits for it. Arguments as of :meth:`run`."""
        job.begin(task, first, last, self._count_chunks(last - first))
        self._hand_out(job, self.count)

    def _count_chunks(self, size: int) -> int:
        """Return the number of chunks of a range: at least one per thread, more if there is enough work."""
        return min(size, max(self.count, min(_CHUNKS_PER_THREAD * self.count, size // self._min_chunk)))

    def _hand_out(self, job: Job, threads: int) -> None:
        if self._owner != os.getpid():
            self._inboxes = [SimpleQueue() for _ in range(self.count)]
            self._owner = os.getpid()
            weakref.finalize(self, _dismiss, self._inboxes)
            for worker, inbox in enumerate(self._inboxes, start=CALLING_THREAD + 1):
                Thread(target=_work, args=(worker, inbox), name=f"nclone-env-{worker}", daemon=True).start()
        for inbox in self._inboxes[:threads]:
            inbox.put(job)

    def close(self) -> None:
        """End the threads."""
        if self._owner == os.getpid():
            _dismiss(self._inboxes)
        self._inboxes, self._owner = (), 0


def _work(worker: int, inbox: SimpleQueue[Any]) -> None:
    """Work on incoming jobs until None arrives."""
    while (job := inbox.get()) is not None:
        job.work(worker)
        del job  # waiting for the next job must not keep this one


def _dismiss(inboxes: Sequence[SimpleQueue[Any]]) -> None:
    for inbox in inboxes:
        inbox.put(None)
