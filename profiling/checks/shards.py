"""Kill shards at random moments, restart them, merge them, and compare the bytes with one undisturbed run.

    python -m profiling.checks.shards --kills 50

Two processes search on the built-in levels, again and again. Kills are at random moments; those before a process has
written a result are counted apart. The same job is then done by a pool of processes and, if it is installed, by Dask.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path

import tyro

from nclone_env.jobs import Solving, run

_SHARDS, _LONGEST = 2, 5.0  # seconds between two kills


def main(kills: int = 50, frames: int = 60_000, times: int = 24, seed: int = 0) -> None:
    """Print how often shards were killed, and whether all ways give the same files.

    Args:
        kills: how often a shard is killed.
        frames: for each level.
        times: how often each of the 16 levels is named.
        seed: of the moments.
    """
    job = Solving(("first-steps", "jumps", "hazards") * times, frames=frames)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        run(job, folder / "one")
        one = contents(folder / "one")
        print(f"{job.total} levels, {len(one)} files by one process")
        working = kill_shards(job, folder / "parts", kills, random.Random(seed))
        command("merge", folder / "parts", "--output", folder / "merged").wait()
        same = contents(folder / "merged") == one
        print(f"{_SHARDS} shards, killed {kills} times, {working} of these after new results: {told(same)}")
        for name in ("pool", "dask") if find_spec("distributed") else ("pool",):
            with executor_of(name) as executor:
                run(job, folder / name, executor)
            print(f"{name}: {told(contents(folder / name) == one)}")


def kill_shards(job: Solving, folder: Path, kills: int, moments: random.Random) -> int:
    """Let all shards end in spite of being killed; return how often one was killed after it had written new results."""
    working, running = 0, {number: start(job, folder, number) for number in range(1, _SHARDS + 1)}
    for _ in range(kills):
        number = moments.randint(1, _SHARDS)
        before = size_of(folder, number)
        time.sleep(moments.uniform(0, _LONGEST))
        running[number].kill()
        running[number].wait()
        working += size_of(folder, number) > before
        running[number] = start(job, folder, number)
    for process in running.values():
        process.wait()
    return working


def start(job: Solving, folder: Path, number: int) -> subprocess.Popen[bytes]:
    """Start a shard, or start it again."""
    words = ("--shard", f"{number}/{_SHARDS}", "--frames", job.frames, "--output", folder)
    return command("solve", *job.levels, *words)


def size_of(folder: Path, number: int) -> int:
    """Return the bytes in the journal of a shard."""
    path = folder / f"shard-{number}-of-{_SHARDS}.journal"
    return path.stat().st_size if path.exists() else 0


def command(*words: object) -> subprocess.Popen[bytes]:
    """Start the command line."""
    return subprocess.Popen([sys.executable, "-m", "nclone_env", *map(str, words)], stdout=subprocess.DEVNULL)


@contextmanager
def executor_of(name: str) -> Iterator[Executor]:
    """Yield an executor of two processes."""
    if name == "pool":
        with ProcessPoolExecutor(2, get_context("spawn")) as pool:
            yield pool
        return
    from distributed import Client

    with Client(n_workers=2, threads_per_worker=1, dashboard_address=None) as client:
        yield client.get_executor()


def contents(folder: Path) -> Mapping[str, bytes]:
    """Return the files of a folder."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def told(same: bool) -> str:
    """Return whether files are the same, in words."""
    return "the same bytes" if same else "OTHER BYTES"


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)
