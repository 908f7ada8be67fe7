"""Collecting: three passes over an environment, so that the measurements do not disturb each other.

1. Plain: stages, resident memory and throughput, without tracing.
2. Traced: tracemalloc, started before the environments are created. Only totals and the lines of two snapshots are
   kept, never a whole snapshot.
3. Profiled: cProfile around the steps.

All passes use the same seeded actions, so the same step of two passes is the same state of the game.
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
from numpy.random import default_rng  # numpy imports it lazily: 5 MB that would be attributed to the first steps

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

_ACTION_BLOCK = 256  # steps sampled at once, so that sampling is negligible in the times
_TOUCH_STEPS = 10  # steps after which an environment has written all its buffers
# Allocations of tracemalloc and of the profiler itself.
_OWN_MEMORY = (
    tracemalloc.Filter(False, tracemalloc.__file__),
    tracemalloc.Filter(False, glob.escape(str(Path(__file__).parent)) + os.sep + "*"),
)

_Line = tuple[str, int, int, int]  # file, line, live bytes, blocks


class ProfiledEnvironment(MemoryOwner, Protocol):
    """The vector environment interface of the profiler."""

    num_envs: int

    def reset(self, *, seed: int | None = None) -> Any:
        """Reset every environment."""

    def step(self, actions: Any) -> Any:
        """Step every environment; ``actions`` is (num_envs,) int64 in 0..5."""

    def close(self) -> Any:
        """Release all resources."""


MakeEnvironment = Callable[[int], ProfiledEnvironment]


def collect(
    make_env: MakeEnvironment, settings: ProfileSettings, progress: Callable[[str], None] | None = None
) -> Recording:
    """Run all three passes and return their measurements.

    Args:
        make_env: creates a vector environment with autoreset, given the number of environments.
        settings: number of environments, steps and snapshots.
        progress: called with one line of text before each pass.

    Raises:
        ConfigError: if a setting is out of range.
    """
    check(settings)
    notify = progress or (lambda text: None)
    notify("pass 1 of 3: stages, resident memory and throughput")
    stages, memory, resident, plain_seconds = plain_pass(make_env, settings)
    notify("pass 2 of 3: traced memory")
    traced, first_lines, last_lines = traced_pass(make_env, settings)
    notify("pass 3 of 3: time by function")
    functions, profiled_seconds = profiled_pass(make_env, settings)
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
    """Raise ConfigError if a setting is out of range."""
    for name in ("num_envs", "steps", "interval"):
        value = getattr(settings, name)
        if value < 1:
            raise ConfigError(f"{name}: expected a whole number of at least 1, got {value!r}")
    if settings.interval > settings.steps:
        raise ConfigError(
            f"interval: expected at most the number of steps, {settings.steps}, got {settings.interval}; "
            "decrease the interval or increase the number of steps"
        )


def plain_pass(
    make_env: MakeEnvironment, settings: ProfileSettings
) -> tuple[tuple[Stage, ...], MemoryNode, tuple[Resident, ...], float]:
    """Measure stages, resident memory and throughput without tracing or profiling.

    Returns:
        The stages, the memory tree of the environments, resident memory at each snapshot, and the seconds of all
        steps.
    """
    stages = [bare_interpreter(), _stage(LIBRARIES, "PSS before the first environment was created")]
    with closing(make_env(1)) as env:
        play_briefly(env, settings.seed)
    stages.append(_stage(COMPILED_CODE, "PSS after one environment was created, stepped and closed"))
    log = ResidentLog(settings)
    with closing(make_env(settings.num_envs)) as env:
        play_briefly(env, settings.seed)
        memory = env.memory()
        stages.append(_stage(ENVIRONMENTS, f"PSS after {settings.num_envs} environments took {_TOUCH_STEPS} steps"))
        seconds = drive(env, settings, log.take)
    return tuple(stages), memory, log.records(), seconds


def traced_pass(
    make_env: MakeEnvironment, settings: ProfileSettings
) -> tuple[tuple[Traced, ...], tuple[SourceLine, ...], tuple[SourceLine, ...]]:
    """Measure live memory by line with tracemalloc.

    Returns:
        Traced memory at each snapshot, the lines of the first snapshot after the warm-up, and those of the last.
    """
    log = TracedLog(settings)
    with _tracing():
        held = bytearray(64)  # warms up the filter, so that its caches are not traced below
        _live_lines()
        del held
    with _tracing(), closing(make_env(settings.num_envs)) as env:
        drive(env, settings, log.take)
    return (log.records(), *log.lines())


@contextmanager
def _tracing() -> Iterator[None]:
    """Run tracemalloc inside the block; leave it running if it was running before."""
    already_tracing = tracemalloc.is_tracing()
    if not already_tracing:
        tracemalloc.start()
    try:
        yield
    finally:
        if not already_tracing:
            tracemalloc.stop()


def profiled_pass(make_env: MakeEnvironment, settings: ProfileSettings) -> tuple[tuple[FunctionTime, ...], float]:
    """Return the time of every function called during the steps, and the seconds of all steps under cProfile."""
    actions, profile = random_actions(settings.num_envs, settings.seed), cProfile.Profile()
    with closing(make_env(settings.num_envs)) as env:
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
    """Reset and step an environment until its kernels are loaded and its buffers are written."""
    env.reset(seed=seed)
    for _ in range(_TOUCH_STEPS):
        env.step(np.zeros(env.num_envs, np.int64))


def drive(env: ProfiledEnvironment, settings: ProfileSettings, take: Callable[[int], None]) -> float:
    """Reset, take all steps with seeded random actions, and call ``take(step)`` at each snapshot step.

    Returns:
        Seconds spent in steps, without snapshots.
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
    """Yield seeded uniform actions, (num_envs,) int64 in 0..5, indefinitely."""
    generator = default_rng(seed)
    while True:
        yield from generator.integers(0, NUM_ACTIONS, size=(_ACTION_BLOCK, num_envs), dtype=np.int64)


