"""Profiling of a user's own code: ``with nclone_env.memory.profile(...)``."""

from __future__ import annotations

import gc
import math
import threading
import time
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType

from nclone_env.memory.growth import FREE_LISTS
from nclone_env.memory.measurements import Measurements, ProfileSettings, Stage
from nclone_env.memory.process import machine, restart_peak, stage
from nclone_env.memory.report import write_reports
from nclone_env.memory.sections import summary, text_of
from nclone_env.memory.snapshots import SnapshotLog
from nclone_env.memory.stats import Stats, compute
from nclone_env.memory.traced import TracedLog, tracing
from nclone_env.memory_tree import MemoryNode, MemoryOwner

_CAPACITY = 64
"""Snapshots kept; when there are more, every second one is dropped and the interval doubles."""
_FIRST_INTERVAL = 0.05  # seconds
_NOTHING = MemoryNode("nothing reported")


class Watch:
    """Snapshots of the memory of this process while a block of code runs; see :func:`profile`."""

    def __init__(self, name: str, owner: MemoryOwner | None, num_envs: int, output_dir: Path | None, traced: bool):
        self._name, self._owner, self._num_envs, self._folder = name, owner, num_envs, output_dir
        self._log = SnapshotLog(_CAPACITY)
        self._traced = TracedLog(_CAPACITY)
        self._tracing = tracing() if traced else None
        self._steps = 0
        self._every = 1  # step of the code, or of the clock, has a snapshot
        self._stages: list[Stage] = []
        self._clock = threading.Thread(target=self._watch_clock, daemon=True)
        self._lock, self._ended = threading.Lock(), threading.Event()
        self._began = 0.0
        self._frozen = False
        self.stats: Stats | None = None
        """The statistics, once the block has ended."""

    def __enter__(self) -> Watch:
        """Begin to take snapshots."""
        restart_peak()
        gc.collect()
        if not gc.get_freeze_count():
            gc.freeze()  # what exists already is not searched again at every snapshot
            self._frozen = True
        if self._tracing is not None:
            self._tracing.__enter__()
        self._stages.append(stage("before", "at the beginning of the block"))
        self._began = time.perf_counter()
        self._clock.start()
        return self

    def step(self) -> None:
        """Count a step: call it where the code repeats, so that growth is measured per step rather than per time."""
        with self._lock:
            if not self._steps:
                self._restart()
            self._steps += 1
            if self._steps % self._every == 0:
                gc.collect()
                self._take(self._steps)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Take the last snapshot, compute the statistics and write the reports, after an error too."""
        self._ended.set()
        self._clock.join()
        gc.collect()
        self._take(self._steps or self._milliseconds())
        self._stages.append(stage("after", "at the end of the block"))
        if self._tracing is not None:
            self._tracing.__exit__(None, None, None)
        if self._frozen:
            gc.unfreeze()
        self.stats = compute(self._measurements())
        if self._folder is not None:
            write_reports(self.stats, self._folder, as_json=True, as_html=find_spec("jinja2") is not None)

    def __str__(self) -> str:
        """Return the answer in a few lines."""
        return "still running" if self.stats is None else text_of([summary(self.stats)])

    def _watch_clock(self) -> None:
        """Take snapshots by time until a step is counted or the block ends."""
        while not self._ended.wait(_FIRST_INTERVAL * self._every):
            with self._lock:
                if self._steps:
                    return
                self._take(self._milliseconds())

    def _milliseconds(self) -> float:
        return (time.perf_counter() - self._began) * 1000

    def _restart(self) -> None:
        """Forget the snapshots by time."""
        self._log.clear()
        self._traced.clear()
        self._every = 1

    def _take(self, place: float) -> None:
        """Take a snapshot at a step, or at a time in milliseconds."""
        if len(self._log) == _CAPACITY:
            self._log.thin()
            self._traced.thin()
            self._every *= 2
        self._log.take(place, self._owner.memory() if self._owner is not None else _NOTHING)
        if self._tracing is not None:
            count = len(self._log)
            if count & (count - 1) == 0 or self._ended.is_set():  # lines take long: at 1, 2, 4, 8 ... and at the end
                self._traced.take_lines()
            self._traced.take(place)

    def _measurements(self) -> Measurements:
        snapshots = self._log.snapshots()
        last = snapshots[-1].step
        return Measurements(
            machine=machine(),
            settings=ProfileSettings(self._num_envs, steps=max(1, math.ceil(last))),
            name=self._name,
            unit="step" if self._steps else "millisecond",
            facts=(),
            env_steps=0,
            snapshots=snapshots,
            stages=tuple(self._stages),
            traced=self._traced.records(),
            traced_floor=FREE_LISTS,
            first_lines=self._traced.first,
            last_lines=self._traced.last,
        )


def profile(
    name: str = "script",
    *,
    owner: MemoryOwner | None = None,
    num_envs: int = 0,
    output_dir: str | Path | None = None,
    trace: bool = True,
) -> Watch:
    """Return a context manager that profiles the memory of the block it encloses.

    Snapshots are taken at every call of ``step()`` of the returned object, ever fewer in long runs, or by time if the
    block makes none. The verdict is that of ``nclone-env profile``.

    Args:
        name: what is profiled, for the report.
        owner: an environment, or anything else with ``memory()``, whose arrays are told apart from the rest.
        num_envs: number of environments, if the block has any.
        output_dir: folder for the reports, with a page of HTML if Jinja2 is installed; None: none are written,
            ``str()`` of the object is the answer.
        trace: find the source lines by tracemalloc, which slows Python code down by a factor of up to three.

    Returns:
        An object with ``step()``, and with ``stats`` once the block has ended.

    Example:
        >>> with profile(owner=envs) as watch:
        ...     for _ in range(1000):
        ...         envs.step(envs.action_space.sample())
        ...         watch.step()
        >>> print(watch)
    """
    return Watch(name, owner, num_envs, None if output_dir is None else Path(output_dir), trace)
