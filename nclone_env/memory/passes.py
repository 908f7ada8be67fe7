"""Collecting: passes over a subject that do not disturb each other.

1. Plain: stages, peaks, resident memory, the allocator's bytes in use, time of each step; nothing is traced.
2. Traced: tracemalloc, started before the subject is made. Totals of all snapshots are kept, and the lines of some.
3. Profiled: cProfile around the steps.
4. Phases: parts of a step, timed alone by targets that can.
5. Sizes: fresh processes with different numbers of environments (``memory.sizes``).
6. Allocations, on request: recorded by memray.
"""

import cProfile
import gc
import marshal
import pstats
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from tempfile import gettempdir
from typing import Any

import numpy as np

from nclone_env._files import temporary_beside
from nclone_env.errors import check_integer, optional_module
from nclone_env.memory.measurements import (
    COMPILED_CODE,
    FIRST_STEPS,
    FLOORS,
    FREE_LISTS,
    LIBRARIES,
    MADE,
    STEPS,
    AllocatingLine,
    Allocations,
    FunctionTime,
    Measurements,
    PhaseTime,
    ProfileSettings,
)
from nclone_env.memory.owners import chosen, owned_nodes
from nclone_env.memory.process import bare_interpreter, machine, restart_peak, stage
from nclone_env.memory.sizes import Target, measure_sizes, play
from nclone_env.memory.snapshots import SnapshotLog, TracedLog
from nclone_env.memory.stats import Stats, compute_stats, per_environment
from nclone_env.memory.traced import tracing

_FIRST_STEPS = 10  # after them most buffers were used
_PHASE_STEPS = 200
_RECORDED_STEPS = 100
"""Steps that memray records at most; each allocation is an entry of the file."""
_FRAMES = 12  # of the call stack of an allocation
_PROFILER = str(Path(__file__).parent)


def measured(
    target: Target,
    num_envs: int,
    steps: int,
    interval: int | None = None,
    notify: Callable[[str], None] = lambda text: None,
    memray: bool = False,
) -> Stats:
    """Run all passes and return their statistics; see ``ProfileSettings``.

    ``notify`` is called with one line of text before each pass; ``memray`` records all allocations as well.
    """
    for name, value in (("num_envs", num_envs), ("steps", steps), ("interval", interval)):
        if value is not None:
            check_integer(name, value, low=1)
    if memray:
        optional_module("memray", "profile")
    settings, passes = ProfileSettings(num_envs, steps, interval), f"of {4 + memray}"
    notify(f"pass 1 {passes}: stages, resident memory, time of each step")
    found = plain_pass(target, settings)
    notify(f"pass 2 {passes}: traced memory")
    found = traced_pass(target, found)
    notify(f"pass 3 {passes}: time by function and by phase")
    found = profiled_pass(target, found)
    phases = target.phases(num_envs, min(steps, _PHASE_STEPS))
    found = replace(found, phases=tuple(PhaseTime(name, seconds) for name, seconds in phases.items()))
    notify(f"pass 4 {passes}: fresh processes with other numbers of environments")
    sizes = measure_sizes(target, settings, found.owners[0].environment_bytes / num_envs)
    fitted = per_environment(sizes)
    if memray:
        notify(f"pass 5 {passes}: all allocations, recorded by memray")
        found = replace(found, allocations=record_allocations(target, num_envs, steps))
    unreported = max(0.0, fitted.python) if fitted else 0.0  # bytes of Python of each environment beside its owners
    advice = chosen(target.advice(found.owners, num_envs, unreported), found.owners)
    return compute_stats(replace(found, sizes=sizes, advice=advice))


def plain_pass(target: Target, settings: ProfileSettings) -> Measurements:
    """Measure stages, memory and the time of each step without tracing or profiling; the rest is left empty."""
    seconds = np.full(settings.steps, -1.0)  # not zeros: its pages are committed now
    log = SnapshotLog(len(settings.snapshot_steps()))
    stages = [bare_interpreter(), stage(LIBRARIES, "before the first environment was made")]
    with closing(target.make(1)) as one:  # its kernels are loaded
        play(one, _FIRST_STEPS)
    stages.append(stage(COMPILED_CODE, "after one environment was made, stepped and closed"))
    restart_peak()
    with closing(target.make(settings.num_envs)) as subject:

        def take(step: int) -> None:
            gc.collect()
            log.take(step, subject.memory())

        stages.append(stage(MADE, "after all environments were made and reset"))
        restart_peak()
        play(subject, _FIRST_STEPS)
        stages.append(stage(FIRST_STEPS, f"after {_FIRST_STEPS} steps"))
        restart_peak()
        drive(subject.step, settings, take, seconds)
        stages.append(stage(STEPS, f"after {settings.steps:,} more steps"))
        owners = owned_nodes(subject.memory())
    return Measurements(
        machine=machine(),
        settings=settings,
        name=target.name,
        unit=target.unit,
        facts=target.facts(),
        env_steps=target.env_steps(settings.num_envs),
        snapshots=log.snapshots(),
        floors={**FLOORS, "traced": FREE_LISTS} if target.makes_objects else FLOORS,
        stages=tuple(stages),
        owners=owners,
        step_seconds=tuple(seconds.tolist()),
    )


