"""Building the batch of a PPO update: lists, concatenation, device copies and chunks, against storage that is reused.

Two kinds of work: finished episodes with vectors and masks that exist already, and collectors that play environments
with frames. Every way makes the same batch, which is compared exactly, with advantages and returns. A loop keeps the
batch of an update until the next one is complete, as training loops do.

Allocations and peaks are counted in fresh processes, exactly by memray if it is installed (``pip install memray``).
*Fewer* is the share of the allocations of a way that ours saves. *Peak, first* is the largest memory of the first
update, with everything that is allocated for it, and *later* that of a loop of three updates, both relative to the size
of the batch; memory of the episodes is left out. Growth is PSS without file pages of a fresh process over many updates
of ours, and over a tenth as many of the other ways, which take longer. Times are medians of updates that take turns in
one process, and the ratio is the median over turns of the time of a way to that of ours.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
import tyro

from profiling.measure import describe, in_fresh_process, process_bytes, timed, turns
from profiling.memory.allocation_events import COUNTED, COUNTS_ALL, Allocated, allocated_by
from profiling.memory.batch_ways import OURS, WAYS, Rows, Work, check_equal, collectors, episodes, updater

WARM_UPDATES = 10
WORKS: dict[str, Callable[[], Work]] = {"episodes": episodes, "collectors": collectors}
REQUIRED = {"share of allocations saved": 0.8, "peak": 1.05, "times faster": 2.5, "growth": 0}


class Row(NamedTuple):
    """One way: what a later update allocates, peaks relative to the batch, growth in bytes, seconds, ratio to ours."""

    way: str
    update: Allocated
    first_peak: float
    loop_peak: float
    growth: int
    seconds: float
    ratio: float

    @property
    def events(self) -> int:
        """Allocations of an update."""
        return self.update.blocks + self.update.objects


def batch_bytes(batch: Rows) -> int:
    """Return the size of a batch."""
    return sum(field.nbytes for field in batch.values())


def loop(update: Callable[[], Rows], count: int) -> Rows:
    """Make updates, each while the batch of the one before is alive; return the last batch."""
    batch = update()
    for _ in range(count - 1):
        batch = update()
    return batch


def allocations(way: str, make: Callable[[], Work], device: str) -> tuple[Allocated, float, float]:
    """Return what a later update allocates, and the peaks of the first and of a loop relative to the batch."""
    work = make()
    warm = updater(way, work, device)
    size = batch_bytes(loop(warm, WARM_UPDATES))
    first = allocated_by(lambda: kept_with(updater(way, work, device), 1))
    several = allocated_by(lambda: kept_with(updater(way, work, device), 3))
    return allocated_by(warm), first.peak / size, several.peak / size


def kept_with(update: Callable[[], Rows], count: int) -> tuple[Rows, object]:
    """Return the last batch of a loop, and its owner."""
    return loop(update, count), update


def growth(way: str, make: Callable[[], Work], device: str, updates: int) -> int:
    """Return the bytes by which this process grows over updates."""
    update = updater(way, make(), device)
    kept = loop(update, WARM_UPDATES)
    process_bytes()  # the first reading takes a page itself
    before = process_bytes()
    for _ in range(updates):
        kept = update()
    grown = process_bytes() - before
    del kept
    return grown


def times(work: Work, device: str, rounds: int) -> np.ndarray:
    """Return (rounds, ways) float64, the seconds of updates that take turns, ours first; compare their batches."""
    updates = {way: updater(way, work, device) for way in (OURS, *WAYS)}
    kept = {way: loop(update, 2) for way, update in updates.items()}
    for batch in kept.values():
        check_equal(batch, kept["lists, stacked"])

    def turn(way: str) -> float:
        kept[way], seconds = timed(updates[way])
        return seconds

    return turns(rounds, [partial(turn, way) for way in updates])


def measured(name: str, device: str, rounds: int, updates: int) -> list[Row]:
    """Return the rows of a kind of work, ours first."""
    make, ways = WORKS[name], (OURS, *WAYS)
    table = in_fresh_process(_times_of, name, device, rounds)
    ratio = np.median(table / table[:, :1], axis=0)
    rows = []
    for way, seconds, factor in zip(ways, np.median(table, axis=0), ratio, strict=True):
        counted = in_fresh_process(allocations, way, make, device)
        grown = in_fresh_process(growth, way, make, device, updates if way == OURS else updates // 10)
        rows.append(Row(way, *counted, grown, float(seconds), float(factor)))
    return rows


def _times_of(name: str, device: str, rounds: int) -> np.ndarray:
    return times(WORKS[name](), device, rounds)


def print_table(rows: list[Row]) -> None:
    """Print a row for each way, and where ours misses a requirement."""
    ours, columns = rows[0], ("arrays", "objects", "fewer", "MB", "peak, first", "later", "ms", "ratio", "growth, KB")
    print(f"  {'':<26}" + "".join(f"{name:>{len(name) + 4}}" for name in columns))
    for row in rows:
        print(
            f"  {row.way:<26}{row.update.blocks:>10,}{row.update.objects:>11,}{fewer(ours, row):>9.1%}"
            f"{row.update.size / 1e6:>6.0f}{row.first_peak:>14.2f}x{row.loop_peak:>8.2f}x"
            f"{1000 * row.seconds:>6.1f}{row.ratio:>9.2f}{row.growth / 1024:>14,.0f}"
        )
    print(f"  required of ours: {', '.join(f'{name} {value:g}' for name, value in REQUIRED.items())}")
    for row in rows[1:]:
        if missed := misses(ours, row):
            print(f"    missed against {row.way}: {', '.join(missed)}")


def fewer(ours: Row, other: Row) -> float:
    """Return the share of the allocations of another way that ours saves; negative if it makes more, nan if unknown."""
    if not COUNTS_ALL:
        return float("nan")
    return 1 - ours.events / max(other.events, 1)


def misses(ours: Row, other: Row) -> list[str]:
    """Return the names of the requirements that ours misses against another way."""
    met = (
        not fewer(ours, other) < REQUIRED["share of allocations saved"],
        ours.loop_peak <= REQUIRED["peak"],
        other.ratio >= REQUIRED["times faster"],
        ours.growth <= REQUIRED["growth"],
    )
    return [name for name, fulfilled in zip(REQUIRED, met, strict=True) if not fulfilled]


def main(
    works: tuple[str, ...] = tuple(WORKS),
    device: str = "cpu",
    rounds: int = 21,
    updates: int = 1000,
) -> None:
    """Measure, and print a table for each kind of work.

    Args:
        works: kinds of work, ``episodes`` or ``collectors``.
        device: where the batch is built; the storage of collectors is always on the processor.
        rounds: turns of each way.
        updates: updates over which the growth of ours is measured.
    """
    print(describe())
    print(f"counted by {COUNTED}")
    for name in works:
        work = WORKS[name]()
        size = batch_bytes(updater(OURS, work, device)()) / 1e6
        print(f"{name}: {len(work.parts)} with {work.steps:,} steps, a batch of {size:.1f} MB; {updates:,} updates")
        print_table(measured(name, device, rounds, updates))


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)
