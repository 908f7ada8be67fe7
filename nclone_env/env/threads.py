"""A thread pool that runs kernels over ranges of environments; the kernels release the interpreter lock."""

import os
import weakref
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from threading import Thread
from time import perf_counter, sleep

from nclone_env.machine import available_cores
from nclone_env.sim import Pace

Task = Callable[[int, int, int], None]
"""Called as ``task(worker, first, last)``; no two calls with the same worker slot run at the same time."""


CALLING_THREAD = 0
"""Worker slot of the thread that calls."""
_PACE_OF_ONE = Pace()  # shared: one environment is never cut
_MOMENT = 0.001  # seconds
_MIN_CHUNK = 64  # environments; handing over less work costs more than it saves
_CHUNKS_PER_THREAD = 4  # unless they would be smaller than that


class _Chunks:
    """A range of environments in chunks, each processed by the first free thread; one range after another.

    A thread that arrives late finds no chunk left, or helps with the next range. No thread keeps a reference to a
    finished task: its arrays may be in use elsewhere by then.
    """

    __slots__ = ("_busy", "_count", "_first", "_last", "_numbers", "_outcomes", "_pace", "_task")

    def __init__(self) -> None:
        self._outcomes: SimpleQueue[BaseException | None] = SimpleQueue()  # one for each chunk
        self._busy: set[int] = set()  # threads that may be processing a chunk
        self._task: Task | None = None
        self._pace: Pace | None = None
        self._first = self._last = self._count = 0
        self._numbers = iter(range(0))

    def begin(self, task: Task, first: int, last: int, chunks: int, pace: Pace) -> None:
        """Offer the chunks of a range to threads that call :meth:`work`."""
        self.stop()  # does nothing unless this was interrupted after the range before
        self._task, self._first, self._last, self._count, self._pace = task, first, last, chunks, pace
        self._numbers = iter(range(chunks))  # set last: threads look here; the interpreter hands out each number once

    def work(self, worker: int) -> None:
        """Process chunks until none is left, and report the outcome of each."""
        self._busy.add(worker)
        for number in self._numbers:
            first, last, began = self._bound(number), self._bound(number + 1), perf_counter()
            try:
                self._task(worker, first, last)  # type: ignore[misc]
            except BaseException as failure:
                if worker == CALLING_THREAD and not isinstance(failure, Exception):  # Ctrl-C: do not go on
                    raise
                self._outcomes.put(failure)  # finish() raises it in the caller; this thread goes on
            else:
                self._pace.adjust(last - first, perf_counter() - began)  # type: ignore[union-attr]
                self._outcomes.put(None)
        self._busy.discard(worker)

    def finish(self) -> None:
        """Wait for all chunks; raise the exception of one that failed."""
        failure = None
        for _ in range(self._count):
            failure = self._outcomes.get() or failure
        self._task, self._count = None, 0
        if failure is not None:
            raise failure

    def stop(self) -> None:
        """If the range was interrupted, start no further chunk, and wait for those that threads are processing."""
        if self._count:
            for _ in self._numbers:
                pass
            self._busy.discard(CALLING_THREAD)
            while self._busy:
                sleep(_MOMENT)
            self._task, self._count, self._outcomes = None, 0, SimpleQueue()

    def _bound(self, number: int) -> int:
        return self._first + (self._last - self._first) * number // self._count


class Workers:
    """Threads that run tasks over ranges of environments; results do not depend on the schedule.

    A range is cut into more chunks than there are threads, and each free thread takes the next chunk, so a thread that
    wakes up late or shares its core with another process does not delay the others. Threads are started on first use,
    and again in a forked child process, which inherits none; by default one per core, fewer for small batches.

    Attributes:
        count: number of threads, the calling one among them, and of worker slots, each with scratch memory of its own.
        pace_of_resets: pace of resets, which are far faster than steps.
    """

    __slots__ = ("__weakref__", "_chunks", "_inboxes", "_min_chunk", "_owner", "_pace", "count", "pace_of_resets")
    _chunks: _Chunks

    def __init__(self, num_envs: int, num_threads: int | None = None, min_chunk: int = _MIN_CHUNK):
        threads = num_threads or min(available_cores(), max(1, num_envs // min_chunk))
        self.count = max(1, min(int(threads), num_envs))
        self._min_chunk = min_chunk
        self._pace, self.pace_of_resets = (Pace(), Pace()) if num_envs > 1 else (_PACE_OF_ONE, _PACE_OF_ONE)
        self._inboxes: Sequence[SimpleQueue[_Chunks | None]] = ()
        self._owner = 0

    def begin_slowly(self) -> None:
        """Begin again with the shortest pieces, as other levels may take a thousand times as long."""
        self._pace = Pace()

    def run(self, task: Task, first: int, last: int, pace: Pace | None = None) -> None:
        """Process a range, in part in this thread, and wait for all of it; one range at a time.

        Work far faster than other work of these threads has a pace of its own: the other would be cut too late after
        it.
        """
        pace = pace or self._pace
        if self.count == 1:
            for piece in pace.pieces(first, last):
                task(CALLING_THREAD, *piece)
            return
        if self._owner != os.getpid():
            self._start_threads()
        chunks = self._chunks
        try:
            chunks.begin(task, first, last, self._count_chunks(last - first, pace), pace)
            for inbox in self._inboxes:
                inbox.put(chunks)
            chunks.work(CALLING_THREAD)
            chunks.finish()
        finally:
            chunks.stop()

    def _count_chunks(self, size: int, pace: Pace) -> int:
        """Return the number of chunks of a range: at least one per thread, more if there is enough or slow work."""
        enough = min(_CHUNKS_PER_THREAD * self.count, size // self._min_chunk)
        return min(size, max(self.count, enough, -(-size // pace.size)))

    def _start_threads(self) -> None:
        self._chunks = _Chunks()  # a forked child has a copy of its parent's, which no thread works on
        self._inboxes = [SimpleQueue() for _ in range(self.count - 1)]
        self._owner = os.getpid()
        weakref.finalize(self, _dismiss, self._inboxes)
        for worker, inbox in enumerate(self._inboxes, start=CALLING_THREAD + 1):
            Thread(target=_work, args=(worker, inbox), name=f"nclone-env-{worker}", daemon=True).start()

    def close(self) -> None:
        """End the threads."""
        if self._owner == os.getpid():
            _dismiss(self._inboxes)
        self._inboxes, self._owner = (), 0


def _work(worker: int, inbox: SimpleQueue[_Chunks | None]) -> None:
    """Work on incoming jobs until None arrives."""
    while (chunks := inbox.get()) is not None:
        chunks.work(worker)
        del chunks  # waiting for the next ones must not keep these


def _dismiss(inboxes: Sequence[SimpleQueue[_Chunks | None]]) -> None:
    for inbox in inboxes:
        inbox.put(None)
