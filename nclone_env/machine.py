"""What this process has of the machine: processor cores and memory, and the check that something fits into it."""

import os
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
_LIMITS = (("memory.max", "memory.current"), ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"))
"""Files of the limit and of the usage, in cgroups of version 2 and of version 1."""


def available_cores() -> int:
    """Return the number of processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def available_bytes() -> int | None:
    """Return the memory that is left, the least of machine, cgroup and address space; None if it is unknown."""
    found = [size for size in (_left_on_machine(), _left_in_cgroup(), _left_of_addresses()) if size is not None]
    return min(found, default=None)


def check_address_space(command: str, needed: int) -> None:
    """Reject a limit of address space (``ulimit -v``) under which libraries would abort as they are loaded.

    Args:
        command: name of the command, for the message.
        needed: bytes.
    """
    allowed = _addresses()
    if allowed is not None and allowed < needed:
        raise MemoryLimitError(
            f"{command}: expected a limit of address space of at least {format_bytes(needed)}, "
            f"got {format_bytes(allowed)}; raise it by ulimit -v"
        )


def check_fits(argument: str, count: int, each: float, once: float = 0.0, limit: int | None = None) -> None:
    """Reject a number of things whose memory exceeds the limit.

    Args:
        argument: name of the number, for the message.
        count: the number.
        each: bytes of each.
        once: bytes besides.
        limit: bytes; None: what is available.
    """
    allowed, source = (available_bytes(), "available") if limit is None else (limit, "allowed")
    needed = once + count * each
    if allowed is None or needed <= allowed:
        return
    fitting = max(0, int((allowed - once) // each))
    advice = f"at most {fitting:,} fit" if fitting else "not even one fits"
    raise MemoryLimitError(
        f"{argument}: {count:,} need {format_bytes(needed)} ({format_bytes(each)} each), "
        f"but {format_bytes(allowed)} are {source}; {advice}"
    )


def _left_on_machine() -> int | None:
    lines = _MEMINFO.read_text().splitlines() if _MEMINFO.exists() else []
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")), None)


def _left_in_cgroup() -> int | None:
    for limit, usage in _LIMITS:
        try:
            return int((_CGROUP / limit).read_text()) - int((_CGROUP / usage).read_text())
        except (OSError, ValueError):  # no such cgroup, or "max"
            continue
    return None


def _addresses() -> int | None:
    """Return the limit of this process's address space; None if there is none."""
    if resource is None:
        return None
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return None if limit == resource.RLIM_INFINITY else limit


def _left_of_addresses() -> int | None:
    allowed = _addresses()
    if allowed is None or not _STATUS.exists():
        return allowed
    used = next(int(line.split()[1]) for line in _STATUS.read_text().splitlines() if line.startswith("VmSize:"))
    return allowed - used * 1024
