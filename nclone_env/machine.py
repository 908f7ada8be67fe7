"""What this process has of the machine: processor cores and memory, and the check that something fits into it."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from nclone_env._table import format_bytes
from nclone_env.errors import MemoryLimitError

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

_MEMINFO = Path("/proc/meminfo")
_STATUS = Path("/proc/self/status")
_CGROUP = Path("/sys/fs/cgroup")
_OWN_CGROUPS = Path("/proc/self/cgroup")
_MEMORY_LIMITS = (
    ("memory.max", "memory.current", "inactive_file"),
    ("memory.high", "memory.current", "inactive_file"),
    ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)
"""Files of limit and usage, and the line of ``memory.stat`` with the part that the kernel frees before a limit, the
contents of files. In cgroups of version 2 (of two limits, one kills and one slows down) and of version 1."""
_SMALL = 1 << 20
"""Bytes that are taken without a look at what is left, which would be a third of the time to play a short run."""


def available_cores() -> int:
    """Return the number of processor cores that this process may use: those of its affinity, at most its quota."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min([cores, *_quotas()]))


def default_workers(tasks: int, bytes_each: int = 0) -> int:
    """Return how many of some tasks to do at once: one per core, and no more than there is memory for."""
    memory = available_bytes()
    fitting = tasks if memory is None or not bytes_each else memory // bytes_each
    return max(1, min(available_cores(), tasks, fitting))


def _quotas() -> Iterator[int]:
    """Yield the processor quotas of this process's cgroups, in whole cores, rounded up."""
    for folder in _cgroups("cpu"):
        try:
            if (folder / "cpu.max").exists():
                quota, period = map(int, (folder / "cpu.max").read_text().split())
            else:
                quota, period = (int((folder / f"cpu.cfs_{name}_us").read_text()) for name in ("quota", "period"))
            if quota > 0:
                yield -(-quota // period)
        except (OSError, ValueError, ZeroDivisionError):  # no such file, or "max"
            continue


def _cgroups(controller: str) -> Iterator[Path]:
    """Yield the folders of the cgroups that limit this process, from its own ones to the roots, of either version."""
    for line in _lines(_OWN_CGROUPS) or ["0::/"]:
        _, controllers, path = (*line.split(":", 2), "", "")[:3]
        if controllers and controller not in controllers.split(","):
            continue
        roots = (
            {_CGROUP / name for name in (controller, controllers)} if controllers else {_CGROUP, _CGROUP / "unified"}
        )
        for root in sorted(roots):  # some systems lack the link ``cpu`` to ``cpu,cpuacct``
            folder = Path(os.path.normpath(root / path.lstrip("/")))  # "/../job" is beside the root, out of sight
            yield from (part for part in (folder, *folder.parents, root) if part.is_relative_to(root))


def available_bytes() -> int | None:
    """Return the memory that is left, the least of machine, cgroup and address space; None if it is unknown."""
    found = [_left_on_machine(), _left_of_addresses(), *_left_in_cgroups()]
    return min((size for size in found if size is not None), default=None)


def check_address_space(command: str, needed: int) -> None:
    """Reject a limit of address space (``ulimit -v``), bytes, under which libraries would abort as they are loaded."""
    allowed = _addresses()
    if allowed is not None and allowed < needed:
        raise MemoryLimitError(
            f"{command}: expected a limit of address space of at least {format_bytes(needed)}, "
            f"got {format_bytes(allowed)}; raise it by ulimit -v"
        )


def check_fits(argument: str, count: int, each: float, once: float = 0.0, limit: int | None = None) -> None:
    """Reject things whose bytes, ``each`` and ``once`` besides, exceed the limit; None: what is available."""
    needed = once + count * each
    if limit is None and needed <= _SMALL:
        return
    allowed, source = (available_bytes(), "available") if limit is None else (limit, "allowed")
    if allowed is None or needed <= allowed:
        return
    fitting = max(0, int((allowed - once) // each))
    advice = f"at most {fitting:,} fit" if fitting else "not even one fits"
    raise MemoryLimitError(
        f"{argument}: {count:,} need {format_bytes(needed)} ({format_bytes(each)} each), "
        f"but {format_bytes(allowed)} are {source}; {advice}"
    )


def _left_on_machine() -> int | None:
    kilobytes = _statistic(_MEMINFO, "MemAvailable:")
    return None if kilobytes is None else kilobytes * 1024


def _left_in_cgroups() -> Iterator[int]:
    for folder in _cgroups("memory"):
        for limit, usage, freed in _MEMORY_LIMITS:
            try:
                left = int((folder / limit).read_text()) - int((folder / usage).read_text())
            except (OSError, ValueError):  # no such file, or "max"
                continue
            yield max(0, left + (_statistic(folder / "memory.stat", freed) or 0))


def _statistic(path: Path, name: str) -> int | None:
    """Return a number of a file of names and numbers, None if it is not there."""
    with suppress(ValueError, IndexError):
        return next((int(line.split()[1]) for line in _lines(path) if line.split()[:1] == [name]), None)
    return None


def _lines(path: Path) -> list[str]:
    """Return the lines of a file of the system, none if it is not there or may not be read, as in some containers."""
    with suppress(OSError):
        return path.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    return []


def _addresses() -> int | None:
    """Return the limit of this process's address space; None if there is none."""
    if resource is None:
        return None
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return None if limit == resource.RLIM_INFINITY else limit


def _left_of_addresses() -> int | None:
    allowed = _addresses()
    return allowed if allowed is None else allowed - (_statistic(_STATUS, "VmSize:") or 0) * 1024