class ResidentLog:
    """Resident memory at each snapshot, in a preallocated array: a snapshot retains no new memory."""

    def __init__(self, settings: ProfileSettings):
        self._values = np.full((len(settings.snapshot_steps()), 4), -1, dtype=np.int64)  # pages committed here
        self._count = 0

    def take(self, step: int) -> None:
        """Record the current resident memory."""
        gc.collect()
        self._values[self._count] = (step, *resident_bytes())
        self._count += 1

    def records(self) -> tuple[Resident, ...]:
        """Return the snapshots in order."""
        return tuple(Resident(*map(int, row)) for row in self._values[: self._count])


class TracedLog:
    """Traced memory at each snapshot: totals in a preallocated array, and the lines of two snapshots."""

    def __init__(self, settings: ProfileSettings):
        self._values = np.full((len(settings.snapshot_steps()), 3), -1, dtype=np.int64)
        self._count = 0
        self._warm = settings.warm_up_steps
        self._first: list[_Line] = []
        self._last: list[_Line] = []

    def take(self, step: int) -> None:
        """Record the current traced memory, without that of the profiler."""
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
        """Return the snapshots in order."""
        return tuple(Traced(*map(int, row)) for row in self._values[: self._count])

    def lines(self) -> tuple[tuple[SourceLine, ...], tuple[SourceLine, ...]]:
        """Return the lines of the first snapshot after the warm-up, and those of the last."""
        first, last = (tuple(SourceLine(*line) for line in lines) for lines in (self._first, self._last))
        return first, last


def _live_lines() -> list[_Line]:
    """Return every line with live traced memory, without the memory of the profiler.

    The tuples are created while tracing; being allocated in this file, they are filtered out.
    """
    lines = tracemalloc.take_snapshot().filter_traces(_OWN_MEMORY).statistics("lineno")
    return [(line.traceback[0].filename, line.traceback[0].lineno, line.size, line.count) for line in lines]


def _stage(name: str, how: str) -> Stage:
    gc.collect()
    return Stage(name, resident_bytes().pss, how)
