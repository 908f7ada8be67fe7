"""``nclone-env levels generate``: make levels, each with a recording that completes it."""

import sys
import time
from collections import Counter
from itertools import chain
from pathlib import Path

from nclone_env._processes import in_order
from nclone_env._processes import processes as processes_of
from nclone_env._table import bar
from nclone_env.cli.output import check_all_free, check_folder, counted
from nclone_env.cli.progress import LiveLine, left_text
from nclone_env.cli.stop import stop_on_signals
from nclone_env.errors import check_integer
from nclone_env.generate import (
    DEFAULT_FAMILIES,
    LEAST_DIFFICULTY,
    MOST_DIFFICULTY,
    TRAIN_SPLIT,
    CollectionFiles,
    PackEntry,
    read_range,
)
from nclone_env.jobs import Generating, Shard, run_shard

_INTERVAL = 10.0
"""Seconds from one line to the next where the output is no terminal."""


def generate_levels(
    output: Path,
    count: int = 100,
    seed: int = 0,
    family: tuple[str, ...] = DEFAULT_FAMILIES,
    difficulty: str = f"{LEAST_DIFFICULTY}..{MOST_DIFFICULTY}",
    split: str = TRAIN_SPLIT,
    processes: int = 1,
    first: int = 0,
    shard: str | None = None,
    force: bool = False,
) -> int:
    """Make levels and write a pack, a table (.jsonl) and a folder of recordings (-recordings) next to it.

    The same arguments give the same bytes on every machine, with any number of processes. Ctrl-C keeps the levels that
    are complete.

    Args:
        output: pack to write, such as pack.txt.
        count: number of levels.
        seed: seed of the collection; level n of a seed is always the same.
        family: families that take turns: rooms, caves, shafts, mazes, minefields, patrols, turrets, pads, slopes,
            motifs; all but the last if none is named.
        difficulty: least and greatest measured difficulty, 0..100.
        split: train or held-out; no level is ever in both.
        processes: number of levels made at once, each in a process of its own.
        first: number of the first level.
        shard: part I/N of the levels, such as 1/4, for one of N processes: output is a folder for its journal, a
            restarted shard goes on with it, and 'merge' writes the pack.
        force: overwrite existing files.
    """
    check_integer("processes", processes, low=1)
    job = Generating(count, first, seed, family, read_range("difficulty", difficulty), split)
    part = Shard.of(shard)
    if shard:
        check_folder("output", output)
    else:
        check_all_free(job.files(output), force)
    numbers = part.numbers(count)
    progress = _Progress(len(numbers))
    with (
        stop_on_signals("stopping after the levels in work; press Ctrl-C again to end at once") as stop,
        processes_of(processes) as executor,
    ):
        if shard:
            run_shard(job, output, part, executor, stop, lambda result: progress(PackEntry(**result)))
        else:
            first_ones = range(processes > 1)  # one compiles the kernels for all processes
            results = chain(
                in_order(map(job.task, first_ones), None, stop),
                in_order(map(job.task, numbers[len(first_ones) :]), executor, stop),
            )
            job.write(output, results, progress)
    progress.finish()
    if shard:
        print(f"wrote {counted(progress.made, 'level')} to journal {part.file} in {output}")
    elif progress.made:
        made = counted(progress.made, "level")
        files = CollectionFiles(output)
        print(f"wrote {made} to {files.pack}, rows to {files.table}, recordings to {files.folder}")
    return stop.exit_status if stop() else 0


class _Progress(LiveLine):
    """A line that tells how many levels are made.

    Attributes:
        made: levels so far.
    """

    def __init__(self, total: int):
        super().__init__(sys.stdout, _INTERVAL)
        self._total, self.made, self._began = total, 0, time.monotonic()
        self._rejected: Counter[str] = Counter()

    def __call__(self, entry: PackEntry) -> None:
        """Count a level and show the line."""
        self.made += 1
        self._rejected.update(entry.row["rejected"])
        self.show(self._text())

    def finish(self) -> None:
        """Show the last line, and the reasons of rejection."""
        self.put(self._text())
        if self._rejected:
            reasons = (f"{reason} {times:,}" for reason, times in self._rejected.most_common())
            print(f"rejected sketches: {', '.join(reasons)}")

    def _text(self) -> str:
        seconds = max(time.monotonic() - self._began, 1e-9)
        return (
            f"{bar(self.made / self._total)} {self.made}/{self._total} levels  "
            f"{self._rejected.total():,} sketches rejected  {self.made / seconds:.1f} levels/s  {seconds:.0f} s"
            f"{left_text(seconds, self.made, self._total - self.made)}"
        )
