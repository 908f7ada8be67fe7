"""Tasks computed by any executor, with results in the order of the tasks."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future
from itertools import islice, takewhile
from typing import TypeVar

T = TypeVar("T")
_AHEAD = 1024
"""Most tasks that an executor is given before the first of them is finished: their results are kept."""


def never() -> bool:
    """Return False: there is no request to stop."""
    return False


def in_order(
    tasks: Iterable[Callable[[], T]],
    executor: Executor | None = None,
    stop: Callable[[], bool] = never,
) -> Iterator[T]:
    """Yield what tasks return, in their order.

    Args:
        tasks: drawn when they are due; picklable if the executor has other processes.
        executor: that computes them; None: this thread.
        stop: asked before each result; those in work then are still yielded.
    """
    if executor is None:
        yield from (task() for task in takewhile(lambda _: not stop(), tasks))
        return
    due, waiting = iter(tasks), deque[Future[T]]()
    try:
        while not stop():
            waiting.extend(executor.submit(task) for task in islice(due, _AHEAD - len(waiting)))
            if not waiting:
                return
            yield waiting.popleft().result()
        _cancel(waiting)
        yield from (future.result() for future in takewhile(lambda future: not future.cancelled(), waiting))
    finally:
        _cancel(waiting)


def _cancel(futures: Iterable[Future[T]]) -> None:
    for future in futures:
        future.cancel()
