"""The life cycle of an environment: which calls are allowed before the first reset, after an end, after ``close``."""

import threading
from enum import Enum, auto
from typing import Any

from nclone_env.errors import ClosedError, ResetNeededError, StepOrderError


class Phase(Enum):
    """Phases of an environment.

    A vector environment is ``RUNNING`` from its first reset on; its episodes end one by one. ``BROKEN`` is what a call
    leaves that did not come to its end: some environments may have been stepped, others not.
    """

    NEW = auto()
    RUNNING = auto()
    OVER = auto()
    BROKEN = auto()
    CLOSED = auto()


NOT_CLOSED = (Phase.NEW, Phase.RUNNING, Phase.OVER, Phase.BROKEN)
AFTER_RESET = (Phase.RUNNING, Phase.OVER)
IN_EPISODE = (Phase.RUNNING,)

# In every step: attributes of enumerations take a while.
RUNNING, OVER, BROKEN = Phase.RUNNING, Phase.OVER, Phase.BROKEN

_REASONS = {
    Phase.NEW: "before the first reset",
    Phase.OVER: "after the end of the episode",
    Phase.BROKEN: "after a call that an error or Ctrl-C ended before it was done",
}


class Lifecycle:
    """The phase of an environment, and the check that a call is allowed in it.

    Calls that change the environment are made inside of ``with lifecycle``: it is ``RUNNING`` afterwards, ``BROKEN`` if
    the call raised, and calls of other threads are rejected meanwhile.

    Attributes:
        phase: the phase.
        changing: locked inside of such a call.
    """

    __slots__ = ("changing", "phase")

    def __init__(self) -> None:
        self.phase = Phase.NEW
        self.changing = threading.Lock()

    def check(self, call: str, allowed: tuple[Phase, ...]) -> None:
        """Reject a call in other phases than the allowed ones, or while another thread is inside of one.

        Raises:
            ResetNeededError: before the first reset, after the end of the episode, after a call that was not completed.
            StepOrderError: while another thread is inside of a call.
            ClosedError: after ``close``.
        """
        if self.changing.locked():
            raise StepOrderError(
                f"{call}() was called while another thread is inside of a call of this environment, or was when this "
                f"process was forked; use one environment in each thread and process"
            )
        if self.phase in allowed:
            return
        if self.phase is Phase.CLOSED:
            raise ClosedError(f"{call}() was called after close(); make a new environment")
        raise ResetNeededError(f"{call}() was called {_REASONS[self.phase]}; call reset() to begin an episode")

    def __enter__(self) -> None:
        """Begin a change."""
        if not self.changing.acquire(False):
            raise StepOrderError("two threads call this environment at the same time; use one environment in each")
        self.phase = BROKEN

    def __exit__(self, kind: Any, *_: object) -> None:
        """End a change."""
        if kind is None:
            self.phase = RUNNING
        self.changing.release()
