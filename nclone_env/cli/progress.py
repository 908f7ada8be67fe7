"""Progress display of a training run: a live line on a terminal, periodic lines otherwise."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Mapping
from typing import TextIO

_BAR = 20
_HELD_OUT = ("held_out_success", "held_out_any")


class TrainingProgress:
    """Displays rows of the learning curve.

    Args:
        total_timesteps: environment steps of the whole run.
        stream: output stream, stdout by default. A terminal shows a progress bar; any other stream gets a line every
            ``interval`` seconds.
        interval: seconds between lines.
    """

    def __init__(self, total_timesteps: int, stream: TextIO | None = None, interval: float = 10.0):
        self._total, self._interval = total_timesteps, interval
        self._stream = stream or sys.stdout
        self._live = self._stream.isatty()
        self._started = self._last = time.monotonic()
        self._row: dict[str, float] = {}
        self._seconds = 0.0
        self._held_out: dict[str, float] = {}

    def __call__(self, row: Mapping[str, float]) -> None:
        """Display a row."""
        self._held_out |= {name: row[name] for name in _HELD_OUT if name in row}  # not every row has them
        self._row = {**row, **self._held_out}
        self._seconds = time.monotonic() - self._started
        if self._live:
            self._print(f"\r\x1b[K{self._line(is_last=False)}", end="")
        elif time.monotonic() - self._last >= self._interval:
            self._last = time.monotonic()
            self._print(self._line(is_last=False))

    def finish(self) -> None:
        """Print the last row on its own line."""
        if self._row:
            self._print(f"\r\x1b[K{self._line(is_last=True)}" if self._live else self._line(is_last=True))

    def _line(self, is_last: bool) -> str:
        return progress_line(self._row, self._total, self._seconds, is_last)

    def _print(self, text: str, end: str = "\n") -> None:
        print(text, end=end, file=self._stream, flush=True)


def remaining(seconds: float) -> str:
    """Return a remaining time as text: seconds below two minutes, minutes below two hours, then hours."""
    if seconds < 120:
        return f"{seconds:.0f} s left"
    return f"{seconds / 60:.0f} min left" if seconds < 7200 else f"{seconds / 3600:.1f} h left"


def progress_line(row: Mapping[str, float], total_timesteps: int, seconds: float, is_last: bool = False) -> str:
    """Format a row of the learning curve as one line, with the remaining time unless it is the last of a run."""
    done = min(1.0, row["timesteps"] / total_timesteps)
    bar = "#" * round(done * _BAR)
    played = (
        f"success {row['success_rate']:.1%} (worst {row['min_success_rate']:.1%})  return {row['mean_return']:.2f}  "
        if not math.isnan(row["success_rate"])
        else ""
    )
    if "held_out_success" in row:
        played += f"held out {row['held_out_success']:.1%} (any {row['held_out_any']:.1%})  "
    left = "" if is_last else f", {remaining(max(0, total_timesteps - row['timesteps']) / row['steps_per_second'])}"
    return (
        f"[{bar:<{_BAR}}] {done:4.0%} {seconds:4.0f} s{left}  {row['steps_per_second']:,.0f} steps/s  "
        f"{row['episodes']:,.0f} episodes  {played}{row['kilobytes_per_environment']:.1f} KB/env"
    )
