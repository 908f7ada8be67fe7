"""The life cycle of an environment: which calls are allowed before the first reset, after an end, after ``close``."""

from __future__ import annotations

from enum import Enum, auto

from nclone_env.errors import ClosedError, ResetNeededError


class Phase(Enum):
    """Phases of an environment.

    A vector environment is ``RUNNING`` from its first reset on; its episodes end one by one.
    """

    NEW = auto()
    RUNNING = auto()
    OVER = auto()
    CLOSED = auto()


NOT_CLOSED = (Phase.NEW, Phase.RUNNING, Phase.OVER)
AFTER_RESET = (Phase.RUNNING, Phase.OVER)
IN_EPISODE = (Phase.RUNNING,)

_REASONS = {Phase.NEW: "before the first reset", Phase.OVER: "after the end of the episode"}


class Lifecycle:
    """The phase of an environment, and the check that a call is allowed in it."""

    __slots__ = ("phase",)

    def __init__(self) -> None:
        self.phase = Phase.NEW

    def check(self, call: str, allowed: tuple[Phase, ...]) -> None:
        """Reject a call in other phases than the allowed ones.

        Raises:
            ResetNeededError: before the first reset or after the end of the episode.
            ClosedError: after ``close``.
        """
        if self.phase in allowed:
            return
        if self.phase is Phase.CLOSED:
            raise ClosedError(f"{call}() was called after close(); make a new environment")
        raise ResetNeededError(f"{call}() was called {_REASONS[self.phase]}; call reset() to begin an episode")
