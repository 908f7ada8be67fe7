"""Runs a function in a child process under strace, which kills the process or fails a system call at a given call.

The child is forked, so what was imported or computed before costs nothing; strace attaches to it before it begins.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

CREATING = ("openat", "mkdir", "mkdirat")
FILLING = ("write", "pwrite64", "writev", "sendfile", "copy_file_range", "ftruncate")
SYNCHRONISING = ("fsync", "fdatasync")
NAMING = ("rename", "renameat", "renameat2", "link", "linkat")
REMOVING = ("unlink", "unlinkat", "rmdir")
CALLS = (*CREATING, *FILLING, *SYNCHRONISING, *NAMING, *REMOVING)
_CALL = re.compile(r"(\w+)\((.*)")
_OPENED_TO_WRITE = re.compile(r"O_WRONLY|O_RDWR|O_CREAT|O_TRUNC")


class Point(NamedTuple):
    """A call that writes to the folder: the n-th of its name in its process."""

    call: str
    number: int
    arguments: str


@dataclass
class Outcome:
    """What came of a run."""

    status: int
    """Exit status of the child; negative: the number of the signal that ended it."""
    said: str
    """What it printed, or the error it ended with."""
    points: list[Point]
    """Its calls that write to the folder."""
    hit: bool = False
    """Whether the last call of a killed process was one of them."""
    failed: int = 0
    """How many of them were made to fail."""
    astray: int = 0
    """Number of other calls that were made to fail, of another thread: each counts its own."""


@lru_cache(maxsize=1)
def unavailable() -> str:
    """Return why nothing can be injected here, empty if it can."""
    if sys.platform != "linux" or shutil.which("strace") is None:
        return "strace is not installed"
    try:
        outcome = traced(lambda: None, Path("/nowhere"))
    except PermissionError as error:
        return str(error)
    return "" if outcome.status == 0 else f"strace ends with {outcome.status}: {outcome.said}"


def run(job: Callable[[], object]) -> Outcome:
    """Run a function in a child process, undisturbed."""
    child, _, output = _start(job)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return Outcome(status, _read(output), [])


def traced(job: Callable[[], object], folder: Path, inject: str = "") -> Outcome:
    """Run a function under strace.

    Args:
        job: the function; its result is discarded, an error it raises is printed.
        folder: calls that name it are counted as points.
        inject: what strace injects, such as ``write:signal=SIGKILL:when=3``.

    Raises:
        PermissionError: if strace cannot attach to a child.
    """
    child, go, output = _start(job, waits=True)
    with tempfile.NamedTemporaryFile("r", suffix=".strace") as log:
        command = ["strace", "-f", "-y", "-s", "0", "-o", log.name, "-e", f"trace={','.join(CALLS)}"]
        command += ["-e", f"inject={inject}"] if inject else []
        with subprocess.Popen([*command, "-p", str(child)], stderr=subprocess.PIPE, text=True) as strace:
            first = strace.stderr.readline()
            os.write(go, b"x")
            os.close(go)
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            strace.stderr.read()
        if "attached" not in first:
            raise PermissionError(f"strace cannot trace: {first.strip()}")
        lines = log.read().splitlines()
    return parsed(lines, str(folder), Outcome(status, _read(output), []))


def kill_at(job: Callable[[], object], folder: Path, point: Point) -> Outcome:
    """Run a function and kill the process that comes to a call, before the call is made."""
    return traced(job, folder, f"{point.call}:signal=SIGKILL:when={point.number}")


def fail_at(job: Callable[[], object], folder: Path, point: Point, error: str) -> Outcome:
    """Run a function and make a single call fail, such as with ``ENOSPC``; a second try would succeed."""
    return traced(job, folder, f"{point.call}:error={error}:when={point.number}")


def _start(job: Callable[[], object], waits: bool = False) -> tuple[int, int, int]:
    """Fork a child; return its number, a descriptor that it waits for, and one of the file it prints to."""
    wait, go = os.pipe()
    output = os.memfd_create("output")
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.close(go)
        for number in (1, 2):
            os.dup2(output, number)
        sys.stdout, sys.stderr = (open(number, "w", closefd=False, buffering=1) for number in (1, 2))  # noqa: SIM115
        status = 1
        try:
            if waits:
                os.read(wait, 1)
            status = job() or 0
        except BaseException as error:  # noqa: BLE001 - whatever it is, the parent reads it
            sys.stdout.write(f"{type(error).__name__}: {error}\n")
        finally:
            os._exit(status)
    os.close(wait)
    if not waits:
        os.close(go)
    return child, go, output


def _read(output: int) -> str:
    with os.fdopen(output, "r", errors="replace") as file:
        file.seek(0)
        return file.read()


def parsed(lines: list[str], folder: str, outcome: Outcome) -> Outcome:
    """Add to an outcome what a log tells of the calls that write to a folder."""
    counts = Counter[tuple[str, str]]()
    last: dict[str, bool] = {}
    stopped: dict[str, bool] = {}
    for line in lines:
        process, _, text = line.partition(" ")
        match = _CALL.match(text.lstrip())
        if match:
            call, arguments = match.groups()
            counts[process, call] += 1
            last[process] = folder in arguments and (call != "openat" or bool(_OPENED_TO_WRITE.search(arguments)))
            if last[process]:
                outcome.points.append(Point(call, counts[process, call], arguments))
        writes = last.get(process, False)  # also if this line is the rest of a call that another one interrupted
        outcome.hit |= "+++ killed by SIGKILL" in text and stopped.get(process, False)
        stopped[process] = writes and text.rstrip().endswith("= ?")  # a call that never returned
        outcome.failed += "(INJECTED)" in text and writes
        outcome.astray += "(INJECTED)" in text and not writes
    return outcome
