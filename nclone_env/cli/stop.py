"""Signals that ask a command to stop: the first one politely, the second one at once."""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


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
    """Turn SIGINT and SIGTERM into a request to stop; a second signal ends the process as by default.

    Args:
        message: printed to stderr when the first signal arrives.
    """
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
