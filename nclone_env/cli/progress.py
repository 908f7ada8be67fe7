"""The progress of a training run: one line that is rewritten, or a line now and then where nobody watches."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Mapping
from typing import TextIO

_BAR = 20


class TrainingProgress:
    """Shows rows of the learning curve as they come.

    Args:
        total_steps: steps at which the run ends at the latest.
        stream: where to write; a terminal gets a bar, anything else a plain line every ``interval`` seconds.
        interval: seconds.
    """

    def __init__(self, total_steps: int, stream: TextIO | None = None, interval: float = 10.0):
        self._total, self._interval = total_steps, interval
        self._stream = stream or sys.stdout
        self._live = self._stream.isatty()
        self._started = self._last = time.monotonic()
        self._shown = ""

    def __call__(self, row: Mapping[str, float]) -> None:
        """Show a row."""
        self._shown = progress_line(row, self._total, time.monotonic() - self._started)
        if self._live:
            print(f"\r\x1b[K{self._shown}", end="", file=self._stream, flush=True)
        elif time.monotonic() - self._last >= self._interval:
            self._last = time.monotonic()
            print(self._shown, file=self._stream, flush=True)

    def finish(self) -> None:
        """Leave the last row on a line of its own."""
        if self._shown:
            print(f"\r\x1b[K{self._shown}" if self._live else self._shown, file=self._stream, flush=True)


def progress_line(row: Mapping[str, float], total_steps: int, seconds: float) -> str:
    """Return one line of text for a row of the learning curve."""
    done = min(1.0, row["steps"] / total_steps)
    bar = "#" * round(done * _BAR)
    played = (
        f"success {row['success_rate']:.1%} (worst {row['lowest_success_rate']:.1%})  return {row['mean_return']:.2f}  "
        if not math.isnan(row["success_rate"])
        else ""
    )
    return (
        f"[{bar:<{_BAR}}] {done:4.0%} {seconds:4.0f} s  {row['steps_per_second']:,.0f} steps/s  "
        f"{row['episodes']:,.0f} episodes  {played}{row['environment_kilobytes']:.1f} KB/env"
    )
