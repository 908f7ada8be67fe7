"""Profiling of a user's own code: ``with nclone_env.memory.profile(...)``."""

from __future__ import annotations

import math
import os
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from enum import Enum
from importlib.util import find_spec
from operator import sub
from pathlib import Path
from types import TracebackType
from typing import ClassVar

from nclone_env._files import expanded
from nclone_env.errors import checked, plain
from nclone_env.memory.explain.keepers import find_graphs, find_keepers
from nclone_env.memory.explain.stats import (
    GrownLine,
    Stats,
    chosen,
    compute_stats,
    culprits,
    of_kept_results,
    traced_lines,
)
from nclone_env.memory.explain.workers import Loading, WorkerLines, start_thread
from nclone_env.memory.judge import (
    MIN_SNAPSHOTS,
    PARTS,
    combined_verdict,
    decided_at,
    growing_alone,
    growths_of,
    judged_steps,
)
from nclone_env.memory.measure.measurements import (
    ARENA,
    FLOORS,
    FREE_LISTS,
    NATIVE,
    TIME_UNIT,
    WARM_UP_SHARE,
    WORKER,
    Keeper,
    Measurements,
    ProfileSettings,
    Stage,
    UntracedLine,
    floor_of_workers,
)
from nclone_env.memory.measure.process import machine, owned_nodes, restart_peak, stage
from nclone_env.memory.measure.snapshots import (
    Budget,
    FilledBlocks,
    Garbage,
    NativeLines,
    SnapshotLog,
    TracedLog,
    held_bytes,
    start_tracing,
)
from nclone_env.memory.measure.tree import MemoryNode, MemoryOwner
from nclone_env.memory.show import answers, summary, text_of, write_reports

_CAPACITY = 4 * PARTS
"""Snapshots kept; when there are more, every second one is dropped and the interval doubles."""
_TICK = 0.025  # seconds between two looks at what the threads do
_FIRST_INTERVAL = 0.05  # seconds
_QUIET, _QUIET_SHARE = 0.5, 0.2
"""Seconds, and share of the run so far, without imports and compilation after which what is judged begins."""
_EARLY = 5.0  # seconds after which it goes on while something is imported, unless that took longer before
_TRACED, _TRACED_STEPS, _TRACED_SHARE = 20.0, 200, 0.2
"""Processor seconds, steps, and share of the known steps that are traced in any case."""
_AGAIN = 1.1  # times the time before another look at what grows
_COST, _SEARCH_COST = 20, 5  # parts of the time that snapshots take at most, and searches
_MOST_APART = WARM_UP_SHARE ** (-1 / PARTS)  # steps of a snapshot over those of the one before: each part has one
_PROMPT = 1e-6  # seconds
_SEARCH_AFTER = 0.25  # seconds: a search of a fifth of it sees something; imports may leave a run little more to judge
_STRETCH_SECONDS, _SEARCH_SECONDS, _LAST_SEARCH_SECONDS = 1.0, 3.0, 9.0
_FLOORS = {**FLOORS, "traced": 6 * 1024, "native": 128 * 1024, "process": ARENA}
_NOTHING = MemoryNode("nothing reported")
_running: set[Watch] = set()


class State(Enum):
    """What a profile does now."""

    WAITING = "for the end of imports and compilation, which are many times as slow if traced"
    TRACING = "every allocation has its line, if lines are wanted"
    COUNTING = "the allocator's count and resident memory are watched alone"


