"""The planner beside a player: it searches in a thread while the window stays alive."""

import threading

from nclone_env.errors import NcloneError
from nclone_env.level import Level
from nclone_env.plan import Solution, solve
from nclone_env.sim import Session

SECONDS = 3.0
"""Budget of a search, compilation not included."""


class Search:
    """A search for inputs that win from a frame of a run.

    Attributes:
        inputs: those up to that frame.
        found: the best inputs from the frame on so far.
        error: why the search failed; empty if it did not.
    """

    def __init__(self, level: Level, inputs: bytes, seconds: float = SECONDS):
        self.inputs, self.error = inputs, ""
        self.found: bytes | None = None
        self._level, self._seconds = level, seconds
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="nclone-assistant", daemon=True)
        self._thread.start()

    @property
    def running(self) -> bool:
        """Whether it goes on."""
        return self._thread.is_alive()

    def stop(self) -> None:
        """Ask the search to end, and wait for it."""
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        session = Session(self._level)
        session.play(self.inputs)

        def take(solution: Solution) -> None:
            self.found = bytes(solution.inputs)

        try:
            solve(self._level, seconds=self._seconds, start=(session, 0), on_solution=take, stop=self._stopped.is_set)
        except NcloneError as error:
            self.error = str(error)
