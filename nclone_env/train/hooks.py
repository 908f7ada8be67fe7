"""What a training run tells while it goes on, and how it is asked to stop."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from nclone_env.errors import StoppedError

OnLevel = Callable[[str, int, int], object]
"""Called after each level, or each few: with what is done to levels, to how many so far, and to how many in all."""


def _ignore(*event: Any) -> None:
    """Do nothing."""


@dataclass(frozen=True)
class Hooks:
    """Functions that a run calls; by default they do nothing."""

    on_start: Callable[[Path], object] = _ignore
    """Called with the folder of the run before anything is computed."""
    on_stage: Callable[[str, float], object] = _ignore
    """Called with the name and the seconds of each stage of the preparation."""
    on_level: OnLevel = _ignore
    """Called as levels are planned in the preparation, in each rank."""
    on_warm_start: Callable[[Any], object] = _ignore
    """Called with the ``WarmStart`` after demonstrations were cloned."""
    on_update: Callable[[dict[str, float]], object] = _ignore
    """Called with the row of the learning curve after each update."""
    stop: Callable[[], bool] = lambda: False
    """Asked before each update and after each call of ``on_level``; once it is True in any rank the run ends."""
    on_survival: Callable[[Any], object] = _ignore
    """Called once, after a checkpoint, if the run only learns to stay alive, with an object whose text says so; it has
    the ``wins`` of recent ``episodes``, ``frames`` of an episode and ``entropy`` in nats, both at first and now."""

    def level(self, what: str, done: int, count: int) -> None:
        """Call ``on_level``.

        Raises:
            StoppedError: if ``stop`` returns True.
        """
        self.on_level(what, done, count)
        if self.stop():
            raise StoppedError(f"stop: asked to end with {done:,}/{count:,} {what}")

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Call ``on_stage`` after a stage of the preparation."""
        started = perf_counter()
        yield
        self.on_stage(name, perf_counter() - started)


SILENT = Hooks()
"""Tell nothing, and do not stop."""
