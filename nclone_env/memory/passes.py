"""Collecting: passes over a subject that do not disturb each other.

1. Plain: stages, peaks, resident memory, the allocator's bytes in use, time of each step; nothing is traced.
2. Traced: tracemalloc, started before the subject is made. Totals of all snapshots are kept, and the lines of some.
3. Profiled: cProfile around the steps.
4. Phases: parts of a step, timed alone by targets that can.
5. Sizes: fresh processes with different numbers of environments (``memory.sizes``).
6. Allocations, on request: recorded by memray (``memory.allocations``).
"""

import cProfile
import gc
import marshal
import pstats
import time
import tracemalloc
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any, NamedTuple

import numpy as np

from nclone_env.errors import check_integer
from nclone_env.memory.allocations import Allocations, memray_module, record_allocations
from nclone_env.memory.measurements import (
    COMPILED_CODE,
    FIRST_STEPS,
    LIBRARIES,
    MADE,
    STEPS,
    FunctionTime,
    Measurements,
    OwnedNode,
    ProfileSettings,
    SizePoint,
    Stage,
)
from nclone_env.memory.owners import owned_nodes
from nclone_env.memory.process import bare_interpreter, machine, restart_peak, stage
from nclone_env.memory.sizes import measure_sizes
from nclone_env.memory.snapshots import SnapshotLog
from nclone_env.memory.stats import per_environment
from nclone_env.memory.subject import Subject, Target
from nclone_env.memory.traced import TracedLog, tracing

_FIRST_STEPS = 10  # after them most buffers were used
_PHASE_STEPS = 200
Notify = Callable[[str], None]


class Plain(NamedTuple):
    """What the plain pass measures."""

    stages: tuple[Stage, ...]
    owners: tuple[OwnedNode, ...]
    log: SnapshotLog
    step_seconds: tuple[float, ...]


def collect(
    target: Target, settings: ProfileSettings, notify: Notify = lambda text: None, memray: bool = False
) -> Measurements:
    """Run all passes and return their measurements.

    Args:
        notify: called with one line of text before each pass.
        memray: whether to record all allocations as well.

    Raises:
        ConfigError: if a setting is out of range.
        MissingExtraError: if memray is asked for and not installed.
    """
    check_settings(settings)
    if memray:
        memray_module()
    passes = f"of {4 + memray}"
    notify(f"pass 1 {passes}: stages, resident memory, time of each step")
    plain = plain_pass(target, settings)
    notify(f"pass 2 {passes}: traced memory")
    traced, peaks = traced_pass(target, settings)
    notify(f"pass 3 {passes}: time by function and by phase")
    functions, profile, profiled_seconds = profiled_pass(target, settings)
    phases = target.phases(settings.num_envs, min(settings.steps, _PHASE_STEPS))
    notify(f"pass 4 {passes}: fresh processes with other numbers of environments")
    sizes = measure_sizes(target, settings, _per_environment(plain.owners, settings.num_envs))
    allocations = Allocations((), 0, b"")
    if memray:
        notify(f"pass 5 {passes}: all allocations, recorded by memray")
        allocations = record_allocations(target, settings.num_envs, settings.steps)
    return Measurements(
        machine=machine(),
        settings=settings,
        name=target.name,
        unit=target.unit,
        facts=target.facts(),
        env_steps=target.env_steps(settings.num_envs),
        snapshots=plain.log.snapshots(),
        stages=plain.stages,
        owners=plain.owners,
        advice=target.advice(plain.owners, settings.num_envs, _unreported(sizes)),
        traced=traced.records(),
        traced_floor=target.traced_floor,
        line_steps=traced.line_steps(),
        lines=traced.lines(),
        step_peaks=peaks,
        sizes=sizes,
        allocating_lines=allocations.lines,
        allocation_steps=allocations.steps,
        flame_graph=allocations.flame_graph,
        phases=phases,
        functions=functions,
        profile=profile,
        step_seconds=plain.step_seconds,
        profiled_seconds=profiled_seconds,
    )


def check_settings(settings: ProfileSettings) -> None:
    """Raise ConfigError if a setting is out of range."""
    for name in ("num_envs", "steps", "interval"):
        value = getattr(settings, name)
        if value is not None:
            check_integer(name, value, low=1)


