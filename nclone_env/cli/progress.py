"""Progress of commands: a live line on a terminal, periodic lines otherwise; and what asks them to stop and save.

These are signals, and the end of who reads the output. Neither a message nor a line of progress ends the work itself:
``train 2>&1 | tee log`` gets Ctrl-C together with ``tee``, and has to save when nothing reads what it says about it.
"""

import math
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from types import FrameType
from typing import Any, TextIO

from nclone_env._table import bar
from nclone_env.errors import plain

_NOTICED = 0.1  # seconds
_SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
_TWICE = 0.2  # seconds within which a second signal is the same: `timeout` sends one to the process and its group
_LASTING = ("held_out_success", "held_out_any")
"""Columns that not every row has; the latest values are shown."""


class StatusLine:
    """A line that tells how far a command is: a terminal overwrites it, other streams get one now and then, or none."""

    def __init__(self, stream: TextIO | None = None, interval: float = math.inf):
        self._stream, self._interval = stream, interval
        self._begin = "\r\x1b[K" if (stream or sys.stdout).isatty() else ""
        self._last = time.monotonic()

    def show(self, text: str) -> None:
        """Say how far the command is, if it can be said."""
        now = time.monotonic()
        if not self._begin and now - self._last < self._interval:
            return
        self._last = now
        with suppress(OSError):
            self._write(self._begin, text, "" if self._begin else "\n")

    def put(self, text: str) -> None:
        """Write lines that stay, in place of the one that is overwritten."""
        self._write(self._begin, text, "\n")

    def clear(self) -> None:
        """Remove the line that is overwritten."""
        with suppress(OSError):
            self._write(self._begin)

    def _write(self, begin: str, text: str = "", end: str = "") -> None:
        """Write lines, with escapes for control characters as of :func:`say`."""
        stream = self._stream or sys.stdout
        stream.write(begin + "\n".join(map(plain, text.split("\n"))) + end)
        stream.flush()


class LevelProgress(StatusLine):
    """Displays how far a command is that handles one level after another, by default on stdout."""

    def __init__(self, stream: TextIO | None = None, interval: float = 10.0):
        super().__init__(stream, interval)
        self._what, self._done = "", 0
        self._before, self._began = 0, 0.0

    def level(self, what: str, done: int, count: int) -> None:
        """Display what is done to levels, to how many of them so far, and to how many in all."""
        now = time.monotonic()
        if what != self._what or done <= self._done:
            self._before, self._began = done, now  # the time of those before is unknown; they may have been kept
        self._what, self._done = what, done
        seconds = now - self._began
        new = done - self._before
        left = f", {remaining(seconds / new * (count - done))}" if new and done < count else ""
        self.show(f"  {bar(done / count)} {done:,}/{count:,} {what}  {seconds:.0f} s{left}")

    def stage(self, name: str, seconds: float) -> None:
        """Display a stage of a preparation that is complete, if it was long enough to be noticed."""
        if seconds >= _NOTICED:
            self.put(f"  {name} ready after {seconds:.1f} s")


class TrainingProgress(StatusLine):
    """Displays rows of the learning curve; ``seconds`` are those from the first update to the last row."""

    def __init__(self, total_timesteps: int, stream: TextIO | None = None, interval: float = 10.0):
        super().__init__(stream, interval)
        self._total, self._started, self.seconds = total_timesteps, time.monotonic(), 0.0
        self._row: dict[str, float] = {}
        self._lasting: dict[str, float] = {}

    def begin(self) -> None:
        """Begin to count the time, unless there was a row; a preparation calls it whenever a part is done."""
        if not self._row:
            self._started = time.monotonic()

    def __call__(self, row: Mapping[str, float]) -> None:
        """Display a row."""
        self._lasting |= {name: row[name] for name in _LASTING if name in row}
        self._row = {**row, **self._lasting}
        self.seconds = time.monotonic() - self._started
        self.show(progress_line(self._row, self._total, self.seconds))

    def finish(self) -> None:
        """Print the last row on its own line."""
        if self._row:
            self.put(progress_line(self._row, self._total, self.seconds, is_last=True))


def remaining(seconds: float) -> str:
    """Return a remaining time as text: seconds below two minutes, minutes below two hours, then hours."""
    if seconds < 120:
        return f"{seconds:.0f} s left"
    return f"{seconds / 60:.0f} min left" if seconds < 7200 else f"{seconds / 3600:.1f} h left"


