"""Recording: what a profiling run measured, before anything is computed from it.

All sizes are bytes, all times seconds of wall clock, all steps counted from 0 (just after ``reset``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from nclone_env.memory_tree import MemoryNode

INTERPRETER, LIBRARIES, COMPILED_CODE, ENVIRONMENTS = (
    "interpreter",
    "libraries",
    "compiled code",
    "environments",
)
WARM_UP_SHARE = 0.2  # of all steps: the first episodes end and caches fill


@dataclass(frozen=True)
class ProfileSettings:
    """What was asked for."""

    num_envs: int
    """Environments in the batch."""
    steps: int = 1000
    """Steps of the batch in each pass."""
    interval: int = 100
    """Steps between two snapshots; the last step always has one."""
    seed: int = 0
    """Seed of the environments and of the random actions."""
    levels: tuple[str, ...] = ()
    """Names of the levels played, for the report."""
    observations: tuple[str, ...] = ()
    """Names of the observations made, for the report."""

    def snapshot_steps(self) -> tuple[int, ...]:
        """Return the steps at which snapshots are taken: 0, every ``interval`` steps, and the last."""
        regular = range(0, self.steps, self.interval)
        return (*regular, self.steps)

    @property
    def warm_up_steps(self) -> int:
        """Snapshots taken before this step do not count: a fifth of all steps, rounded up."""
        return math.ceil(self.steps * WARM_UP_SHARE)


@dataclass(frozen=True)
class Machine:
    """Where it was measured."""

    system: str
    processor: str
    cores: int
    python: str
    packages: tuple[tuple[str, str], ...]
    """(name, version) of the packages that matter."""
    resident_source: str
    """Where resident memory was read: ``/proc/self/smaps_rollup`` or ``psutil``."""


@dataclass(frozen=True)
class Stage:
    """Resident memory of the process when a named stage was reached."""

    name: str
    pss_bytes: int
    """Resident memory so far, pages shared by several processes divided among them."""
    how: str
    """How it was measured, for the report."""


@dataclass(frozen=True)
class Resident:
    """Resident memory of the process after a step of the untraced pass."""

    step: int
    rss_bytes: int
    """All resident pages."""
    pss_bytes: int
    """The same, pages shared by several processes divided among them."""
    data_bytes: int
    """PSS without pages of files: heap, stacks, shared memory. Other processes coming and going leave it."""


@dataclass(frozen=True)
class Traced:
    """What tracemalloc held after a step of the traced pass, without the profiler's own memory."""

    step: int
    traced_bytes: int
    blocks: int


@dataclass(frozen=True)
class SourceLine:
    """Live memory allocated by one line of source."""

    file: str
    line: int
    live_bytes: int
    blocks: int


@dataclass(frozen=True)
class FunctionTime:
    """Time spent in one function, as cProfile saw it."""

    file: str
    line: int
    name: str
    calls: int
    own_seconds: float
    cumulative_seconds: float


@dataclass(frozen=True)
class Recording:
    """Everything a profiling run measured."""

    machine: Machine
    settings: ProfileSettings
    stages: tuple[Stage, ...]
    """In the order in which they were reached."""
    memory: MemoryNode
    """What the environments reported when the stage ``environments`` was reached."""
    resident: tuple[Resident, ...]
    traced: tuple[Traced, ...]
    first_lines: tuple[SourceLine, ...]
    """Every line with live memory at the first snapshot after the warm-up."""
    last_lines: tuple[SourceLine, ...]
    """Every line with live memory at the last snapshot."""
    functions: tuple[FunctionTime, ...]
    plain_seconds: float
    """Time of all steps of the pass without tracing or profiling; snapshots not included."""
    profiled_seconds: float
    """Time of all steps under cProfile."""
