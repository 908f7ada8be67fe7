"""When a program imports and compiles, seen from what its threads do now and then; and lines of its worker processes.

A worker process runs :func:`begin` from its start on: a thread that says when it imports or compiles, and waits until
the profiler of its parent has seen the memory of workers grow and asks for lines. Worker processes that are not forked
run this file on its own, so that it imports nothing of the package before it is asked.
"""

from __future__ import annotations

import _thread
import ctypes
import json
import multiprocessing
import os
import runpy
import shutil
import signal
import sys
import tempfile
import threading
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import astuple, replace
from functools import cache
from multiprocessing import process, spawn
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nclone_env.memory.measure.measurements import Keeper

_PACKAGE = str(Path(__file__).parents[2])
_MAKING = os.path.join(_PACKAGE, "jit", ""), os.path.join(_PACKAGE, "render", "raster.py")
"""Compiles kernels, and draws glyphs: once per machine, from thousands of small arrays."""
_CALLING = tuple(
    f"/{path}.py".replace("/", os.sep)
    for path in (
        *("nclone_env/jit/decorators", "numba/core/dispatcher", "numba/core/serialize", "numba/core/typing/typeof"),
        "numba/np/ufunc/gufunc",
    )
)
"""Call what was compiled, for most of the time of a training run, or of one with Numba's lists and dictionaries."""
_AT_HAND = ("_handle_fromlist", "_gcd_import", "_sanity_check", "_find_and_load")
"""Run whenever a function imports something; what is not there yet is imported by others below them."""
_COMPILERS = (
    *("numba/core/", "numba/np/", "llvmlite/", "torch/_dynamo/convert_frame.py", "torch/_inductor/graph.py"),
    *("jax/_src/compiler.py", "jax/_src/interpreters/mlir.py", "jax/_src/interpreters/partial_eval.py"),
)
"""Folders and files of compilers. Others of the same folders call what was compiled, in every step of a program."""
_PARTS = tuple(f"/{part}".replace("/", os.sep) for part in _COMPILERS)
_SAME = 150.0  # milliseconds within which two sightings are one
REQUEST, LOADING, TAKEN = "trace", ".loading", ".taken"
"""Name of the file by which a parent asks; endings of those by which a process says that it imports or compiles, and
how many bytes the profiler has taken in it: nothing while it takes more."""
SPAWNED = "spawned worker"
"""Name under which a worker process that is not forked runs this file."""
_POLL = 0.1  # seconds
_INTERVAL = 0.5  # seconds between two snapshots
_SNAPSHOTS = 600  # of a process
_SEARCH_SECONDS = 1.5
_FRESH = 1.0  # seconds for which a sign of a process counts: it may have ended
_SENT = "<dynamic-code>"
"""File of functions that were sent to a process by cloudpickle."""
_NAMED, _LEAST_SHARE = 3, 0.1  # processes without lines, and the least part of what grew in all of them


class Loading:
    """Stretches of a run in which code was imported or compiled."""

    def __init__(self) -> None:
        self._stretches: list[list[float]] = []
        self.last = 0.0
        """Milliseconds of the last sighting."""
        self.milliseconds = 0.0
        """In which code was seen to be imported or compiled."""
        self._before = 0.0

    def look(self, place: float, now: float, workers: bool = False) -> bool:
        """Look at all threads at ``place``, a step of the program or a time, and ``now``; times are in milliseconds.

        ``workers`` tells whether a worker process imports or compiles.
        """
        loads = workers or is_loading()
        if loads:
            self.milliseconds += now - self._before
            if self._stretches and now - self.last < _SAME:
                self._stretches[-1][1] = place
            else:
                self._stretches.append([place, place])
            self.last = now
        self._before = now
        return loads

    def restart(self) -> None:
        """Forget the stretches so far."""
        self._stretches.clear()

    def longest_without(self, first: float, last: float) -> tuple[float, float]:
        """Return the bounds of the longest stretch between two places in which nothing was seen."""
        edges = [first, *(place for stretch in self._stretches for place in stretch), last]
        gaps = [(max(first, low), min(last, high)) for low, high in zip(edges[::2], edges[1::2])]
        return max(gaps, key=lambda gap: gap[1] - gap[0])


