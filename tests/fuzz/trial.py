"""One input, tried: the outcome, how long it took, and how far memory grew meanwhile."""

import signal
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from .target import Target

SECONDS = 2.0
"""Process time that an input may take; on a busy machine it is hardly longer."""
GROWTH = 100_000_000
"""Bytes by which the memory of the process may grow while an input is read, at the highest."""
_SLOW, _LARGE = f"more than {SECONDS:g} s", f"more than {GROWTH // 1_000_000} MB"
MESSAGE = 1000
"""Characters of the longest sensible message."""
LIMIT = 60.0
"""Process time after which an input is interrupted, if it does not stay in compiled code."""


@dataclass(frozen=True)
class Trial:
    """The outcome of one input.

    Attributes:
        loaded: whether it loaded; otherwise it was refused, or is a finding.
        fault: what is wrong with that, empty if nothing is.
        detail: the traceback of a fault.
        seconds: process time.
        growth: bytes from the memory before to the highest memory meanwhile.
    """

    loaded: bool
    fault: str = ""
    detail: str = ""
    seconds: float = 0.0
    growth: int = 0


class Interrupted(BaseException):
    """The input took more process time than ``LIMIT``."""


def attempt(target: Target, data: Any) -> Trial:
    """Let a target read an input; once more if it was slow or large, as kernels are compiled on their first use."""
    trial = _measured(target, data)
    return _measured(target, data) if trial.fault in (_SLOW, _LARGE) else trial


def _measured(target: Target, data: Any) -> Trial:
    before = memory("VmRSS")
    reset_peak()
    started = time.process_time()
    with _interrupted_after(LIMIT):
        loaded, fault, detail = _read(target, data)
    seconds, growth = time.process_time() - started, max(memory("VmHWM") - before, 0)
    if not fault and seconds > SECONDS:
        fault = _SLOW
    if not fault and growth > GROWTH:
        fault = _LARGE
    return Trial(loaded, fault, detail, seconds, growth)


def _read(target: Target, data: Any) -> tuple[bool, str, str]:
    """Return whether an input loaded, what is wrong with the outcome, and the traceback of that."""
    try:
        target.read(data)
    except target.errors as error:
        message = str(error)
        if target.source in message and 0 < len(message) <= MESSAGE:
            return False, "", ""
        cause = f"of more than {MESSAGE} characters" if target.source in message else f"without {target.source!r}"
        return False, f"{type(error).__name__} with a message {cause}", message[: 2 * MESSAGE]
    except Interrupted:
        return False, f"interrupted after {LIMIT:g} s", traceback.format_exc()
    except BaseException as error:  # noqa: BLE001 - every other one is a finding
        return False, f"{type(error).__name__} {_place(error)}", traceback.format_exc(limit=-12)[-5000:]
    return True, "", ""


def _place(error: BaseException) -> str:
    """Return the last place in the package or in its tests where an error came from."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "nclone_env" in frame.filename] or list(frames)
    return f"at {Path(own[-1].filename).name}:{own[-1].lineno}"


@contextmanager
def _interrupted_after(seconds: float) -> Iterator[None]:
    def interrupt(number: int, frame: FrameType | None) -> None:
        raise Interrupted

    before = signal.signal(signal.SIGPROF, interrupt)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)


def memory(name: str) -> int:
    """Return a size of this process, bytes: ``VmSize``, ``VmRSS``, or ``VmHWM``, the highest of it since the reset."""
    text = Path("/proc/self/status").read_text()
    return 1024 * int(text.split(f"{name}:")[1].split()[0])


def reset_peak() -> None:
    """Let ``VmHWM`` begin at the present memory."""
    Path("/proc/self/clear_refs").write_text("5")
