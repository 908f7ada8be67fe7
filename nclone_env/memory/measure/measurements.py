"""Measurements: the raw measurements of a profiling run.

All sizes are in bytes and all times in seconds of wall clock; steps are counted from 0 (just after ``make``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

INTERPRETER, LIBRARIES, COMPILED_CODE = "interpreter", "libraries", "compiled code"
MADE, FIRST_STEPS, STEPS = "made", "first steps", "steps"
TIME_UNIT = "millisecond"
"""Unit of code that counts no steps."""
NATIVE, WORKER = "native code", "a worker process"
"""What allocates memory that tracemalloc does not see in this process."""
_FEWEST_SNAPSHOTS = 10  # of a run that has as many steps; a larger interval is shortened
_DEFAULT_SNAPSHOTS = 20
WARM_UP_SHARE = 0.2
"""Share of a run during which the first episodes end and caches fill; its snapshots are not fitted."""
ARENA = 1024**2
FLOORS = {"traced": 2 * 1024, "native": 16 * 1024, "process": 128 * 1024, "workers": ARENA, "files": 256 * 1024}
"""Bytes by which each quantity may vary without anything growing: see docs/operation/verdicts.md."""
FREE_LISTS = 24 * 1024
"""The same for traced memory where objects are made and destroyed all the time."""
_EACH_WORKER = 128 * 1024


def floor_of_workers(count: int) -> int:
    """Return the bytes by which so many worker processes may vary together: 128 KB each, at least an arena."""
    return max(ARENA, _EACH_WORKER * count)


@dataclass(frozen=True)
class ProfileSettings:
    """Settings of a profiling run."""

    num_envs: int
    steps: int = 1000
    """Of each pass."""
    interval: int | None = None
    """Most steps between two snapshots; None: a twentieth of the steps."""

    def snapshot_steps(self) -> tuple[int, ...]:
        """Return the steps at which snapshots are taken: from 0 to the last in equal intervals."""
        longest = max(1, self.steps // _FEWEST_SNAPSHOTS)
        interval = min(self.interval or max(1, self.steps // _DEFAULT_SNAPSHOTS), longest)
        return (*range(0, self.steps, interval), self.steps)

    @property
    def warm_up_steps(self) -> int:
        """Snapshots before this step are ignored: a fifth of all steps, rounded up."""
        return math.ceil(self.steps * WARM_UP_SHARE)


@dataclass(frozen=True)
class Machine:
    """Description of the machine."""

    system: str
    processor: str
    cores: int
    python: str
    packages: tuple[tuple[str, str], ...]
    """(name, version) of the relevant packages."""
    resident_source: str
    """Source of resident memory: ``/proc/self/smaps_rollup`` or ``psutil``."""


@dataclass(frozen=True)
class Stage:
    """Memory of the process at the end of a named stage, and its largest during the stage."""

    name: str
    rss_bytes: int
    pss_bytes: int
    data_bytes: int
    """PSS without file-backed pages."""
    peak_bytes: int
    """Largest RSS during the stage; 0 if it is not measured here."""
    how: str


@dataclass(frozen=True)
class OwnedNode:
    """A node of the memory tree that the subject reports."""

    depth: int
    name: str
    shared_bytes: int
    """Bytes of the node and its children that all environments share."""
    environment_bytes: int
    """Bytes of the node and its children that grow with the number of environments."""
    committed_bytes: int
    """The part of both in committed pages, without mapped files."""
    mapped: bool


@dataclass(frozen=True)
class Advice:
    """A change that saves memory."""

    option: str
    """What to change: an option of the command line or of the code."""
    saved_bytes: int
    """Of the whole run; negative: what it takes."""
    text: str


@dataclass(frozen=True)
class Snapshot:
    """Memory after a step of the plain pass."""

    step: float
    """Number of the step; milliseconds for code that counts no steps."""
    rss_bytes: int
    pss_bytes: int
    data_bytes: int
    """Private resident pages, whatever other processes do."""
    worker_bytes: int
    """The same of all child processes; -1 while the profiler takes memory in one."""
    native_bytes: int
    """Bytes in use according to the C library's allocator, without the tables of tracemalloc; -1 if unknown."""
    owned_bytes: int
    """Bytes that the subject reports, without mapped files."""
    committed_bytes: int
    """The part of them in committed pages."""
    shared_file_bytes: int = 0
    """Bytes of the shared memory that the program made, written or not."""


@dataclass(frozen=True)
class Traced:
    """Memory traced by tracemalloc after a step of the traced pass, without the profiler's own memory."""

    step: float
    traced_bytes: int


class Place(NamedTuple):
    """The identity of a line in the report."""

    file: str
    line: int
    own: str
    """``file:line`` of the innermost call in the user's own files; empty: none."""