def drive(
    step: Callable[[], object],
    settings: ProfileSettings,
    take: Callable[[int], None],
    seconds: np.ndarray | None = None,
) -> None:
    """Take all steps, and call ``take`` with the number of each snapshot step; write ``seconds``, (steps,) float64."""
    done = 0
    for snapshot in settings.snapshot_steps():
        for number in range(done, snapshot):
            start = time.perf_counter()
            step()
            if seconds is not None:
                seconds[number] = time.perf_counter() - start
        done = snapshot
        take(done)


def traced_pass(target: Target, measured: Measurements) -> Measurements:
    """Add live memory, in all and by line, and the peak of each step above its start, by tracemalloc."""
    settings, places = measured.settings, measured.settings.snapshot_steps()
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
    return replace(
        measured, traced=log.records(), line_steps=log.line_steps(), lines=log.lines(), step_peaks=tuple(peaks.tolist())
    )


def profiled_pass(target: Target, measured: Measurements) -> Measurements:
    """Add the time of every function called during the steps, the profile itself, and the seconds of all steps."""
    profile = cProfile.Profile()
    with closing(target.make(measured.settings.num_envs)) as subject:
        start = time.perf_counter()
        profile.enable()
        for _ in range(measured.settings.steps):
            subject.step()
        profile.disable()
        seconds = time.perf_counter() - start
    rows: dict[tuple[str, int, str], tuple[Any, ...]] = pstats.Stats(profile).stats  # type: ignore[attr-defined]
    functions = tuple(
        FunctionTime(file, line, name, calls, own, cumulative)
        for (file, line, name), (_, calls, own, cumulative, _) in rows.items()
    )
    return replace(measured, functions=functions, profile=marshal.dumps(rows), profiled_seconds=seconds)


def record_allocations(target: Target, num_envs: int, steps: int) -> Allocations:
    """Record what making environments, and at most ``_RECORDED_STEPS`` steps, allocate in this process, freed or not.

    memray also sees the allocations of native code, and its flame graph shows native frames.
    """
    memray, steps = optional_module("memray", "profile"), min(steps, _RECORDED_STEPS)
    with temporary_beside(Path(gettempdir(), "memray"), folder=True) as folder:
        made, stepped = folder / "made.bin", folder / "stepped.bin"
        aggregated = memray.FileFormat.AGGREGATED_ALLOCATIONS
        with memray.Tracker(made, native_traces=True, file_format=aggregated):
            subject = target.make(num_envs)
            play(subject, _FIRST_STEPS)
        with closing(subject), memray.Tracker(stepped, trace_python_allocators=True):
            play(subject, steps)
        return Allocations(_lines(memray, stepped), steps, _flame_graph(made))


def _lines(memray: Any, file: Path) -> tuple[AllocatingLine, ...]:
    """Return the allocations of a file by the line of Python code that made them."""
    types = memray.AllocatorType
    freeing = {types.FREE, types.PYMALLOC_FREE, types.MUNMAP}
    places: dict[int, tuple[str, ...]] = {}
    found: dict[str, AllocatingLine] = {}
    with memray.FileReader(file) as reader:
        for record in reader.get_allocation_records():
            if record.allocator in freeing:
                continue
            if record.stack_id not in places:
                places[record.stack_id] = tuple(f"{path}:{line}" for _, path, line in record.stack_trace(_FRAMES))
            place, *callers = places[record.stack_id] or ("outside of Python:0",)
            if place.startswith(_PROFILER):
                continue
            source, _, line = place.rpartition(":")
            before = found.get(place) or AllocatingLine(source, int(line), 0, 0, tuple(callers))
            blocks, size = before.blocks + record.n_allocations, before.allocated_bytes + record.size
            found[place] = replace(before, blocks=blocks, allocated_bytes=size)
    return tuple(found.values())


def _flame_graph(file: Path) -> bytes:
    page = file.with_suffix(".html")
    command = [sys.executable, "-m", "memray", "flamegraph", "--force", "--no-web", "--output", str(page), str(file)]
    subprocess.run(command, capture_output=True, check=True)
    return page.read_bytes()
