"""``nclone-env levels generate``: make levels, each with a recording that completes it."""

from __future__ import annotations

import sys
import time
from collections import Counter
from pathlib import Path

from nclone_env._bar import bar
from nclone_env.cli.output import check_free, counted
from nclone_env.cli.progress import LiveLine, left_text
from nclone_env.cli.stop import stop_on_signals
from nclone_env.errors import ConfigError
from nclone_env.generate import (
    FAMILIES,
    LEAST_DIFFICULTY,
    MOST_DIFFICULTY,
    TABLE_SUFFIX,
    TRAIN_SPLIT,
    CollectionFiles,
    Order,
    PackEntry,
    check_generation,
    entries,
    read_range,
    write_collection,
)
from nclone_env.options import check_integer

_INTERVAL = 10.0
"""Seconds from one line to the next where the output is no terminal."""


def generate_levels(
    output: Path,
    count: int = 100,
    seed: int = 0,
    family: tuple[str, ...] = tuple(FAMILIES),
    difficulty: str = f"{LEAST_DIFFICULTY}..{MOST_DIFFICULTY}",
    split: str = TRAIN_SPLIT,
    processes: int = 1,
    force: bool = False,
) -> int:
    """Make levels and write a pack, a table (.jsonl) and a folder of recordings (-recordings) next to it.

    The same arguments give the same bytes on every machine, with any number of processes. Ctrl-C keeps the levels that
    are complete.

    Args:
        output: pack to write, such as pack.txt.
        count: number of levels.
        seed: seed of the collection; level n of a seed is always the same.
        family: families that take turns: rooms, caves, shafts, mazes, minefields, patrols, turrets, pads, slopes.
        difficulty: least and greatest measured difficulty, 0..100.
        split: train or held-out; no level is ever in both.
        processes: number of levels made at once, each in a process of its own.
        force: overwrite existing files.
    """
    order = _checked(Order(family, seed, split, read_range("difficulty", difficulty)), count, processes)
    if not output.name or output.suffix == TABLE_SUFFIX or output.is_dir():
        what = "the name of its table" if output.suffix == TABLE_SUFFIX else "a folder"
        got = f"{str(output)!r}, {what}"
        raise ConfigError(f"output: expected the file name of a pack, such as pack.txt, got {got}")
    files = CollectionFiles(output)
    output.parent.mkdir(parents=True, exist_ok=True)
    for file in (files.pack, files.table, files.folder):
        check_free(file, force)
    progress = _Progress(count)
    with stop_on_signals("stopping after the levels in work; press Ctrl-C again to end at once") as stop:
        made = write_collection(files, entries(order, count, processes, stop), progress)
    progress.finish()
    if made:
        print(f"wrote {counted(made, 'level')} to {files.pack}, rows to {files.table}, recordings to {files.folder}")
    return stop.exit_status if stop() else 0


class _Progress:
    """A line that tells how many levels are made."""

    def __init__(self, total: int):
        self._total, self._accepted = total, 0
        self._rejected: Counter[str] = Counter()
        self._line = LiveLine(sys.stdout, _INTERVAL)
        self._began = time.monotonic()

    def __call__(self, entry: PackEntry) -> None:
        """Count a level and show the line."""
        self._accepted += 1
        self._rejected.update(entry.row["rejected"])
        self._line.show(self._text())

    def finish(self) -> None:
        """Show the last line, and the reasons of rejection."""
        self._line.put(self._text())
        if self._rejected:
            reasons = (f"{reason} {times:,}" for reason, times in self._rejected.most_common())
            print(f"rejected sketches: {', '.join(reasons)}")

    def _text(self) -> str:
        seconds = max(time.monotonic() - self._began, 1e-9)
        return (
            f"{bar(self._accepted / self._total)} {self._accepted}/{self._total} levels  "
            f"{self._rejected.total():,} sketches rejected  {self._accepted / seconds:.1f} levels/s  {seconds:.0f} s"
            f"{left_text(seconds, self._accepted, self._total - self._accepted)}"
        )


def _checked(order: Order, count: int, processes: int) -> Order:
    """Return the order if everything in it is possible, so that no work is lost later."""
    for name, value in (("count", count), ("processes", processes)):
        check_integer(name, value, low=1)
    if not order.families:
        raise ConfigError(f"family: expected some of {', '.join(FAMILIES)}, got none")
    for family in order.families:
        check_generation(family, order.seed, 0, order.split, order.difficulty)
    return order
