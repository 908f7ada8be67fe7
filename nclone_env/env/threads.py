"""Splits a batch of environments over threads: the kernels release the interpreter lock."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from nclone_env._jit import kernel

_SMALLEST_SHARE = 64  # environments per thread below which handing work over costs more than it saves


class Shards:
    """Runs a kernel over ranges of environments, one range a thread; results do not depend on the split."""

    def __init__(self, num_envs: int, num_threads: int | None = None):
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        threads = num_threads or min(cores, max(1, num_envs // _SMALLEST_SHARE))
        self.count = max(1, min(threads, num_envs))
        edges = [num_envs * part // self.count for part in range(self.count + 1)]
        self._ranges = list(itertools.pairwise(edges))
        self._pool: ThreadPoolExecutor | None = None
        self._owner = 0

    def run(self, task: Callable[[int, int], None]) -> None:
        """Call ``task(first, last)`` for every range and wait for all."""
        if self.count == 1:
            task(*self._ranges[0])
            return
        pool = self._live_pool()
        waiting = [pool.submit(task, *part) for part in self._ranges[1:]]
        task(*self._ranges[0])
        for future in waiting:
            future.result()

    def _live_pool(self) -> ThreadPoolExecutor:
        """Return the pool; threads do not survive a fork, so a child process starts its own."""
        if self._pool is None or self._owner != os.getpid():
            self._pool = ThreadPoolExecutor(self.count - 1, thread_name_prefix="nclone-env")
            self._owner = os.getpid()
        return self._pool

    def close(self) -> None:
        """End the threads."""
        if self._pool is not None and self._owner == os.getpid():
            self._pool.shutdown()
        self._pool = None


@kernel
def share_of(index, num_envs, count):
    """Return in which of ``count`` ranges of :class:`Shards` an environment is: the scratch row of its thread."""
    return ((index + 1) * count - 1) // num_envs
