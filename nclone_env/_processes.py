"""Tasks computed by any executor, and processes that never outlive the process that started them, however it ends.

The child of a ``Background`` is ``python -m`` with this module: ``multiprocessing`` would import the user's script too.
Requests and answers are pickled, one after another: a function of the package with its arguments, and what it returned.
"""

import os
import pickle
import select
import signal
import subprocess
import sys
import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager, suppress
from itertools import islice, takewhile
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait
from queue import SimpleQueue
from typing import Any, BinaryIO, TypeVar

from nclone_env.errors import NcloneError

T = TypeVar("T")
_AHEAD = 1024
"""Most tasks that an executor is given before the first of them is finished: their results are kept."""
_NICENESS = 10


class BackgroundError(NcloneError, ChildProcessError):
    """The process ended before it had answered."""


class Background:
    """A process at low priority that computes one thing after another; the first :meth:`submit` starts it."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def submit(self, function: Callable[..., Any], *args: Any) -> None:
        """Begin to compute ``function(*args)``; both must be picklable.

        Raises:
            BackgroundError: if the process has ended.
        """
        if self._process is None:
            command = [sys.executable, "-P", "-m", __name__]
            paths = {"PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)}
            pipe = subprocess.PIPE
            self._process = subprocess.Popen(command, env=os.environ | paths, stdin=pipe, stdout=pipe)
        assert self._process.stdin is not None
        try:
            pickle.dump((function, args), self._process.stdin)
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._lost(self._process) from None

    def result(self) -> Any:
        """Wait for the answer to the earliest request that was not answered yet.

        Raises:
            NcloneError: if the function raised one.
            BackgroundError: if the process has ended.
        """
        assert self._process is not None, "result() was called before submit()"
        assert self._process.stdout is not None
        try:
            returned, value = pickle.load(self._process.stdout)
        except (EOFError, pickle.UnpicklingError):
            raise self._lost(self._process) from None
        if not returned:
            raise value
        return value

    def ready(self, seconds: float) -> bool:
        """Wait some seconds at most; return whether the only missing answer is there, or the process has ended."""
        assert self._process is not None, "ready() was called before submit()"
        assert self._process.stdout is not None
        if os.name == "nt":
            return True  # select takes only sockets there, so that result() waits
        return bool(select.select([self._process.stdout], [], [], seconds)[0])

    def close(self) -> None:
        """End the process, whatever it computes."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            for pipe in (self._process.stdin, self._process.stdout):
                with suppress(BrokenPipeError):  # half a request may be left
                    pipe.close()  # type: ignore[union-attr]
            self._process = None

    @staticmethod
    def _lost(process: subprocess.Popen[bytes]) -> BackgroundError:
        return BackgroundError(
            f"the process that makes levels in the background: expected an answer, but it ended with status "
            f"{process.wait()}; if it printed no traceback it was killed, perhaps for its memory: resume the run"
        )


def serve() -> None:
    """Answer requests until there is no one left who could ask, or an error is none of the package.

    Interrupts are left to the parent, which saves a run when it gets one.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    if hasattr(os, "nice"):  # not on Windows
        os.nice(_NICENESS)
    requests: SimpleQueue[tuple[Callable[..., Any], tuple[Any, ...]]] = SimpleQueue()
    with os.fdopen(os.dup(1), "wb") as answers, open(0, "rb", closefd=False) as stream:
        os.dup2(2, 1)  # so that nothing that is printed gets among the answers
        threading.Thread(target=_receive, args=(stream, requests), daemon=True).start()
        while True:
            function, args = requests.get()
            try:
                answer = (True, function(*args))
            except NcloneError as error:
                answer = (False, error)
            except BaseException:  # noqa: BLE001 - printed, and the end of the process
                traceback.print_exc()
                sys.stderr.flush()
                os._exit(1)  # the other thread waits in a read, where the interpreter cannot end
            pickle.dump(answer, answers)
            answers.flush()


def _receive(stream: BinaryIO, requests: SimpleQueue[Any]) -> None:
    """Queue requests; end the process with its parent, even in the middle of a computation."""
    while True:
        try:
            requests.put(pickle.load(stream))
        except EOFError:
            os._exit(0)


@contextmanager
def processes(count: int) -> Iterator[Executor | None]:
    """Yield an executor of so many processes; None for one, which is this process."""
    if count == 1:
        yield None
        return
    context = get_context("spawn")  # threads of the parent do not survive a fork
    with ProcessPoolExecutor(count, context, initializer=begin_worker) as executor:
        yield executor


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


if __name__ == "__main__":
    serve()
