"""The planner: levels completed within budgets of processor time, frames/s next to the plain simulator, cost of a key.

Each level is searched until its first solution or the end of the longest budget; every solution is replayed by
``simulate``. The time of the first solution includes the preparation of the level; compiling is not counted.
Search frames/s are those of whole searches. Plain frames/s follow ``profiling.speed.simulator`` on the same levels.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import tyro
from tyro.conf import Positional

from nclone_env.jit import kernel
from nclone_env.level import LevelRef, load_level, pack, resolve
from nclone_env.plan import Solution, solve
from nclone_env.sim import Session, cell_key, hash_future, key_parts, make_worlds
from profiling.measure import basic_sets, best_of, describe
from profiling.speed.packs import frames_per_second

BUDGETS = (0.1, 0.5, 1.0, 4.0, 10.0, 60.0)
"""Seconds of processor time."""
KEYS = 4096
ROW_LIMIT = 1024
"""Bytes of a world; larger ones are reported apart."""


class Row(NamedTuple):
    """The measurements of a level."""

    name: str
    first: float
    """Seconds until the first solution; infinite without one."""
    first_frames: int
    frames: int
    """Frames of the first and of the last solution, 0 without one."""
    simulated: int
    seconds: float
    plain: float
    """Frames/s of the plain simulator."""
    world: int
    """Bytes of a world."""
    gold: int
    gold_total: int
    """Pieces of gold of the last solution and of the level."""
    score: int
    """Frames on the game's clock at its end."""


def measure(ref: LevelRef, seconds: float, frames: float, objective: str, until_first: bool, seed: int) -> Row:
    """Search on a level."""
    level, found = ref.load(), []

    def report(solution: Solution) -> None:
        found.append(solution)
        if until_first:
            raise KeyboardInterrupt  # ends the search

    best = solve(
        level,
        seconds=seconds,
        frames=frames,
        objective=objective,
        seed=seed,
        on_solution=report,
        clock=time.process_time,
    )
    levels = pack([level])
    world = sum(array.nbytes for array in make_worlds(1, levels))
    first, first_frames = (found[0].seconds, found[0].frames) if found else (math.inf, 0)
    plain = frames_per_second(levels)
    gold = best.gold, best.gold_total, best.score
    return Row(ref.name, first, first_frames, best.frames, best.simulated, best.seconds, plain, world, *gold)


@kernel
def hash_all(levels, worlds, parts, coarse, out):
    """Write a key of each world: of its cell or of its future."""
    for index in range(out.shape[0]):
        out[index] = cell_key(worlds, index, parts, 24.0, 2.0) if coarse else hash_future(levels, worlds, index)


def key_times(ref: LevelRef) -> tuple[float, float]:
    """Return nanoseconds of a cell key and of a hash of the future, on different states of a level."""
    session = Session(ref.load(), KEYS)
    session.play(np.repeat(np.random.default_rng(0).integers(0, 6, (8, KEYS)), 8, axis=0))
    out, parts = np.zeros(KEYS, np.uint64), key_parts(session.level_set)
    keys, hashes = (
        best_of(5, lambda coarse=coarse: hash_all(session.levels, session.worlds, parts, coarse, out))
        for coarse in (True, False)
    )
    return 1e9 * keys / KEYS, 1e9 * hashes / KEYS


def report(rows: Sequence[Row], keys: Sequence[tuple[float, float]], seconds: float) -> None:
    """Print the summary."""
    first = np.array([row.first for row in rows])
    shares = [f"{np.mean(first <= budget):.1%} in {budget:g} s" for budget in BUDGETS if budget <= seconds]
    print(f"{len(rows)} levels, completed: {', '.join(shares)}")
    with_gold = [row for row in rows if row.gold_total and row.frames]
    if with_gold:
        collected = sum(row.gold for row in with_gold) / sum(row.gold_total for row in with_gold)
        every = np.mean([row.gold == row.gold_total for row in with_gold])
        print(f"{len(with_gold)} solved levels with gold: all of it on {every:.1%}, {collected:.1%} of all pieces")
        means = (np.mean([getattr(row, name) for row in with_gold]) for name in ("frames", "score"))
        print("their solutions: mean of {:.0f} frames, {:.0f} frames on the clock at the end".format(*means))
    quantiles = np.quantile(np.minimum(first, seconds), (0.5, 0.75, 0.9))
    print("first solution, seconds: " + ", ".join(f"{q:.3f}" for q in quantiles) + " (50, 75, 90 %)")
    for name, chosen in (
        ("up to 1 KB", lambda row: row.world <= ROW_LIMIT),
        ("larger", lambda row: row.world > ROW_LIMIT),
    ):
        long = [row for row in rows if chosen(row) and row.seconds > 0.5]  # shorter ones are mostly preparation
        if long:
            speed = np.array([row.simulated / row.seconds for row in long])
            ratio = np.median(speed / [row.plain for row in long])
            print(
                f"worlds of {name}, {len(long)} searches of more than 0.5 s: median {np.median(speed) / 1e6:.2f} "
                f"million frames/s, {ratio:.2f} of the plain simulator"
            )
    for name, values in zip(("cell key", "hash of the future"), np.array(keys).T):
        print(f"{name}: median {np.median(values):.1f} ns, worst {values.max():.1f} ns")


def main(
    levels: Positional[tuple[str, ...]] = (),
    count: int = 60,
    offset: int = 0,
    seconds: float = 4.0,
    frames: float = math.inf,
    objective: str = "time",
    until_first: bool = True,
    seed: int = 0,
    each: bool = True,
) -> None:
    """Print a row for each level, and a summary.

    Args:
        levels: built-in sets, level files, packs or folders; the basic sets by default.
        count: number of levels, evenly spaced over all.
        offset: place of the first one.
        seconds: seconds of processor time for each level.
        frames: frames for each level instead, so that the solutions do not depend on the machine.
        objective: time, score or all-gold.
        until_first: stop at the first solution.
        seed: seed of the searches.
        each: print the rows.
    """
    print(describe())
    refs = [ref for name in levels or basic_sets() for ref in resolve(name)]
    refs = [refs[int(place)] for place in np.linspace(offset, len(refs) - 1, min(count, len(refs)))]
    solve(load_level("first-steps/06-hop"), frames=50_000)  # compile or load the kernels
    frames_per_second(pack([load_level("first-steps/06-hop")]))
    seconds = seconds if math.isinf(frames) else math.inf
    rows, keys = [], []
    for ref in refs:
        rows.append(measure(ref, seconds, frames, objective, until_first, seed))
        keys.append(key_times(ref))
        if each:
            row = rows[-1]
            print(
                f"  {row.name:<28.28} first {row.first:7.3f} s {row.first_frames:5d} frames, last {row.frames:5d}, "
                f"gold {row.gold}/{row.gold_total}, {row.simulated:>12,} simulated in {row.seconds:6.2f} s, "
                f"{row.world} bytes",
                flush=True,
            )
    report(rows, keys, seconds)


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)
