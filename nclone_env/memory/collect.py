"""Collecting: three passes over an environment, so that no way of measuring disturbs another.

1. Plain: stages and resident memory, and the speed. Nothing is traced.
2. Traced: tracemalloc from before the environments are made. Only totals and the lines of two snapshots are
   kept, never a snapshot itself.
3. Profiled: cProfile around the steps.

The passes play the same seeded actions, so equal steps of two passes are the same moment of the same game.
"""

from __future__ import annotations

import cProfile
import gc
import glob
import os
import pstats
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.random import default_rng  # numpy loads it lazily: 5 MB that would look like the first steps'

from nclone_env.actions import NUM_ACTIONS
from nclone_env.errors import ConfigError
from nclone_env.memory.process import bare_interpreter, machine, resident_bytes
from nclone_env.memory.recording import (
    COMPILED_CODE,
    ENVIRONMENTS,
    LIBRARIES,
    FunctionTime,
    ProfileSettings,
    Recording,
    Resident,
    SourceLine,
    Stage,
    Traced,
)
from nclone_env.memory_tree import MemoryNode, MemoryOwner

_ACTION_BLOCK = 256  # steps drawn at once, so that drawing hardly shows in the times
_TOUCH_STEPS = 10  # steps after which every buffer of an environment has been written
# tracemalloc's own objects, and everything this package allocates to measure.
_OWN_MEMORY = (
    tracemalloc.Filter(False, tracemalloc.__file__),
    tracemalloc.Filter(False, glob.escape(str(Path(__file__).parent)) + os.sep + "*"),
)

_Line = tuple[str, int, int, int]  # file, line, live bytes, blocks


class ProfiledEnvironment(MemoryOwner, Protocol):
    """What the profiler needs of a vector environment."""

    num_envs: int

    def reset(self, *, seed: int | None = None) -> Any:
        """Start every environment."""

    def step(self, actions: Any) -> Any:
        """Advance every environment; ``actions`` is (num_envs,) int64 in 0..5."""

    def close(self) -> Any:
        """Release what is owned."""


MakeEnvironment = Callable[[int], ProfiledEnvironment]


def collect(
    make: MakeEnvironment, settings: ProfileSettings, progress: Callable[[str], None] | None = None
) -> Recording:
    """Run all three passes and return what they measured.

    Args:
        make: returns a new vector environment of the given number of environments, which restarts finished
            environments by itself.
        settings: how many environments, steps and snapshots.
        progress: called with one line of text before each pass.

    Raises:
        ConfigError: if a number of the settings is out of range.
    """
    check(settings)
    tell = progress or (lambda text: None)
    tell("pass 1 of 3: stages, resident memory and speed")
    stages, memory, resident, plain_seconds = plain_pass(make, settings)
    tell("pass 2 of 3: traced memory")
    traced, first_lines, last_lines = traced_pass(make, settings)
    tell("pass 3 of 3: time by function")
    functions, profiled_seconds = profiled_pass(make, settings)
    return Recording(
        machine=machine(),
        settings=settings,
        stages=stages,
        memory=memory,
        resident=resident,
        traced=traced,
        first_lines=first_lines,
        last_lines=last_lines,
        functions=functions,
        plain_seconds=plain_seconds,
        profiled_seconds=profiled_seconds,
    )


def check(settings: ProfileSettings) -> None:
    """Raise ConfigError if a number of the settings is out of range."""
    for name in ("num_envs", "steps", "interval"):
        value = getattr(settings, name)
        if value < 1:
            raise ConfigError(f"{name}: expected a whole number of at least 1, got {value!r}")
    if settings.interval > settings.steps:
        raise ConfigError(
            f"interval: expected at most the number of steps, {settings.steps}, got {settings.interval}; "
            "take snapshots more often or more steps"
        )


def plain_pass(
    make: MakeEnvironment, settings: ProfileSettings
) -> tuple[tuple[Stage, ...], MemoryNode, tuple[Resident, ...], float]:
    """Measure stages, resident memory and speed; nothing is traced or profiled.

    Returns:
        The stages, what the environments report, resident memory at each snapshot, and seconds of all steps.
    """
    stages = [bare_interpreter(), _stage(LIBRARIES, "PSS before the first environment was made")]
    with closing(make(1)) as env:
        play_briefly(env, settings.seed)
    stages.append(_stage(COMPILED_CODE, "PSS after one environment was made, stepped and closed"))
    log = ResidentLog(settings)
    with closing(make(settings.num_envs)) as env:
        play_briefly(env, settings.seed)
        memory = env.memory()
        stages.append(_stage(ENVIRONMENTS, f"PSS after {settings.num_envs} environments took {_TOUCH_STEPS} steps"))
        seconds = drive(env, settings, log.take)
    return tuple(stages), memory, log.records(), seconds


def traced_pass(
    make: MakeEnvironment, settings: ProfileSettings
) -> tuple[tuple[Traced, ...], tuple[SourceLine, ...], tuple[SourceLine, ...]]:
    """Measure live memory by line with tracemalloc.

    Returns:
        Traced memory at each snapshot, the lines of the first snapshot after the warm-up, and of the last.
    """
    log = TracedLog(settings)
    with _tracing():
        held = bytearray(64)  # something to filter: what filtering compiles and caches is not traced below
        _live_lines()
        del held
    with _tracing(), closing(make(settings.num_envs)) as env:
        drive(env, settings, log.take)
    return (log.records(), *log.lines())


