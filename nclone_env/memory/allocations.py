"""Every allocation of the steps, recorded by memray in a pass of its own.

tracemalloc shows what is live; what a step allocates and frees again only a recording of all calls shows. memray also
sees the allocations of native code, and its flame graph shows native frames.
"""

import subprocess
import sys
from contextlib import closing
from pathlib import Path
from tempfile import gettempdir
from typing import Any, NamedTuple

from nclone_env._files import temporary_beside
from nclone_env.errors import optional_module
from nclone_env.memory.measurements import AllocatingLine
from nclone_env.memory.subject import Subject, Target

_FRAMES = 12
_WARM_UP = 10
_STEPS = 100
"""Steps that are recorded at most; each allocation is an entry of the file."""
_PROFILER = str(Path(__file__).parent)


class Allocations(NamedTuple):
    """What memray recorded."""

    lines: tuple[AllocatingLine, ...]
    """Every line that allocated in the recorded steps."""
    steps: int
    """Number of recorded steps."""
    flame_graph: bytes
    """memray's page: live memory at the peak while environments were made and stepped for the first time."""


def memray_module() -> Any:
    """Import memray.

    Raises:
        MissingExtraError: if it is not installed.
    """
    return optional_module("memray", "profile")


def record_allocations(target: Target, num_envs: int, steps: int) -> Allocations:
    """Record what making environments and stepping them allocates in this process.

    Args:
        steps: steps of the run; at most ``_STEPS`` of them are recorded.

    Raises:
        MissingExtraError: if memray is not installed.
    """
    memray, steps = memray_module(), min(steps, _STEPS)
    with temporary_beside(Path(gettempdir(), "memray"), folder=True) as folder:
        made, stepped = folder / "made.bin", folder / "stepped.bin"
        aggregated = memray.FileFormat.AGGREGATED_ALLOCATIONS
        with memray.Tracker(made, native_traces=True, file_format=aggregated):
            subject = target.make(num_envs)
            _step(subject, _WARM_UP)
        with closing(subject), memray.Tracker(stepped, trace_python_allocators=True):
            _step(subject, steps)
        return Allocations(_lines(memray, stepped), steps, _flame_graph(made))


def _step(subject: Subject, steps: int) -> None:
    for _ in range(steps):
        subject.step()


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
            before = found.get(place) or AllocatingLine(*_split(place), 0, 0, tuple(callers))
            found[place] = before.with_more(record.n_allocations, record.size)
    return tuple(found.values())


def _split(place: str) -> tuple[str, int]:
    file, _, line = place.rpartition(":")
    return file, int(line)


def _flame_graph(file: Path) -> bytes:
    page = file.with_suffix(".html")
    command = [sys.executable, "-m", "memray", "flamegraph", "--force", "--no-web", "--output", str(page), str(file)]
    subprocess.run(command, capture_output=True, check=True)
    return page.read_bytes()