@dataclass(frozen=True)
class SourceLine:
    """Live memory allocated by one source line."""

    file: str
    line: int
    live_bytes: tuple[int, ...]
    """At each line snapshot."""
    blocks: tuple[int, ...]
    callers: tuple[str, ...] = ()
    """``file:line`` of the calls that led to the line, innermost first; of the largest part of its memory."""
    own: str = ""
    """As of a :class:`Place`."""


class UntracedLine(NamedTuple):
    """A line of the user behind memory that tracemalloc does not see in this process."""

    behind: str
    """``NATIVE`` or ``WORKER``."""
    place: str
    """``file:line``."""
    share: float
    """Of all that grew there."""


@dataclass(frozen=True)
class Keeper:
    """An object that keeps memory from being freed."""

    line: str
    """``file:line`` that allocated what is kept, or ``NATIVE``."""
    name: str
    """Names that lead to it, such as ``Keep.kept < env (train.py)``."""
    kind: str
    """What is kept: its type, and shape and dtype of arrays and tensors."""
    doubt: int = 0
    """0: a variable of the program or of a module leads to it; 1: one of a library's running code; more: less."""
    is_filling: bool = False
    """Whether it is a container with a limit that it has yet to reach, and that memory has room for: it will stop."""
    is_full: bool = False
    """Whether it is one that has reached its limit."""


@dataclass(frozen=True)
class AllocatingLine:
    """What one source line allocated in all recorded steps, freed again or not."""

    file: str
    line: int
    blocks: int
    allocated_bytes: int
    callers: tuple[str, ...] = ()
    """As of a :class:`SourceLine`, but of the first time."""


class Allocations(NamedTuple):
    """What memray recorded."""

    lines: tuple[AllocatingLine, ...]
    """All that allocated in the recorded steps."""
    steps: int
    flame_graph: bytes
    """memray's page: live memory at the peak while environments were made and stepped for the first time."""


@dataclass(frozen=True)
class PhaseTime:
    """A part of a step that was timed alone."""

    name: str
    seconds: float
    """Median over steps."""


@dataclass(frozen=True)
class FunctionTime:
    """Time spent in one function, measured by cProfile."""

    file: str
    line: int
    name: str
    calls: int
    own_seconds: float
    cumulative_seconds: float


@dataclass(frozen=True)
class SizePoint:
    """Memory that a number of environments takes in a fresh process, beside one and what they share with it."""

    num_envs: int
    data_bytes: int
    """PSS without file-backed pages and without freed heap, child processes included."""
    worker_bytes: int
    """The part of them in child processes."""
    owned_bytes: int
    """Bytes reported as growing with the number of environments."""
    committed_bytes: int
    """Bytes of what is reported, without what that one shares, in committed pages."""
    python_bytes: int | None
    """Bytes traced by tracemalloc less the reported ones; None: not traced, as tracing would disturb the others."""


@dataclass(frozen=True)
class Measurements:
    """All measurements of a profiling run. What a kind of run does not measure is empty."""

    machine: Machine
    settings: ProfileSettings
    name: str
    unit: str
    """What a step is; "millisecond" if no steps were counted."""
    facts: tuple[tuple[str, str], ...]
    env_steps: int
    """Environment steps of a step; 0: they are not counted."""
    snapshots: tuple[Snapshot, ...]
    floors: Mapping[str, int] = field(default_factory=lambda: FLOORS)
    stages: tuple[Stage, ...] = ()
    owners: tuple[OwnedNode, ...] = ()
    """The memory tree after the last step, parents first."""
    advice: tuple[Advice, ...] = ()
    """What saves most first."""
    traced: tuple[Traced, ...] = ()
    line_steps: tuple[float, ...] = ()
    """Step of each line snapshot."""
    lines: tuple[SourceLine, ...] = ()
    untraced: tuple[UntracedLine, ...] = ()
    """Lines of the user behind memory that grew and that tracemalloc does not see in this process."""
    keepers: tuple[Keeper, ...] = ()
    judged: tuple[float, float] | None = None
    """First and last step of the part that is judged; None: all after the warm-up of ``settings``."""
    tracing: tuple[float, float] | None = None
    """The same of traced memory, where tracing ended earlier; None: as long as everything else."""
    loading: float = 0.0
    """Share of the run in which code was imported or compiled, which is not judged."""
    step_peaks: tuple[int, ...] = ()
    """Bytes that each step of the traced pass allocated at most above its start."""
    sizes: tuple[SizePoint, ...] = ()
    allocations: Allocations | None = None
    phases: tuple[PhaseTime, ...] = ()
    """The whole step, then its parts."""
    functions: tuple[FunctionTime, ...] = ()
    profile: bytes = b""
    """In the format that ``pstats`` and ``snakeviz`` read."""
    step_seconds: tuple[float, ...] = ()
    """Of each step of the plain pass."""
    profiled_seconds: float = 0.0
    """Of all steps under cProfile."""