def plain_pass(target: Target, settings: ProfileSettings) -> Plain:
    """Measure stages, memory and the time of each step without tracing or profiling."""
    seconds = np.full(settings.steps, -1.0)  # not zeros: its pages are committed now
    log = SnapshotLog(len(settings.snapshot_steps()))
    stages = [bare_interpreter(), stage(LIBRARIES, "before the first environment was made")]
    play_one(target)
    stages.append(stage(COMPILED_CODE, "after one environment was made, stepped and closed"))
    restart_peak()
    with closing(target.make(settings.num_envs)) as subject:
        stages.append(stage(MADE, "after all environments were made and reset"))
        restart_peak()
        for _ in range(_FIRST_STEPS):
            subject.step()
        stages.append(stage(FIRST_STEPS, f"after {_FIRST_STEPS} steps"))
        restart_peak()
        drive(subject.step, settings, lambda step: _take(log, step, subject), seconds)
        stages.append(stage(STEPS, f"after {settings.steps:,} more steps"))
        owners = owned_nodes(subject.memory())
    return Plain(tuple(stages), owners, log, tuple(seconds.tolist()))


def _take(log: SnapshotLog, step: int, subject: Subject) -> None:
    gc.collect()
    log.take(step, subject.memory())


def play_one(target: Target) -> None:
    """Make, step and close one environment, so that its kernels are loaded."""
    with closing(target.make(1)) as one:
        for _ in range(_FIRST_STEPS):
            one.step()


def drive(
    step: Callable[[], object],
    settings: ProfileSettings,
    take: Callable[[int], None],
    seconds: np.ndarray | None = None,
) -> None:
    """Take all steps, and call ``take`` with the number of each snapshot step.

    Args:
        seconds: (steps,) float64, written: the time of each step; None: not measured.
    """
    done = 0
    for snapshot in settings.snapshot_steps():
        for number in range(done, snapshot):
            start = time.perf_counter()
            step()
            if seconds is not None:
                seconds[number] = time.perf_counter() - start
        done = snapshot
        take(done)


def _per_environment(owners: tuple[OwnedNode, ...], num_envs: int) -> float:
    return owners[0].environment_bytes / num_envs if owners else 0.0


def _unreported(sizes: Sequence[SizePoint]) -> float:
    """Return the bytes of Python of each environment that no owner reports."""
    found = per_environment(sizes)
    return max(0.0, found.python) if found else 0.0


def traced_pass(target: Target, settings: ProfileSettings) -> tuple[TracedLog, tuple[int, ...]]:
    """Measure live memory by line with tracemalloc.

    Returns:
        The totals and the lines at each snapshot, and the peak of each step above its start.
    """
    places = settings.snapshot_steps()
    log, peaks = TracedLog(len(places)), np.full(settings.steps, -1, dtype=np.int64)
    warm = max(step for step in places if step < settings.warm_up_steps)  # what the lines take is warm-up, too
    with_lines = {places[0], warm, settings.steps}

    def take(step: int) -> None:
        gc.collect()
        log.take(step, lines=step in with_lines, always=True)

    with tracing():
        spare = TracedLog(2)  # its caches are not traced below
        spare.take(0, lines=True, always=True)
        spare.take(1, lines=True, always=True)
    with tracing(), closing(target.make(settings.num_envs)) as subject:
        number = iter(range(settings.steps))

        def step() -> None:
            before, _ = tracemalloc.get_traced_memory()
            tracemalloc.reset_peak()
            subject.step()
            peaks[next(number)] = tracemalloc.get_traced_memory()[1] - before

        drive(step, settings, take)
    return log, tuple(peaks.tolist())


def profiled_pass(target: Target, settings: ProfileSettings) -> tuple[tuple[FunctionTime, ...], bytes, float]:
    """Return the time of every function called during the steps, the profile itself, and the seconds of all steps."""
    profile = cProfile.Profile()
    with closing(target.make(settings.num_envs)) as subject:
        start = time.perf_counter()
        profile.enable()
        for _ in range(settings.steps):
            subject.step()
        profile.disable()
        seconds = time.perf_counter() - start
    rows: dict[tuple[str, int, str], tuple[Any, ...]] = pstats.Stats(profile).stats  # type: ignore[attr-defined]
    functions = tuple(
        FunctionTime(file, line, name, calls, own, cumulative)
        for (file, line, name), (_, calls, own, cumulative, _) in rows.items()
    )
    return functions, marshal.dumps(rows), seconds
