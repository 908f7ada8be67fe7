"""One copy of the levels for all processes: time to load them, and their share of memory in each process.

The kernels are compiled first (``nclone-env warmup``). In an empty folder, the first process compiles the levels and
writes the file, the next maps it; then all processes start at once, step their environments and wait, while
/proc/*/smaps gives the size of the mapped files in each: RSS counts all pages, PSS divides shared pages by the number
of processes. The last rows are without files, where every process has a private copy.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import queue
import re
import tempfile
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import numpy as np
import tyro

from nclone_env import _arrays
from nclone_env._cache import cache_root
from nclone_env.config import EnvironmentConfig
from nclone_env.env.vector import NPlusPlusVectorEnv
from nclone_env.level import level_library, load_levels, shared_level_set
from profiling.measure import describe, timed

STEPS = 50
_AREA = re.compile(r"^[0-9a-f]+-[0-9a-f]+ .{4} \S+ \S+ \S+ *(.*)$")


def mapped_memory() -> tuple[int, int]:
    """Return (RSS, PSS) of the library's files in this process, bytes."""
    rss = pss = 0
    ours = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        area = _AREA.match(line)
        if area:
            ours = area[1].removesuffix(" (deleted)").startswith(str(_arrays.folder()))
        elif ours and line.startswith(("Rss:", "Pss:")):
            size = int(line.split()[1]) * 1024
            rss, pss = (rss + size, pss) if line.startswith("Rss:") else (rss, pss + size)
    return rss, pss


def process_pss() -> int:
    """Return the PSS of this process, bytes."""
    rows = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return next(int(row.split()[1]) * 1024 for row in rows if row.startswith("Pss:"))


def load(levels: str, folder: str, answers: Any) -> None:
    """Time the reading of levels and the packing into a level set in a fresh process."""
    _enter(folder)
    loaded, reading = timed(lambda: load_levels([levels]))
    level_set, packing = timed(lambda: shared_level_set(loaded))
    answers.put((reading, packing, level_set.memory().total_bytes, level_library().counts))


def play(levels: str, folder: str, environments: int, pictures: bool, barrier: Barrier, answers: Any) -> None:
    """Step environments, wait for all processes, and report the memory that the levels take here."""
    _enter(folder)
    config = EnvironmentConfig.for_parallel_training(levels=(levels,))
    if pictures:
        config = config.replace(observations=("game_state", "player_frame", "global_view"))
    barrier.wait()
    env = NPlusPlusVectorEnv(config, environments, num_threads=1)
    env.reset(seed=0)
    for _ in range(STEPS):
        env.step(np.ones(environments, np.int64))
    barrier.wait()
    answers.put((os.getpid(), *mapped_memory(), process_pss(), env.memory().bytes_where(shared=True)))
    barrier.wait()


def _enter(folder: str) -> None:
    """Keep level files in a folder of our own, in none if it is empty; compiled kernels stay where they are."""
    if folder:
        _arrays.folder = lambda: Path(folder)
    else:
        os.environ[_arrays.LIMIT_VARIABLE] = "0"


def in_processes(count: int, target: Any, *arguments: Any, together: bool = False) -> list[Any]:
    """Return the answers of fresh processes, sorted."""
    context = multiprocessing.get_context("spawn")
    answers = context.Queue()
    extra = (context.Barrier(count), answers) if together else (answers,)
    processes = [context.Process(target=target, args=(*arguments, *extra)) for _ in range(count)]
    for process in processes:
        process.start()
    rows: list[Any] = []
    while len(rows) < count:
        if any(process.exitcode for process in processes):  # it has printed why, and the others would wait forever
            for process in processes:
                process.terminate()
            raise SystemExit(1)
        with contextlib.suppress(queue.Empty):
            rows.append(answers.get(timeout=1.0))
    for process in processes:
        process.join()
    return sorted(rows, key=str)


def report(levels: str, processes: int, environments: int, pictures: bool) -> None:
    """Print times and memory."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("compiled and written", "mapped"):
            ((reading, seconds, size, counts),) = in_processes(1, load, levels, folder)
            print(f"{name}: {seconds:.3f} s for {size / 1e6:.1f} MB, after {reading:.2f} s of reading ({counts})")
        rows = in_processes(processes, play, levels, folder, environments, pictures, together=True)
    print(f"{processes} processes of {environments} environments: MB of the mapped files, and of all")
    for pid, rss, pss, total, _ in rows:
        print(
            f"  process {pid}: RSS {rss / 1e6:6.2f}  PSS {pss / 1e6:6.2f}  PSS of the whole process {total / 1e6:7.2f}"
        )
    everything = sum(row[3] for row in rows)
    print(f"  together: PSS {sum(row[2] for row in rows) / 1e6:.2f}, of the whole processes {everything / 1e6:.2f}")
    rows = in_processes(processes, play, levels, "", environments, pictures, together=True)
    private = sum(row[3] for row in rows)
    print(f"  without files: {processes} x {rows[0][4] / 1e6:.2f} reported as shared by the environments of a process;")
    print(f"  PSS of the whole processes {private / 1e6:.2f}, {(private - everything) / 1e6:.2f} more")


def main(levels: str = "hazards", processes: int = 8, environments: int = 64, pictures: bool = False) -> None:
    """Print times and memory.

    Args:
        levels: a set, a folder or a pack.
        processes: number of processes that share the levels.
        environments: environments of each process.
        pictures: observe player_frame and global_view as well.
    """
    print(describe())
    print(f"{levels}; kernels in {cache_root()}")
    report(levels, processes, environments, pictures)


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)