def is_loading() -> bool:
    """Return whether a thread of this process, other than the calling one, imports or compiles now."""
    this = threading.get_ident()
    return any(_loads(frame) for thread, frame in sys._current_frames().items() if thread != this)


def _loads(innermost: FrameType) -> bool:
    frame: FrameType | None = innermost
    while frame is not None:
        file, name = frame.f_code.co_filename, frame.f_code.co_name
        is_making = file.startswith(("<frozen importlib", *_MAKING)) or any(part in file for part in _PARTS)
        if is_making and name not in _AT_HAND and not file.endswith(_CALLING):
            return True
        frame = frame.f_back
    return False


def begin(folder: Path) -> None:
    """Begin to wait until there is a request in the folder of a profile, or that is removed."""
    start_thread(_wait, folder)


def start_thread(function: Callable[..., object], *arguments: object) -> None:
    """Start a thread that gets none of the signals which the program blocks and waits for.

    ``threading`` does not list it: programs count and join the threads that are.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        _thread.start_new_thread(function, arguments)
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())  # the new thread has the same
    try:
        _thread.start_new_thread(function, arguments)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _wait(folder: Path) -> None:
    sign, since = folder / f"{os.getpid()}{LOADING}", None
    with suppress(OSError):  # the folder is removed at the end
        while folder.exists():
            if is_loading():
                sign.touch()
                since = None
            elif (folder / REQUEST).exists():
                trace(folder, *(since or (0.0, _private_bytes())))
                return
            elif since is None:  # what imports, or a fork, left free is resident: a leak would fill it unseen
                with suppress(AttributeError, OSError, TypeError):  # another C library, or Windows
                    ctypes.CDLL(None).malloc_trim(0)
                since = time.perf_counter(), _private_bytes()
            time.sleep(_POLL)


class WorkerLines:
    """The lines that grew in worker processes, which they write to a folder that this process reads."""

    current: Path | None = None
    """Folder of the profile that runs now; seen by a fork."""

    def __init__(self) -> None:
        self._folder = Path()
        self._prepare: Callable[[str], dict[str, Any]] = spawn.get_preparation_data
        self._sizes: list[tuple[float, float, Mapping[int, int]]] = []  # place, seconds, bytes of each process
        self._names: dict[int, str] = {}

    def open(self) -> None:
        """Have every process that ``multiprocessing`` or a fork starts from now on wait for the request."""
        before = tempfile.tempdir
        try:
            self._folder = Path(tempfile.mkdtemp(prefix="nclone-env-workers-"))
        except OSError:  # no folder can be written
            return
        finally:
            tempfile.tempdir = before  # the program may yet set TMPDIR
        WorkerLines.current = self._folder
        self._prepare = spawn.get_preparation_data

        def prepared(name: str) -> dict[str, Any]:
            return {**self._prepare(name), "memory profiler": _Start(self._folder)}

        spawn.get_preparation_data = prepared

    def are_loading(self) -> bool:
        """Return whether one of the processes imports or compiles now."""
        now = time.time()
        signs = self._folder.glob(f"*{LOADING}") if WorkerLines.current is not None else ()
        return any(now - sign.stat().st_mtime < _FRESH for sign in signs)

    def request(self) -> None:
        """Ask the processes to trace themselves."""
        if WorkerLines.current is not None:
            (self._folder / REQUEST).touch()

    def taken(self) -> dict[int, int | None]:
        """Return the bytes of the profiler in each process that traces itself, by its number; None: not known yet."""
        files = self._folder.glob(f"*{TAKEN}") if WorkerLines.current is not None else ()
        return {int(file.stem): int(text) if (text := file.read_text()) else None for file in files}

    def note(self, place: float, sizes: Mapping[int, int]) -> None:
        """Note the bytes of each process, by its number, at a step of the program or a time."""
        from nclone_env.memory.measure.process import command_of

        self._sizes.append((place, time.perf_counter(), sizes))
        new = sizes.keys() - self._names.keys()
        names = {child.pid: f", {child.name}" for child in getattr(process, "_children", ())} if new else {}
        self._names |= {child: f"process {child}{names.get(child, '')}: {command_of(child)}" for child in new}

    @property
    def most(self) -> int:
        """The largest number of processes at a time."""
        return max((len(sizes) for *_, sizes in self._sizes), default=0)

    def thin(self) -> None:
        """Drop every second note, but not the first."""
        del self._sizes[1::2]

    def clear(self) -> None:
        """Drop all notes."""
        self._sizes.clear()

    def close(self, first: float, last: float) -> tuple[dict[str, float], tuple[Keeper, ...]]:
        """Stop waiting, and remove the folder.

        Return each line, as ``file:line``, with its share in what grew in all processes; and their keepers. Where lines
        explain less than a tenth of what grew from place ``first`` to ``last``, the processes that grew most are named.
        """
        from nclone_env._table import format_bytes
        from nclone_env.memory.measure.measurements import WORKER, Keeper

        rates: Counter[str] = Counter()
        keepers: list[Keeper] = []
        is_open = WorkerLines.current == self._folder
        for file in sorted(self._folder.glob("*.json")) if is_open else ():
            lines, found = json.loads(file.read_text())
            rates.update(lines)
            keepers.extend(Keeper(*keeper) for keeper in found)
        if is_open:
            WorkerLines.current = None
            spawn.get_preparation_data = self._prepare  # type: ignore[assignment]
            shutil.rmtree(self._folder, ignore_errors=True)
        noted = [note for note in self._sizes if first <= note[0] <= last]
        grown = self._grown(noted)
        whole = sum(size for size in grown.values() if size > 0)
        if rates and rates.total() * (noted[-1][1] - noted[0][1] if noted else 0.0) >= _LEAST_SHARE * whole:
            return {line: rate / rates.total() for line, rate in rates.items()}, tuple(keepers)
        most = [(child, size) for child, size in grown.most_common(_NAMED) if size > _LEAST_SHARE * whole > 0]
        return {}, tuple(Keeper(WORKER, self._names[child], format_bytes(size, sign=True)) for child, size in most)

    def _grown(self, noted: Sequence[tuple[float, float, Mapping[int, int]]]) -> Counter[int]:
        """Return the bytes that each process kept in the last part beyond those in the first, as the verdict counts."""
        import numpy as np

        from nclone_env.memory.judge import kept_levels

        if len(noted) < 2:
            return Counter()
        places = np.array([place for place, *_ in noted], dtype=np.float64)
        found: Counter[int] = Counter()
        for child in noted[-1][2]:
            _, levels = kept_levels(places, np.array([sizes.get(child, 0) for *_, sizes in noted]))
            found[child] = int(levels[-1] - levels[0])
        return found


class _Start:
    """Is among what a new process is told: reading it begins to wait there."""

    def __init__(self, folder: Path):
        self._folder = folder

    def __reduce__(self) -> tuple[Any, ...]:
        return runpy.run_path, (__file__, {"folder": str(self._folder)}, SPAWNED)


def _after_fork() -> None:
    if WorkerLines.current is not None:
        begin(WorkerLines.current)


if hasattr(os, "register_at_fork") and __name__ != SPAWNED:  # not on Windows
    os.register_at_fork(after_in_child=_after_fork)


def trace(folder: Path, since: float, first: int) -> None:
    """Trace this process and write its lines that grow to the folder, until that is removed.

    It had ``first`` bytes at the time ``since``, after its own imports. By them is told what the program takes while
    the modules of the profiler are imported; to trace it, too, these would take thirty times as long.
    """
    own, asked = _Taken(folder), time.perf_counter()
    rate = max(0, own.before - first) / (asked - since)
    from nclone_env.memory.explain.keepers import find_keepers
    from nclone_env.memory.explain.stats import culprits, grown_lines
    from nclone_env.memory.measure.snapshots import Budget, Garbage, TracedLog, start_tracing, table_bytes

    if not tracemalloc.is_tracing():
        start_tracing()
    began, log = time.perf_counter(), TracedLog(_SNAPSHOTS, Garbage().collect)
    keepers: dict[str, Keeper] = {}

    def take(always: bool = False) -> int:
        """Take a snapshot; return the bytes of all that is noted."""
        log.take(1000 * (time.perf_counter() - began), lines=True, always=always)
        return table_bytes() + log.nbytes + log.left

    for number in range(_SNAPSHOTS):
        notes = take()
        if not number:
            own.end(notes, round(rate * min(asked - since, time.perf_counter() - asked)))
        steps = log.line_steps()
        grown = culprits(grown_lines(log.lines(), steps, steps[0], steps[-1]))
        is_time = number & (number - 1) == 0  # ever more seldom
        unknown = [line for line in grown if is_time and line.place not in keepers]
        if unknown:
            own.begin(notes)
            before = log.last_bytes
            with suppress(Exception):  # a fault must not leave it unsaid how much was taken
                for item in find_keepers(unknown, Budget(_SEARCH_SECONDS, by_clock=False), sizes=False):
                    name = f"{item.name} in {multiprocessing.current_process().name}"  # of a fork only now
                    keepers[item.line] = replace(item, line=_with_file(item.line), name=name)
            notes = take(always=True)
            own.end(notes, log.last_bytes - before)
        if grown:  # nothing does at its end, when it frees all
            rates = {_with_file(line.place): line.rate for line in grown}
            _write(folder, ".json", json.dumps((rates, [astuple(keeper) for keeper in keepers.values()])))
        own.tell(notes)
        time.sleep(_INTERVAL)


class _Taken:
    """The bytes that the profiler takes in this process, told in a file: nothing while it takes more.

    Attributes:
        before: bytes of the process, less the profiler's notes, as it began to take more.
    """

    def __init__(self, folder: Path):
        self._folder, self._bytes = folder, 0
        self.begin(0)

    def begin(self, notes: int) -> None:
        """Begin to take more than the notes so far."""
        _write(self._folder, TAKEN, "")
        self.before = _private_bytes() - notes

    def end(self, notes: int, program: int) -> None:
        """Count what was taken since, but for the notes and what the program took meanwhile."""
        self._bytes += _private_bytes() - notes - self.before - program

    def tell(self, notes: int) -> None:
        """Tell how much it is, the notes included."""
        _write(self._folder, TAKEN, str(self._bytes + notes))


def _private_bytes() -> int:
    """Return the private pages of this process, as the profiler will count them once it is imported; 0: unknown."""
    rollup = Path("/proc/self/smaps_rollup")
    lines = rollup.read_text(encoding="utf-8").splitlines() if rollup.exists() else []
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Anonymous:")), 0)


def _write(folder: Path, ending: str, text: str) -> None:
    partial = folder / f"{os.getpid()}.partial"
    partial.write_text(text)
    partial.rename(partial.with_suffix(ending))


@cache  # a list of all objects is memory of the process while it is looked through
def _with_file(place: str) -> str:
    """Return a line with the file of its function, which cloudpickle leaves out of the code but not of the globals."""
    from nclone_env.memory.explain.keepers import objects

    file, _, line = place.rpartition(":")
    functions = objects() if file == _SENT else ()
    names = (
        thing.__globals__.get("__file__")
        for thing in functions
        if type(thing) is FunctionType and thing.__code__.co_filename == file and _has_line(thing.__code__, int(line))
    )
    return f"{next(filter(None, names), file)}:{line}"


def _has_line(code: CodeType, line: int) -> bool:
    parts = (part for part in code.co_consts if isinstance(part, CodeType))
    return any(number == line for *_, number in code.co_lines()) or any(_has_line(part, line) for part in parts)


if __name__ == SPAWNED:
    begin(Path(globals()["folder"]))
