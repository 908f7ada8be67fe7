"""Worker processes that never outlive the process that started them."""

from __future__ import annotations

import os
import signal
import threading
from multiprocessing import parent_process
from multiprocessing.connection import wait


def begin_worker() -> None:
    """Leave Ctrl-C, which a terminal sends to all processes, to the parent; end at once when the parent has ended.

    Call it first in a process started by ``multiprocessing``, for example as the initializer of a pool. A killed parent
    sends its workers no message, so they would wait for work for ever.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, name="end with parent", daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)  # there is no one to report to