@contextmanager
def _tracing() -> Iterator[None]:
    """Run tracemalloc inside the block; leave it running if somebody else started it."""
    foreign = tracemalloc.is_tracing()
    if not foreign:
        tracemalloc.start()
    try:
        yield
    finally:
        if not foreign:
            tracemalloc.stop()


def profiled_pass(make: MakeEnvironment, settings: ProfileSettings) -> tuple[tuple[FunctionTime, ...], float]:
    """Return the time of every function called in the steps, and the seconds of all steps under cProfile."""
    actions, profile = random_actions(settings.num_envs, settings.seed), cProfile.Profile()
    with closing(make(settings.num_envs)) as env:
        env.reset(seed=settings.seed)
        start = time.perf_counter()
        profile.enable()
        for _ in range(settings.steps):
            env.step(next(actions))
        profile.disable()
        seconds = time.perf_counter() - start
    rows: dict[tuple[str, int, str], tuple[Any, ...]] = pstats.Stats(profile).stats  # type: ignore[attr-defined]
    functions = tuple(
        FunctionTime(file, line, name, calls, own, cumulative)
        for (file, line, name), (_, calls, own, cumulative, _) in rows.items()
    )
    return functions, seconds


def play_briefly(env: ProfiledEnvironment, seed: int) -> None:
    """Reset and step an environment until its kernels are loaded and its buffers written."""
    env.reset(seed=seed)
    for _ in range(_TOUCH_STEPS):
        env.step(np.zeros(env.num_envs, np.int64))


def drive(env: ProfiledEnvironment, settings: ProfileSettings, take: Callable[[int], None]) -> float:
    """Reset, play all steps with seeded random actions, call ``take(step)`` at each snapshot step.

    Returns:
        Seconds spent in steps; the snapshots' own time is not counted.
    """
    env.reset(seed=settings.seed)
    actions = random_actions(settings.num_envs, settings.seed)
    seconds, done = 0.0, 0
    for target in settings.snapshot_steps():
        start = time.perf_counter()
        for _ in range(target - done):
            env.step(next(actions))
        seconds += time.perf_counter() - start
        done = target
        take(done)
    return seconds


def random_actions(num_envs: int, seed: int) -> Iterator[np.ndarray]:
    """Yield seeded uniform actions, (num_envs,) int64 in 0..5, without end."""
    generator = default_rng(seed)
    while True:
        yield from generator.integers(0, NUM_ACTIONS, size=(_ACTION_BLOCK, num_envs), dtype=np.int64)


class ResidentLog:
    """Resident memory at each snapshot, in an array made beforehand: taking one keeps no new memory."""

    def __init__(self, settings: ProfileSettings):
        self._values = np.full((len(settings.snapshot_steps()), 4), -1, dtype=np.int64)  # touched now, not later
        self._count = 0

    def take(self, step: int) -> None:
        """Record the resident memory of this moment."""
        gc.collect()
        self._values[self._count] = (step, *resident_bytes())
        self._count += 1

    def records(self) -> tuple[Resident, ...]:
        """Return what was taken, in order."""
        return tuple(Resident(*map(int, row)) for row in self._values[: self._count])


class TracedLog:
    """Traced memory at each snapshot: totals in an array made beforehand, and the lines of two snapshots."""

    def __init__(self, settings: ProfileSettings):
        self._values = np.full((len(settings.snapshot_steps()), 3), -1, dtype=np.int64)
        self._count = 0
        self._warm = settings.warm_up_steps
        self._first: list[_Line] = []
        self._last: list[_Line] = []

    def take(self, step: int) -> None:
        """Record the traced memory of this moment, without what the profiler itself holds."""
        gc.collect()
        self._last = _live_lines()
        if step >= self._warm and not self._first:
            self._first = self._last
        self._values[self._count] = (
            step,
            sum(line[2] for line in self._last),
            sum(line[3] for line in self._last),
        )
        self._count += 1

    def records(self) -> tuple[Traced, ...]:
        """Return what was taken, in order."""
        return tuple(Traced(*map(int, row)) for row in self._values[: self._count])

    def lines(self) -> tuple[tuple[SourceLine, ...], tuple[SourceLine, ...]]:
        """Return the live lines of the first snapshot after the warm-up, and of the last."""
        first, last = (tuple(SourceLine(*line) for line in lines) for lines in (self._first, self._last))
        return first, last


def _live_lines() -> list[_Line]:
    """Return every line with live traced memory, without the memory this package holds to measure.

    Plain tuples, since they are made while tracing: their memory is this file's, and so left out.
    """
    lines = tracemalloc.take_snapshot().filter_traces(_OWN_MEMORY).statistics("lineno")
    return [(line.traceback[0].filename, line.traceback[0].lineno, line.size, line.count) for line in lines]


def _stage(name: str, how: str) -> Stage:
    gc.collect()
    return Stage(name, resident_bytes().pss, how)