class Watch:
    """Snapshots of the memory of this process while a block of code runs; see :func:`profile`."""

    def __init__(
        self,
        name: str,
        owner: MemoryOwner | None,
        num_envs: int,
        output_dir: Path | None,
        traced: bool,
        notify: Callable[[float], object] | None = None,
    ):
        self._name, self._owner, self._num_envs, self._folder = name, owner, num_envs, output_dir
        self._notify = notify
        self._log, self._filled = SnapshotLog(_CAPACITY), FilledBlocks()
        self._garbage = Garbage()
        self._traced = TracedLog(_CAPACITY, self._garbage.collect)
        self._loading = Loading()
        self._state = State.WAITING
        self._loads = False
        self._wants_trace = traced
        self._began_trace = False
        self._tracing: tuple[float, float] | None = None  # what was judged of it, once it has ended
        self._next_look = 0.0  # milliseconds, without tracing
        self._traced_until = 0.0, 0.0  # processor seconds and steps, after which tracing may end
        self._settled = 0.0  # milliseconds at which the part began that is judged
        self._worked = 0.0  # processor seconds of this process then
        self._steps = 0
        self._every = 1  # step of the code, or of the clock, has a snapshot
        self._next = 0.0  # milliseconds from which on there is time for a snapshot
        self._free = 0.0  # the same in processor seconds of this process, for counted steps
        self._due = 0.0  # step that has one in any case
        self._stages: list[Stage] = []
        self._keepers: dict[str, Keeper] = {}
        self._full: dict[str, float] = {}  # place at which the keeper of a line was first seen to be full
        self._native, self._workers = NativeLines(), WorkerLines()
        self._of_workers: dict[str, float] = {}  # shares of lines
        self._searched = self._next_search = 0.0  # seconds: given to searches, and after which there is one again
        self._lock, self._ended, self._stopped = threading.Lock(), threading.Event(), threading.Event()
        self._began = 0.0
        self._has_end = False  # whether the last snapshot is one after the last step, or of the end of a run by time
        self._machine = machine()
        self._process = os.getpid()
        self.expected_steps = 0
        """Steps that there will be, if that is known."""
        self.stats: Stats | None = None
        """The statistics, once the block has ended."""
        self.fault = ""
        """The first error of the profiler, which was left out of the report."""

    def __enter__(self) -> Watch:
        """Begin to take snapshots."""
        restart_peak()
        if self._wants_trace:
            self._workers.open()
        self._process = os.getpid()
        self._stages.append(stage("before", "at the beginning of the block"))
        self._began = time.perf_counter()
        _running.add(self)
        start_thread(self._watch_clock)
        return self

    def step(self) -> None:
        """Count a step: call it where the code repeats, so that growth is measured per step rather than per time."""
        if os.getpid() != self._process:  # a copy of the process, in which no clock runs
            return
        with self._lock:
            self._steps += 1
            if self._steps == 1:
                self._state = State.TRACING
                self._settle("first step", "before the first step was counted")
            has_time = self._steps % self._every == 0 and time.process_time() >= self._free
            if has_time or self._steps >= self._due:
                start = time.thread_time()
                self._garbage.collect()
                self._take(self._steps)
                self._due = self._steps * _MOST_APART
                self._free = time.process_time() + _COST * (time.thread_time() - start)
                self._go_on()
                self._search_now_and_then()
                self._native.skip()

    def missing_steps(self) -> int:
        """Return after how many more steps an answer that is undecided now will be known; 0: it is not, or too few."""
        with self._lock:
            if self._log.last_step != self._steps:
                self._garbage.collect()
                self._take(self._steps)
            before = held_bytes()
            growths = growths_of(self._measurements(with_lines=False))
            self._log.exclude(before)
        is_open = combined_verdict(growths) == "undecided"
        return max(0, math.ceil(decided_at(growths, self._steps)) - self._steps) if is_open else 0

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Take the last snapshot, compute the statistics and write the reports, after an error too."""
        if os.getpid() != self._process:
            return
        end = self._milliseconds()
        self._ended.set()
        _running.discard(self)
        self._stopped.wait()  # a search may last for a while: that is no time of the block
        self._native.close()
        if not self._steps or self._log.last_step != self._steps:
            self._garbage.collect()
            self._take(self._steps or max(end, self._log.last_step), last=True)
            self._has_end = True
        self._garbage.include()
        self._stages.append(stage("after", "at the end of the block"))
        self._search(_LAST_SEARCH_SECONDS)
        judged = judged_steps(self._measurements(with_lines=False))
        self._of_workers, keepers = self._workers.close(*judged)
        self._keepers |= {keeper.line: keeper for keeper in keepers}
        self._stop_tracing()
        self.stats = compute_stats(self._measurements())
        if self._folder is not None:
            write_reports(self.stats, self._folder, as_json=True, as_html=find_spec("jinja2") is not None)
        if self.fault and self._notify is None:
            sys.stderr.write(f"nclone-env: {self.fault}\n")

    def __str__(self) -> str:
        """Return the answer in a few lines."""
        return "still running" if self.stats is None else text_of([summary(self.stats)])

    def so_far(self) -> str:
        """Return the verdict on what was seen until now, with the line that grew most; empty if there is none yet.

        It is for the thread of the clock, or for that which calls :meth:`step`.
        """
        if not len(self._log) or self._native.is_watching:
            return ""
        before = held_bytes()
        stats = compute_stats(self._measurements())
        self._traced.measure_again()
        self._log.exclude(before)
        wanted = ("growth", "grew") if stats.grown_lines else ("growth",)  # those of workers are known at the end
        return "; ".join(texts[0] for name, texts in answers(stats).items() if name in wanted)

    def _watch_clock(self) -> None:
        """Look at the threads, and take snapshots by time until a step is counted, until the block ends."""
        try:
            while not self._ended.wait(_TICK):
                with self._outliving(), self._lock:
                    self._tick()
                with self._outliving():
                    if self._notify is not None:
                        self._notify(time.perf_counter() - self._began)
        finally:
            self._stopped.set()

    @contextmanager
    def _outliving(self) -> Iterator[None]:
        """Go on after an error inside the block: the code may have replaced, closed or forbidden what it needs."""
        try:
            yield
        except OSError:
            pass  # no file descriptor is left for /proc: the code has all of them
        except Exception as error:  # noqa: BLE001 - the code shall survive any fault of the profiler
            self.fault = self.fault or fault_of(error)

    def _tick(self) -> None:
        if self._native.is_watching:  # whose count this would disturb
            return
        now = self._milliseconds()
        self._loads = self._loading.look(self._steps or now, now, self._workers.are_loading())
        if self._steps:
            return
        if now >= self._next and not self._loads:  # what is judged ends before imports and compilation
            start = time.thread_time()  # what it costs; waiting for the interpreter costs the program nothing
            with _promptly():
                self._garbage.collect()
                self._take(now)
                took = time.thread_time() - start
                each = (now - self._settled) / PARTS / 1000  # a short run needs some snapshots, too
                rest = min(_COST * took, max(2 * took, each))
                self._next = self._milliseconds() + 1000 * max(_FIRST_INTERVAL * self._every, rest)
                self._search_now_and_then()
        self._go_on()

    def _go_on(self) -> None:
        for is_time, change, state in self._NEXT[self._state]:
            if is_time(self):
                change(self)
                self._state = state
                return

    def _is_quiet(self) -> bool:
        now = self._milliseconds()
        return not self._loads and now - self._loading.last > max(1000 * _QUIET, _QUIET_SHARE * now)

    def _loads_again(self) -> bool:
        if self._steps or not self._loads:
            return False
        return self._milliseconds() - self._settled < max(self._settled, 1000 * _EARLY)

    def _nothing_grew(self) -> bool:
        """Return whether all is flat, after tracing for so many processor seconds and steps."""
        reached = time.process_time(), float(self._steps)
        if not self._began_trace or min(map(sub, reached, self._traced_until)) < 0:
            return False
        self._trace_on()
        return all(item.verdict == "flat" for item in growths_of(self._measurements(with_lines=False)))

    def _grew(self) -> bool:
        """Return whether something was seen to grow without tracing."""
        now = self._milliseconds()
        if self._tracing is None or now < self._next_look:
            return False
        self._next_look = self._settled + _AGAIN * (now - self._settled)
        measured = self._measurements(with_lines=False)
        since = replace(measured, judged=(self._tracing[1], measured.snapshots[-1].step))
        return bool(growing_alone(growths_of(since)).keys() & {"native", "process"})

    def _settle(
        self, name: str = "imports and compilation", how: str = "until nothing was imported or compiled"
    ) -> None:
        """Begin what is judged: start to trace, forget the snapshots before."""
        self._garbage.include()
        self._stages.append(stage(name, how))
        self._filled.note()
        self._garbage.leave_out()
        self._garbage.all_full = True
        if self._wants_trace and not tracemalloc.is_tracing():
            start_tracing()
            self._began_trace = True
        self._log.clear()
        self._workers.clear()
        self._traced.clear()
        self._loading.restart()
        self._every = 1
        self._settled = self._next = self._milliseconds()
        self._worked = time.process_time()
        self._tracing = None
        self._trace_on()

    def _trace_on(self) -> None:
        steps = max(_TRACED_STEPS, _TRACED_SHARE * self.expected_steps) if self._steps or self.expected_steps else 0
        self._traced_until = time.process_time() + _TRACED, self._steps + steps

    def _end_trace(self) -> None:
        self._tracing = self._judged()
        before = held_bytes()
        self._stop_tracing()
        self._log.exclude(before)

    def _stop_tracing(self) -> None:
        """Stop to trace if this profile began to, unless it is another's turn to stop: profiles may overlap."""
        others = (other for other in _running if other is not self and other._state is State.TRACING)
        heir = next((other for other in others if other._wants_trace), None)
        if self._began_trace and heir is not None:
            heir._began_trace = True
        elif self._began_trace:
            tracemalloc.stop()
        self._began_trace = False

    def _trace_again(self) -> None:
        self._settle("program without tracing", "until memory was seen to grow")

    def _unsettle(self) -> None:
        self._stages.pop()
        self._garbage.include()
        self._settled = 0.0
        self._stop_tracing()

    _NEXT: ClassVar[Mapping[State, Sequence[tuple[Callable[[Watch], bool], Callable[[Watch], None], State]]]] = {
        State.WAITING: ((_is_quiet, _settle, State.TRACING),),
        State.TRACING: ((_loads_again, _unsettle, State.WAITING), (_nothing_grew, _end_trace, State.COUNTING)),
        State.COUNTING: ((_grew, _trace_again, State.TRACING),),
    }
    """When a state ends, what is done then, and the next state; the first step leads to tracing from any."""

    def _milliseconds(self) -> float:
        return (time.perf_counter() - self._began) * 1000

    def _take(self, place: float, last: bool = False) -> None:
        if len(self._log) == _CAPACITY:
            self._log.thin()
            self._workers.thin()
            if self._tracing is None:
                self._traced.thin()
            self._every *= 2
        tree = self._owner.memory() if self._owner is not None else _NOTHING
        left = self._traced.left + self._filled.grown_bytes()
        self._log.take(place, tree, self._traced.nbytes, left, self._workers.taken)
        self._workers.note(place, self._log.workers)
        if self._wants_trace and self._tracing is None:
            self._traced.take(place, lines=True, always=last)

    def _search_now_and_then(self) -> None:
        """Search if there is time: the code runs at half its speed meanwhile, and leaks less by time."""
        elapsed = (self._milliseconds() - self._settled) / 1000
        if self._steps:  # the code waits meanwhile: a busy machine leaves it less time than the clock says
            elapsed = time.process_time() - self._worked
        if elapsed > max(_SEARCH_AFTER, self._next_search, self._searched * _SEARCH_COST):
            self._next_search = elapsed * _AGAIN
            self._search(min(elapsed / _SEARCH_COST, _SEARCH_SECONDS))

    def _search(self, seconds: float) -> None:
        """Look for the lines and the keepers of what grows, for so many seconds at most."""
        start = time.thread_time()
        growths = growths_of(self._measurements(with_lines=False))
        growing = growing_alone(growths)
        if self._wants_trace and "workers" in growing:
            self._workers.request()
        if growing.keys() & {"traced", "native", "process"}:
            before = held_bytes()
            with self._outliving():
                if "process" in growing:
                    self._filled.note()
                self._find_keepers(traced_lines(self._measurements(), growths), seconds)
            if not self._ended.is_set():
                self._garbage.leave_out()
            if self._steps:  # otherwise the code runs at the same time, and what it takes counts
                self._log.exclude(before)
            self._traced.measure_again()
        if self._wants_trace and "native" in growing:  # now that nothing else takes memory
            stretch = min(seconds, _STRETCH_SECONDS)
            elapsed = max(1.0, self._milliseconds() - self._settled)
            rate = growing["native"].slope * (self._steps or elapsed) / elapsed
            self._native.watch(stretch, rate, by_clock=not self._steps)
            self._searched += stretch
        self._searched += time.thread_time() - start

    def _find_keepers(self, grown: Sequence[GrownLine], seconds: float) -> None:
        """Find them for the lines without one, and at the end for all: by what is left of the whole run."""
        is_end, known = self._ended.is_set(), self._keepers
        by_clock = not (is_end or self._steps)
        lines = [line for line in culprits(grown) if is_end or line.place not in known or known[line.place].doubt]

        def include() -> None:
            self._garbage.include()
            self._garbage.collect()  # now, or Python does at every turn: it has not counted what was left out

        is_possible = lines and tracemalloc.is_tracing()
        found = find_keepers(lines, Budget(seconds, by_clock), include, is_end) if is_possible else ()
        now = self._steps or self._milliseconds()
        for keeper in (*found, *find_graphs(Budget(seconds / 3, by_clock), include)):
            if keeper.is_full:  # what it took while it filled is no leak, and may be all until twice the time
                keeper = replace(keeper, is_filling=now < 2 * self._full.setdefault(keeper.line, now))
            old = known.get(keeper.line, keeper)
            if keeper.doubt <= old.doubt:
                is_same = keeper.name.split(" < ")[0] == old.name.split(" < ")[0]  # a function may have returned
                known[keeper.line] = replace(keeper, name=old.name) if is_same and not old.doubt else keeper

    def _judged(self) -> tuple[float, float]:
        """Return the bounds of the longest part without imports and compilation, without its warm-up."""
        snapshots = self._log.snapshots()
        if not snapshots:
            return 0.0, 0.0
        steps = [item.step for item in snapshots]
        if self._has_end and len(steps) > MIN_SNAPSHOTS:
            steps.pop()  # what the code held is gone when its function has returned
        first, last = self._loading.longest_without(steps[0] if not self._steps else 0.0, steps[-1])
        return first + WARM_UP_SHARE * (last - first), last

    def _floors(self) -> dict[str, int]:
        workers = floor_of_workers(self._workers.most)
        return {**_FLOORS, "workers": workers, **({} if self._garbage.all_full else {"traced": FREE_LISTS})}

    def _measurements(self, with_lines: bool = True) -> Measurements:
        snapshots = self._log.snapshots()
        last = snapshots[-1].step
        owners = () if self._owner is None else owned_nodes(self._owner.memory())
        return Measurements(
            machine=self._machine,
            settings=ProfileSettings(self._num_envs, steps=max(1, math.ceil(last))),
            name=self._name,
            unit="step" if self._steps else TIME_UNIT,
            facts=(),
            env_steps=0,
            owners=owners,
            advice=chosen(of_kept_results(owners), owners),
            snapshots=snapshots,
            stages=tuple(self._stages),
            traced=self._traced.records() if self._wants_trace else (),
            floors=self._floors(),
            line_steps=self._traced.line_steps(),
            lines=self._traced.lines() if with_lines else (),
            untraced=(
                *(UntracedLine(NATIVE, place, share) for place, share in self._native.shares().items()),
                *(UntracedLine(WORKER, place, share) for place, share in self._of_workers.items()),
            ),
            keepers=tuple(self._keepers.values()),
            judged=self._judged(),
            tracing=self._tracing,
            loading=self._loading.milliseconds / max(1.0, self._milliseconds()),
        )


