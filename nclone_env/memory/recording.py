"""Recording: the raw measurements of a profiling run.

All sizes are in bytes and all times in seconds of wall clock; steps are counted from 0 (just after ``reset``).
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
WARM_UP_SHARE = 0.2  # of all steps, during which the first episodes end and caches fill


@dataclass(frozen=True)
class ProfileSettings:
    """Settings of a profiling run."""

    num_envs: int
    """Number of environments in the batch."""
    steps: int = 1000
    """Vector steps per pass."""
    interval: int = 100
    """Steps between snapshots; the last step always has one."""
    seed: int = 0
    """Seed of the environments and of the random actions."""
    levels: tuple[str, ...] = ()
    """Names of the levels, for the report."""
    observations: tuple[str, ...] = ()
    """Names of the observations, for the report."""

    def snapshot_steps(self) -> tuple[int, ...]:
        """Return the steps at which snapshots are taken: 0, every ``interval`` steps, and the last."""
        regular = range(0, self.steps, self.interval)
        return (*regular, self.steps)

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
    """Resident memory of the process at a named stage."""

    name: str
    pss_bytes: int
    """Proportional set size: pages shared by several processes count in proportion."""
    how: str
    """Method of measurement, for the report."""


@dataclass(frozen=True)
class Resident:
    """Resident memory of the process after a step of the plain pass."""

    step: int
    rss_bytes: int
    """Resident set size: all resident pages."""
    pss_bytes: int
    """Proportional set size: pages shared by several processes count in proportion."""
    data_bytes: int
    """PSS without file-backed pages: heap, stacks, shared memory. Independent of other processes."""


@dataclass(frozen=True)
class Traced:
    """Memory traced by tracemalloc after a step of the traced pass, without the profiler's own memory."""

    step: int
    traced_bytes: int
    blocks: int


@dataclass(frozen=True)
class SourceLine:
    """Live memory allocated by one source line."""

    file: str
    line: int
    live_bytes: int
    blocks: int


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
class Recording:
    """All measurements of a profiling run."""

    machine: Machine
    settings: ProfileSettings
    stages: tuple[Stage, ...]
    """In chronological order."""
    memory: MemoryNode
    """Memory tree of the environments at the stage ``environments``."""
    resident: tuple[Resident, ...]
    traced: tuple[Traced, ...]
    first_lines: tuple[SourceLine, ...]
    """All lines with live memory at the first snapshot after the warm-up."""
    last_lines: tuple[SourceLine, ...]
    """All lines with live memory at the last snapshot."""
    functions: tuple[FunctionTime, ...]
    plain_seconds: float
    """Time of all steps of the plain pass, without snapshots."""
    profiled_seconds: float
    """Time of all steps under cProfile."""
