"""The memory available to this process, and the check that something fits before it is allocated."""

from __future__ import annotations

from pathlib import Path

from nclone_env._table import format_bytes
from nclone_env.errors import MemoryLimitError

_MEMINFO = Path("/proc/meminfo")
_CGROUP = Path("/sys/fs/cgroup")
_LIMITS = (("memory.max", "memory.current"), ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"))
"""Files of the limit and of the usage, in cgroups of version 2 and of version 1."""


def available_bytes() -> int | None:
    """Return the memory that is left: of the machine, or of the cgroup if that has less; None if it is unknown."""
    found = [size for size in (_left_on_machine(), _left_in_cgroup()) if size is not None]
    return min(found, default=None)


def check_fits(argument: str, count: int, each: float, once: float = 0.0, limit: int | None = None) -> None:
    """Reject a number of things whose memory exceeds the limit.

    Args:
        argument: name of the number, for the message.
        count: the number.
        each: bytes of each.
        once: bytes besides.
        limit: bytes; None: what is available.

    Raises:
        MemoryLimitError: if it does not fit; the message names the largest number that does.
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
