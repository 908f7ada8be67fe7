"""Memory traced by tracemalloc, by the source line that allocated it."""

import os
import sys
import sysconfig
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from nclone_env.memory.measurements import Place
from nclone_env.memory.process import heap_bytes

_FRAMES = 16  # of the call stack of each traced block: enough to pass through wrappers to the caller
_PROBES = 4_000  # objects that a measurement of tracemalloc's tables makes
_PACKAGE = str(Path(__file__).parents[1]) + os.sep
FOLDER = str(Path(__file__).parent) + os.sep
_CALLING = ("passes.py", "flat.py")  # modules of the profiler that call what is profiled
_LIBRARIES = tuple({sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib")})
_INSTALLED = tuple(f"{os.sep}{name}{os.sep}" for name in ("site-packages", "dist-packages"))
"""Folders of libraries, whichever Python they belong to."""

Frame = tuple[str, int]


@contextmanager
def tracing() -> Iterator[None]:
    """Run tracemalloc inside the block; leave it running if it was running before."""
    already_tracing = tracemalloc.is_tracing()
    if not already_tracing:
        start_tracing()
    try:
        yield
    finally:
        if not already_tracing:
            tracemalloc.stop()


def start_tracing() -> None:
    """Start tracemalloc with call stacks deep enough for the report."""
    tracemalloc.start(_FRAMES)


def table_bytes() -> int:
    """Return the bytes of the allocator that tracemalloc's own tables take."""
    return int(tracemalloc.get_tracemalloc_memory() * _table_factor()) if tracemalloc.is_tracing() else 0


@cache
def _table_factor() -> float:
    """Measure how much more of the allocator's memory the tables take than tracemalloc says: headers of blocks."""
    before = heap_bytes()
    if before is None:
        return 1.0
    reported, kept = tracemalloc.get_tracemalloc_memory(), [None] * _PROBES
    for number in range(_PROBES):
        kept[number] = object()  # type: ignore[call-overload]
    after = heap_bytes()
    assert after is not None
    return max(1.0, (after.in_use - before.in_use) / (tracemalloc.get_tracemalloc_memory() - reported))


@cache
def is_own(file: str) -> bool:
    """Return whether a file is the user's: no library, wherever it is installed, nor part of this package."""
    if file.startswith((*_LIBRARIES, _PACKAGE, "<frozen")) or file == "<string>":
        return False
    above = [folder for folder in sys.path if file.startswith(folder + os.sep)]
    is_recorded = any(file[len(folder) + 1 :].split(os.sep)[0] in _recorded(folder) for folder in above)
    return not (is_recorded or any(part in file for part in _INSTALLED))


@cache
def _recorded(folder: str) -> frozenset[str]:
    """Return the files and folders that installed libraries list in a folder, as ``pip --target`` makes one."""
    names: set[str] = set()
    for record in Path(folder).glob("*.dist-info/RECORD"):
        with suppress(OSError, UnicodeDecodeError):
            names.update(line.split("/")[0].split(",")[0] for line in record.read_text().splitlines())
    return frozenset(names)


def place_of(stack: tuple[Frame, ...]) -> Place | None:
    """Return the place of a call stack, innermost frame first; None for memory of the profiler."""
    for number, (file, line) in enumerate(stack):
        if file.startswith(FOLDER) and not (number and file.endswith(_CALLING)):
            return None
        if is_own(file):
            return Place(*stack[0], f"{file}:{line}")
    return Place(*stack[0], "")


def raw_traces() -> list[tuple[int, int, tuple[Frame, ...], int]]:
    """Return (domain, bytes, call stack, its full length) of each traced block; equal stacks are one object."""
    import _tracemalloc  # tracemalloc.take_snapshot() makes several objects of each trace, which takes far longer

    found: Any = _tracemalloc._get_traces()
    return list(found)


def live_lines() -> dict[Place, list[Any]]:
    """Return [bytes, blocks, call stack] of every line with live traced memory, without that of the profiler."""
    stacks: dict[int, list[Any]] = {}
    traces = raw_traces()
    for _, size, stack, _ in traces:
        entry = stacks.get(id(stack))
        if entry is None:
            stacks[id(stack)] = [size, 1, stack]
        else:
            entry[0] += size
            entry[1] += 1
    found: dict[Place, list[Any]] = {}
    for size, blocks, stack in stacks.values():
        place = place_of(stack)
        if place is None:
            continue
        entry = found.get(place)
        if entry is None:
            found[place] = [size, blocks, stack, size]
        else:
            entry[0] += size
            entry[1] += blocks
            if size > entry[3]:
                entry[2:] = stack, size
    return found