def progress_line(row: Mapping[str, float], total_timesteps: int, seconds: float, is_last: bool = False) -> str:
    """Format a row of the learning curve as one line, with the remaining time unless it is the last of a run."""
    done = min(1.0, row["timesteps"] / total_timesteps)
    played = (
        f"success {row['success_rate']:.1%} (worst {row['min_success_rate']:.1%})  return {row['mean_return']:.2f}  "
        if not math.isnan(row["success_rate"])
        else ""
    )
    if "held_out_success" in row:
        played += f"held out {row['held_out_success']:.1%} (any {row['held_out_any']:.1%})  "
    left = "" if is_last else f", {remaining(max(0, total_timesteps - row['timesteps']) / row['steps_per_second'])}"
    return (
        f"{bar(done)} {done:4.0%} {seconds:4.0f} s{left}  {row['steps_per_second']:,.0f} steps/s  "
        f"{row['episodes']:,.0f} episodes  {played}{row['kilobytes_per_environment']:.1f} KB/env"
    )


def say(*lines: object, stream: TextIO | None = None) -> None:
    """Write lines, by default to stdout, with escapes for control characters: a stranger may have named the files."""
    (stream or sys.stdout).write("".join(f"{plain(line)}\n" for line in lines))


@dataclass
class StopRequest:
    """Whether a signal has asked to stop, or nothing reads the output any more; call it to find out."""

    signal: int | None = None
    """Number of the signal, None so far."""
    failure: OSError | None = None
    """Of the first output that could not be written."""

    def __call__(self) -> bool:
        """Return whether to stop."""
        return self.signal is not None or self.failure is not None

    @property
    def exit_status(self) -> int:
        """Exit status of a program that ends because of the signal, as shells report it."""
        return 128 + (self.signal or 0)


class _Patient:
    """Standard output or error of work that ends only when it has saved: what cannot be written is dropped."""

    def __init__(self, stream: TextIO, request: StopRequest | None):
        self._stream, self._request = stream, request

    def write(self, text: str) -> int:
        """Write text; if that fails, request the stop of the work."""
        with self._noted():
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Flush the stream, as :meth:`write`."""
        with self._noted():
            self._stream.flush()

    @contextmanager
    def _noted(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if self._request is not None and self._request.failure is None:
                self._request.failure = error

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class EndedError(KeyboardInterrupt):
    """A signal ends a command as Ctrl-C does."""

    def __init__(self, number: int):
        super().__init__(f"ended by {signal.Signals(number).name}")
        self.number = number


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Let SIGTERM and SIGHUP end a command by an EndedError, so that nothing stays half written; a second one at once.

    As by default, if the program that runs the command handles or ignores them, or in another thread than the main one.
    """
    ended = False

    def end(number: int, frame: FrameType | None) -> None:
        nonlocal ended
        if ended:
            return
        ended = True
        time.sleep(_TWICE)
        if signal.getsignal(signal.SIGTERM) == end:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
        raise EndedError(number)

    with _handled(end, lambda handler: handler == signal.SIG_DFL):
        yield


@contextmanager
def _handled(handler: Callable[[int, FrameType | None], None], is_free: Callable[[Any], bool]) -> Iterator[bool]:
    """Handle the signals whose handler so far may be replaced, in the main thread, which alone gets them.

    Yields whether this is the main thread.
    """
    is_main = threading.current_thread() is threading.main_thread()
    handlers = {number: signal.getsignal(number) for number in _SIGNALS if is_main}
    before = {number: former for number, former in handlers.items() if is_free(former)}
    for number in before:
        signal.signal(number, handler)
    try:
        yield is_main
    finally:
        for number, former in before.items():
            signal.signal(number, former)


@contextmanager
def stop_on_signals(message: str) -> Iterator[StopRequest]:
    """Turn SIGINT, SIGTERM and SIGHUP into a request to stop, and say so; a second signal ends the process at once.

    An output that cannot be written is such a request, too: the context raises its error when the work is done.
    Another thread than the main one gets no signals, and may not touch what belongs to the process.
    """
    request = StopRequest()

    def note(number: int, frame: FrameType | None) -> None:
        if request.signal is not None:
            return
        request.signal = number
        with suppress(OSError, ValueError, RuntimeError):  # no reader, a closed stream, or one that is being written
            sys.stderr.write(f"\n{message}\n")
        time.sleep(_TWICE)
        for each in (signal.SIGINT, signal.SIGTERM):  # a terminal that closes says so repeatedly
            if signal.getsignal(each) == note:
                signal.signal(each, signal.SIG_DFL)

    with ExitStack() as stack:
        # One that is ignored, as in a background job of a shell or with `nohup`, stays so.
        if stack.enter_context(_handled(note, lambda handler: handler not in (signal.SIG_IGN, None))):
            stack.enter_context(redirect_stdout(_Patient(sys.stdout, request)))
            stack.enter_context(redirect_stderr(_Patient(sys.stderr, None)))
        yield request
    if request.failure is not None:
        raise request.failure
