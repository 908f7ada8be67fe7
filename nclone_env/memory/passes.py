"""Collecting: what can be profiled, and passes over it that do not disturb each other.

1. Plain: stages, peaks, resident memory, the allocator's bytes in use, time of each step; nothing is traced.
2. Traced: tracemalloc, started before the subject is made. Totals of all snapshots are kept, and the lines of some.
3. Profiled: cProfile around the steps.
4. Phases: parts of a step, timed alone by targets that can.
5. Sizes: fresh processes make different numbers of environments. In the process that profiles, memory freed by earlier
   passes is used again, so that it would measure too little.
6. Allocations, on request: recorded by memray.

What any number of environments will take is computed from one and two of them. Owners report their arrays; the tree of
one and of two is continued. What no owner reports, objects of Python and worker processes, is measured.
"""

import cProfile
import gc
import marshal
import multiprocessing
import pstats
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from tempfile import gettempdir
from typing import Any, NamedTuple, Protocol

import numpy as np

from nclone_env._files import temporary_beside
from nclone_env._table import format_bytes
from nclone_env.errors import check_integer, optional_module
from nclone_env.memory.explain.stats import Stats, chosen, compute_stats, per_environment
from nclone_env.memory.measure.measurements import (
    COMPILED_CODE,
    FIRST_STEPS,
    FLOORS,
    FREE_LISTS,
    LIBRARIES,
    MADE,
    STEPS,
    Advice,
    AllocatingLine,
    Allocations,
    FunctionTime,
    Measurements,
    OwnedNode,
    PhaseTime,
    ProfileSettings,
    SizePoint,
    floor_of_workers,
)
from nclone_env.memory.measure.process import (
    bare_interpreter,
    committed_tree_bytes,
    machine,
    owned_nodes,
    resident_bytes,
    restart_peak,
    stage,
    trim_heap,
    worker_bytes,
)
from nclone_env.memory.measure.snapshots import SnapshotLog, TracedLog, tracing
from nclone_env.memory.measure.tree import MemoryNode, MemoryOwner
from nclone_env.memory.show import Section, folded, owner_rows, text_of

_FIRST_STEPS = 10  # after them most buffers were used
_PHASE_STEPS = 200
_RECORDED_STEPS = 100
"""Steps that memray records at most; each allocation is an entry of the file."""
_FRAMES = 12  # of the call stack of an allocation
_PROFILER = str(Path(__file__).parent)
_SIZE_STEPS, _FEWEST_STEPS = 60, 3  # of an environment in a fresh process, and fewest of the subject
_LARGEST_BYTES = 48 * 1024**2
"""The largest process has at least so much of them, unless that takes more environments than the target allows."""
_BLOCKS, _BALLAST = (*range(48, 513, 16), *range(512 + 128, 4096, 128)), 256 * 1024
"""Sizes of blocks of Python's allocator and of the C library's, and bytes of each size that are used up."""


class Subject(MemoryOwner, Protocol):
    """Something that repeats steps and reports the memory it owns."""

    def step(self) -> object:
        """Do what is repeated, once."""

    def close(self) -> object:
        """Release all resources."""


class Target:
    """Makes subjects of any size. It must be picklable, since fresh processes make subjects of several sizes."""

    name: str
    """What is profiled, for the reports."""
    unit: str
    """What a step is, for example "vector step" or "update"."""
    most_envs: int
    """The largest number of environments that a fresh process should make."""
    makes_objects = False
    """Whether each step makes and destroys objects of all kinds: Python's lists of freed ones fill ever more slowly."""

    def facts(self) -> tuple[tuple[str, str], ...]:
        """Return (name, value) of what a reader must know to compare two reports, such as mode and observations."""
        return ()

    def env_steps(self, num_envs: int) -> int:
        """Return the environment steps of a step, by default one of each environment."""
        return num_envs

    def estimate(self, num_envs: int) -> MemoryNode:
        """Return the tree that a subject will report; by default one and two environments are made."""
        return extrapolated(self, num_envs)

    def advice(self, owners: Sequence[OwnedNode], num_envs: int, unreported: float) -> Iterable[Advice]:
        """Return what would save memory, given the tree and the bytes of Python of each environment beside it."""
        return ()

    def phases(self, num_envs: int, steps: int) -> Mapping[str, float]:
        """Return the seconds of a whole step and then of its parts by name; nothing if they cannot be timed."""
        return {}

    def make(self, num_envs: int) -> Subject:
        """Make a subject that is ready to step."""
        raise NotImplementedError