def fault_of(error: Exception) -> str:
    """Return an error of the profiler in one line, without its sources: they may not be readable here."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = f", line {trace.tb_lineno} of {os.path.basename(trace.tb_frame.f_code.co_filename)}" if trace else ""
    return f"the profile is incomplete: {type(error).__name__}: {plain(error)}{place}"


@contextmanager
def _promptly() -> Iterator[None]:
    """Let this thread run again soon after each system call.

    A thread that waits for the interpreter asks for it after the switch interval, but only if no thread released it
    meanwhile. A program that calls kernels does so all the time, and a snapshot would take seconds.
    """
    before = sys.getswitchinterval()
    sys.setswitchinterval(_PROMPT)
    try:
        yield
    finally:
        if math.isclose(sys.getswitchinterval(), _PROMPT):  # else the program has set it meanwhile
            sys.setswitchinterval(before)


@checked()
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
    block makes none. Imports and compilation are left out. The verdict is that of ``nclone-env profile``.

    Args:
        name: what is profiled, for the report.
        owner: an environment, or anything else with ``memory()``, whose arrays are told apart from the rest.
        num_envs: number of environments, if the block has any.
        output_dir: folder for the reports, with a page of HTML if Jinja2 is installed; None: none are written,
            ``str()`` of the object is the answer.
        trace: find the source lines by tracemalloc. It slows down code that makes many small objects, so it ends after
            20 s of processor time and 200 steps in which nothing grew, and begins again when something does.

    Returns:
        An object with ``step()``, and with ``stats`` once the block has ended.

    Example:
        >>> with profile(owner=envs) as watch:
        ...     for _ in range(1000):
        ...         envs.step(envs.action_space.sample())
        ...         watch.step()
        >>> print(watch)
    """
    return Watch(name, owner, num_envs, None if output_dir is None else expanded(output_dir), trace)
