"""Tasks computed by any executor, and processes that never outlive the process that started them, however it ends.

Commands do independent tasks with as many workers as ``machine.default_workers`` says, in threads where kernels do the
work, which release the interpreter lock, else in processes. Results come in the order of the tasks, so that files are
the same for any number of workers.
"""

import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice, takewhile
from multiprocessing import current_process, get_context, parent_process
from multiprocessing.connection import wait
from typing import TypeVar

T = TypeVar("T")
_AHEAD = 1024
"""Most tasks that an executor is given before the first of them is finished: their results are kept."""


@contextmanager
def processes(count: int) -> Iterator[Executor | None]:
    """Yield an executor of so many processes; None for one, which is this process.

    Workers of a ``multiprocessing.Pool`` may start no processes: they do the work themselves.
    """
    if count == 1 or current_process().daemon:
        yield None
        return
    context = get_context("spawn")  # threads of the parent do not survive a fork
    with ProcessPoolExecutor(count, context, initializer=begin_worker) as executor:
        yield executor


@contextmanager
def threads(count: int) -> Iterator[Executor | None]:
    """Yield an executor of so many threads; None for one, which is this thread."""
    if count == 1:
        yield None
        return
    with ThreadPoolExecutor(count, initializer=_begin_thread, initargs=(stop := threading.Event(),)) as executor:
        try:
            yield executor
        except BaseException:  # Ctrl-C too: the executor waits for the tasks in work
            stop.set()
            raise


def is_unwanted() -> bool:
    """Return whether this is a thread of :func:`threads` whose context an exception has left; long tasks ask often."""
    stop = getattr(_of_thread, "stop", None)
    return stop is not None and stop.is_set()


def check_wanted() -> None:
    """Raise a CancelledError if :func:`is_unwanted`."""
    if is_unwanted():
        raise CancelledError


_of_thread = threading.local()


def _begin_thread(stop: threading.Event) -> None:
    _of_thread.stop = stop


def begin_worker() -> None:
    """Leave Ctrl-C, which a terminal sends to all processes, to the parent; end at once when the parent has ended.

    Call it first in a process that ``multiprocessing`` has started, as the initializer of a pool for example. A parent
    that was killed tells its workers nothing: they would wait for work for ever.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, name="end with parent", daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)  # there is no one to report to


def never() -> bool:
    """Return False: there is no request to stop."""
    return False


def in_order(
    tasks: Iterable[Callable[[], T]],
    executor: Executor | None = None,
    stop: Callable[[], bool] = never,
    ahead: int = _AHEAD,
) -> Iterator[T]:
    """Yield what tasks return, in their order.

    Args:
        tasks: drawn when they are due; picklable if the executor has other processes.
        executor: that computes them; None: this thread.
        stop: asked before each result; those in work then are still yielded, unless a signal that all processes got, as
            of ``timeout``, has ended the workers, too.
        ahead: most tasks whose results are kept.
    """
    if executor is None:
        yield from (task() for task in takewhile(lambda _: not stop(), tasks))
        return
    due, waiting = iter(tasks), deque[Future[T]]()
    try:
        while not stop():
            waiting.extend(executor.submit(task) for task in islice(due, ahead - len(waiting)))
            if not waiting:
                return
            yield waiting.popleft().result()
        _cancel(waiting)
        yield from (future.result() for future in takewhile(lambda future: not future.cancelled(), waiting))
    except BrokenExecutor:
        if not stop():
            raise
    finally:
        _cancel(waiting)


def _cancel(futures: Iterable[Future[T]]) -> None:
    for future in futures:
        future.cancel()