def play(subject: Subject, steps: int) -> None:
    """Take so many steps."""
    for _ in range(steps):
        subject.step()


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
    objects = {"traced": FREE_LISTS} if target.makes_objects else {}
    return Measurements(
        machine=machine(),
        settings=settings,
        name=target.name,
        unit=target.unit,
        facts=target.facts(),
        env_steps=target.env_steps(settings.num_envs),
        snapshots=log.snapshots(),
        floors={**FLOORS, **objects, "workers": floor_of_workers(len(log.workers))},
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


class Process(NamedTuple):
    """What a fresh process measures."""

    target: Target
    num_envs: int
    steps: int
    traced: bool


def measure_one_and_two(target: Target) -> list[tuple[SizePoint, SizePoint]]:
    """Measure one and two environments in fresh processes, both at a time; each without tracing and then with it."""
    processes = [Process(target, count, steps_to_measure(target), traced=False) for count in (1, 2)]
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn"), max_tasks_per_child=1) as executor:
        return list(executor.map(_measure_twice, processes))


def _measure_twice(process: Process) -> tuple[SizePoint, SizePoint]:
    return measure(process), measure(process._replace(traced=True))


def steps_to_measure(target: Target) -> int:
    """Return the steps after which most buffers were used."""
    return max(_FEWEST_STEPS, _SIZE_STEPS // max(1, target.env_steps(1)))


def measure_sizes(target: Target, settings: ProfileSettings, reported: float) -> tuple[SizePoint, ...]:
    """Measure three numbers of environments, one after another; the first and the last once more with tracemalloc.

    That of the run is among them unless it is too small to measure, by the bytes ``reported`` of each environment.
    """
    counts = environment_counts(settings.num_envs, reported, target.most_envs)
    steps = min(settings.steps, steps_to_measure(target))
    plain = [Process(target, count, steps, traced=False) for count in counts]
    traced = [Process(target, count, steps, traced=True) for count in (counts[0], counts[-1])]
    return tuple(in_fresh_process(process) for process in (*plain, *traced))


def environment_counts(num_envs: int, reported: float, most_envs: int) -> tuple[int, int, int]:
    """Return three numbers of environments, the largest large enough for its memory to stand out from the noise."""
    needed = int(_LARGEST_BYTES / max(reported, 1.0))
    largest = max(4, num_envs, min(needed, most_envs))
    return largest // 4, largest // 2, largest


def in_fresh_process(process: Process) -> SizePoint:
    """Measure in a new process."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as executor:
        return executor.submit(measure, process).result()


def measure(process: Process) -> SizePoint:
    """Measure in this process, beside one that stays: it has what all share, and frees nothing."""
    with closing(process.target.make(1)) as one:
        play(one, process.steps)
        ballast = _ballast()
        shared = {block for _, node in one.memory().walk() for block in node.blocks}
        if process.traced:
            tracemalloc.start()
        before, workers = _data_bytes(), worker_bytes()
        with closing(process.target.make(process.num_envs)) as subject:
            play(subject, process.steps)
            data, traced = _data_bytes() - before, tracemalloc.get_traced_memory()[0]
            tree = subject.memory()  # last: it takes memory itself, a few KB for each single environment
            made = _without(tree, shared)
            del ballast
            return SizePoint(
                num_envs=process.num_envs,
                data_bytes=data,
                worker_bytes=worker_bytes() - workers,
                owned_bytes=tree.bytes_where(shared=False),
                committed_bytes=committed_tree_bytes(made),
                python_bytes=traced - made.bytes_where(mapped=False) if process.traced else None,
            )


def _without(tree: MemoryNode, blocks: set[tuple[int, int]]) -> MemoryNode:
    children = tuple(_without(child, blocks) for child in tree.children)
    is_there = bool(tree.blocks) and blocks.issuperset(tree.blocks)
    return replace(tree, children=children, own_bytes=0 if is_there else tree.own_bytes)


def _ballast() -> list[bytes]:
    """Return objects in the small blocks that imports have left free: what is made next takes memory of its own."""
    return [bytes(size - sys.getsizeof(b"")) for size in _BLOCKS for _ in range(_BALLAST // size)]


def _data_bytes() -> int:
    """Return the memory in use: resident, without the heap that was freed and is still there to be used again."""
    gc.collect()
    trim_heap()
    return resident_bytes().data + worker_bytes()


def estimated(target: Target, num_envs: int) -> MemoryNode:
    """Return the tree that a target will report, and what it will take besides."""
    tree, others = target.estimate(num_envs), _unreported(target, num_envs)
    return replace(tree, children=(*tree.children, *(node for node in others if node.own_bytes)))


def _unreported(target: Target, num_envs: int) -> Iterator[MemoryNode]:
    """Yield the memory of Python and of worker processes that no owner reports, by its growth from one to two."""
    sizes = measure_one_and_two(target)
    python = [traced.python_bytes or 0 for _, traced in sizes]
    yield from _grown("other Python memory", num_envs, *python)
    rest = [plain.data_bytes - plain.committed_bytes - known for (plain, _), known in zip(sizes, python)]
    if sizes[1][0].worker_bytes:
        yield from _grown("worker processes", num_envs, *rest)
    else:
        yield MemoryNode("stacks of threads, spare heap", max(0, rest[0]), shared=True)


def _grown(name: str, num_envs: int, one: int, two: int) -> Iterator[MemoryNode]:
    each = max(0, two - one)
    yield MemoryNode(name, each * num_envs)
    yield MemoryNode(f"{name}, once", max(0, one - each), shared=True)


def extrapolated(target: Target, num_envs: int) -> MemoryNode:
    """Return the tree of a number of environments, of which only one and two are made."""
    return scaled(_tree(target, 1), _tree(target, 2), num_envs)


def scaled(one: MemoryNode, two: MemoryNode, num_envs: int) -> MemoryNode:
    """Continue the growth of a tree from one environment to two; parts that ``two`` lacks are kept as they are."""
    more = {child.name: child for child in two.children}
    own = one.own_bytes if one.shared else one.own_bytes + (two.own_bytes - one.own_bytes) * (num_envs - 1)
    children = tuple(scaled(child, more.get(child.name, child), num_envs) for child in one.children)
    return replace(one, own_bytes=own, children=children, blocks=())


def _tree(target: Target, num_envs: int) -> MemoryNode:
    with closing(target.make(num_envs)) as subject:
        play(subject, _FEWEST_STEPS)
        return subject.memory()


def estimate(target: Target, num_envs: int, allowed: str) -> tuple[str, float, int]:
    """Measure one and two environments in fresh processes, and continue to any number; ``allowed`` is for the text.

    Return the tree as a table, the bytes of each environment, and the shared ones.
    """
    tree = estimated(target, num_envs)
    title = f"Estimate: {target.name}, {num_envs:,} environments (libraries and compiled code come on top)"
    cells, columns = owner_rows(list(folded(owned_nodes(tree))), num_envs)
    each, shared = tree.bytes_where(shared=False) / num_envs, tree.bytes_where(shared=True)
    parts = f"{format_bytes(each)} for each, {format_bytes(shared)} shared"
    note = f"{format_bytes(tree.total_bytes)} in all: {parts}; {allowed}"
    return text_of([Section(title, cells, columns, (note,))]), each, shared
