"""Lines of forked worker processes: each traces itself once its parent has seen the memory of workers grow."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import threading
import time
import tracemalloc
from collections import Counter
from contextlib import suppress
from dataclasses import astuple
from pathlib import Path

from nclone_env.memory.garbage import Garbage
from nclone_env.memory.keepers import find_keepers
from nclone_env.memory.measurements import Keeper
from nclone_env.memory.stats import culprits, grown_lines
from nclone_env.memory.traced import TracedLog, start_tracing

_POLL = 0.1  # seconds between two looks for the request
_INTERVAL = 0.5  # seconds between two snapshots
_SNAPSHOTS = 600  # of a process
_SEARCH_SECONDS = 0.5
_REQUEST = "trace"


class WorkerLines:
    """The lines that grew in worker processes, which they write to a folder that this process reads."""

    def __init__(self) -> None:
        self._folder = Path()

    def open(self) -> None:
        """Have every process that is forked from now on wait for the request."""
        self._folder = Path(tempfile.mkdtemp(prefix="nclone-env-workers-"))
        _Folder.current = self._folder

    def request(self) -> None:
        """Ask the processes to trace themselves."""
        (self._folder / _REQUEST).touch()

    def close(self) -> tuple[dict[str, float], tuple[Keeper, ...]]:
        """Stop waiting, and remove the folder.

        Returns:
            Each line, as ``file:line``, with its share in what grew in all processes; and their keepers.
        """
        rates: Counter[str] = Counter()
        keepers: list[Keeper] = []
        for file in sorted(self._folder.glob("*.json")):
            lines, found = json.loads(file.read_text())
            rates.update(lines)
            keepers.extend(Keeper(*keeper) for keeper in found)
        _Folder.current = None
        shutil.rmtree(self._folder, ignore_errors=True)
        return {line: rate / rates.total() for line, rate in rates.items()}, tuple(keepers)


class _Folder:
    current: Path | None = None
    """Of the profile that runs now; seen by a fork."""


def _after_fork() -> None:
    if _Folder.current is not None:
        threading.Thread(target=_wait, args=(_Folder.current,), daemon=True, name="memory profiler").start()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_after_fork)


def _wait(folder: Path) -> None:
    """Wait until the process is asked to trace itself, or the profile has ended."""
    while folder.exists():
        if (folder / _REQUEST).exists():
            with suppress(OSError):  # the folder is removed at the end
                _trace(folder)
            return
        time.sleep(_POLL)


def _trace(folder: Path) -> None:
    if not tracemalloc.is_tracing():
        start_tracing()
    began, log = time.perf_counter(), TracedLog(_SNAPSHOTS, Garbage().collect)
    keepers: dict[str, Keeper] = {}
    for _ in range(_SNAPSHOTS):
        log.take(1000 * (time.perf_counter() - began), lines=True)
        steps = log.line_steps()
        grown = culprits(grown_lines(log.lines(), steps, steps[0], steps[-1]))
        places = {line.place: line.places for line in grown if line.place not in keepers}
        keepers |= {keeper.line: keeper for keeper in find_keepers(places, _SEARCH_SECONDS)} if places else {}
        rates, found = {line.place: line.rate for line in grown}, [astuple(keeper) for keeper in keepers.values()]
        partial = folder / f"{os.getpid()}.partial"
        partial.write_text(json.dumps((rates, found)))
        partial.rename(partial.with_suffix(".json"))
        time.sleep(_INTERVAL)
