"""Progress of commands: a live line on a terminal, periodic lines otherwise; and signals that ask them to stop."""

import math
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import TextIO

from nclone_env._table import bar

_NOTICED = 0.1  # seconds
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_LASTING = ("held_out_success", "held_out_any")
"""Columns that not every row has; the latest values are shown."""


class StatusLine:
    """A line that tells how far a command is: a terminal overwrites it, other streams get one now and then, or none."""

    def __init__(self, stream: TextIO, interval: float = math.inf):
        self._stream, self._interval = stream, interval
        self._begin = "\r\x1b[K" if stream.isatty() else ""
        self._last = time.monotonic()

    def show(self, text: str) -> None:
        """Say how far the command is."""
        now = time.monotonic()
        if self._begin:
            self._write(self._begin + text)
        elif now - self._last >= self._interval:
            self._last = now
            self._write(f"{text}\n")

    def put(self, text: str) -> None:
        """Write a line that stays, in place of the one that is overwritten."""
        self._write(f"{self._begin}{text}\n")

    def clear(self) -> None:
        """Remove the line that is overwritten."""
        self._write(self._begin)

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


class LevelProgress(StatusLine):
    """Displays how far a command is that handles one level after another, by default on stdout."""

    def __init__(self, stream: TextIO | None = None, interval: float = 10.0):
        super().__init__(stream or sys.stdout, interval)
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
        super().__init__(stream or sys.stdout, interval)
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


@dataclass
class StopRequest:
    """Whether a signal has asked to stop; call it to find out."""

    signal: int | None = None
    """Number of the signal, None so far."""

    def __call__(self) -> bool:
        """Return whether to stop."""
        return self.signal is not None

    @property
    def exit_status(self) -> int:
        """Exit status of a program that ends because of the signal, as shells report it."""
        return 128 + (self.signal or 0)


@contextmanager
def stop_on_signals(message: str) -> Iterator[StopRequest]:
    """Turn SIGINT and SIGTERM into a request to stop, and say so; a second signal ends the process as by default."""
    request = StopRequest()
    before = {number: signal.getsignal(number) for number in _SIGNALS}

    def note(number: int, frame: FrameType | None) -> None:
        request.signal = number
        for each in _SIGNALS:
            signal.signal(each, signal.SIG_DFL)
        sys.stderr.write(f"\n{message}\n")

    for number, handler in before.items():
        if handler is not signal.SIG_IGN:  # as in a background job of a shell
            signal.signal(number, note)
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
