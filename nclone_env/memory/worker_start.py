"""What a worker process runs from its start on: a thread that waits until the profiler of its parent asks for lines.

Worker processes that are not forked run this file on its own: it imports nothing of the package before it is asked.
"""

import os
import runpy
import threading
import time
from contextlib import suppress
from pathlib import Path

REQUEST, LOADING = "trace", ".loading"
"""Name of the file by which a parent asks, and ending of that by which a process says that it imports or compiles."""
SPAWNED = "spawned worker"
"""Name under which a worker process that is not forked runs this file."""
_POLL = 0.1  # seconds


def begin(folder: Path) -> None:
    """Begin to wait.

    Args:
        folder: of the profile; it is removed at its end.
    """
    threading.Thread(target=_wait, args=(folder,), daemon=True, name="memory profiler").start()


def _wait(folder: Path) -> None:
    is_loading = runpy.run_path(str(Path(__file__).with_name("loading.py")))["is_loading"]
    sign = folder / f"{os.getpid()}{LOADING}"
    with suppress(OSError):  # the folder is removed at the end
        while folder.exists():
            if is_loading():
                sign.touch()
            elif (folder / REQUEST).exists():
                from nclone_env.memory.workers import trace

                trace(folder)
                return
            time.sleep(_POLL)


if __name__ == SPAWNED:
    begin(Path(globals()["folder"]))
