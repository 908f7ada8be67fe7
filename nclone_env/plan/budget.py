"""The budget of a search: seconds, frames, and what else may end it."""

from collections.abc import Callable


class Budget:
    """What is left of a number of seconds and of frames.

    Attributes:
        frames: frames to simulate in all.
        frames_to_first: the same for a search that has found no solution within these.
        interrupted: set to end the search.
    """

    def __init__(
        self,
        seconds: float,
        frames: float,
        frames_to_first: float,
        stop: Callable[[], bool] | None,
        clock: Callable[[], float],
    ):
        self._clock, self._began = clock, clock()
        self._seconds, self._stop = seconds, stop
        self.frames, self.frames_to_first = frames, frames_to_first
        self.interrupted = False

    @property
    def elapsed(self) -> float:
        """Seconds since the beginning."""
        return self._clock() - self._began

    def is_over(self) -> bool:
        """Return whether to end the search, apart from its number of frames."""
        return self.interrupted or self.elapsed >= self._seconds or (self._stop is not None and self._stop())
