"""What entities of each kind cost: nanoseconds a frame, and bytes of a world, by leaving a kind out.

Each level is played as it is, and once without each of its kinds, by the rules of ``profiling.speed.simulator``, in
processor time, best of three runs. The difference is what the kind costs; play without it is other play, so figures of
one level say little, and a kind that ends episodes early (mines) or closes ways (doors) can have a negative cost. Pairs
in which the ninja is dead for half of the frames, as where a door held a danger back, are left out.
"""

from __future__ import annotations

import dataclasses
import math
import sys
import time
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import tyro
from tyro.conf import Positional

from nclone_env.game import DOOR_SWITCHES, EXIT, EXIT_SWITCH, KINDS, NINJA
from nclone_env.level import Level, pack
from nclone_env.sim.state import make_worlds
from profiling.measure import basic_sets, describe, timed
from profiling.speed.packs import sampled
from profiling.speed.simulator import run

FRAMES = 10_000
RUNS = 3
NEEDED = {NINJA, EXIT, EXIT_SWITCH, *DOOR_SWITCHES.values()}  # a switch of a door is left out with its door


def nanoseconds(level: Level) -> float:
    """Return the processor time of a frame on a level, of the fastest run; NaN if half of the frames do not count."""
    levels = pack([level])
    worlds, found = make_worlds(1, levels), []
    for seed in range(RUNS):
        (counted, _), seconds = timed(lambda seed=seed: run(levels.arrays, worlds, FRAMES, seed), time.process_time)  # type: ignore[misc]
        found.append(1e9 * seconds / counted if 2 * counted >= FRAMES else math.nan)
    return min(found)


def without(level: Level, kind: int) -> Level:
    """Return a level without the entities of a kind."""
    records = level.raw.records
    kept = ~np.isin(records[:, 0], (kind, DOOR_SWITCHES.get(kind, kind)))
    return dataclasses.replace(level, raw=dataclasses.replace(level.raw, records=records[kept]))


def costs(levels: Sequence[Level]) -> tuple[float, dict[int, float], dict[int, int]]:
    """Return the mean cost of a frame, and by kind the sum of its costs over the levels and the number of entities."""
    bases, shares, counts = list[float](), defaultdict[int, float](float), defaultdict[int, int](int)
    for number, level in enumerate(levels):
        base = nanoseconds(level)
        bases.append(base)
        kinds, numbers = np.unique(level.raw.records[:, 0], return_counts=True)
        for kind, count in zip(kinds.tolist(), numbers.tolist(), strict=True):
            if kind not in NEEDED and kind < len(KINDS):
                share = base - nanoseconds(without(level, kind))
                if not math.isnan(share):
                    shares[kind] += share
                    counts[kind] += count
        print(f"\r{number + 1} of {len(levels)} levels", end="", file=sys.stderr, flush=True)
    return float(np.nanmean(bases)), shares, counts


def main(levels: Positional[tuple[str, ...]] = (), sample: int = 250) -> None:
    """Print a row for each kind, the most expensive first.

    Args:
        levels: built-in sets, level files, packs or folders; the basic sets by default.
        sample: number of levels, those with the smallest digests.
    """
    print(describe())
    played = [ref.load() for ref in sampled(levels or basic_sets(), sample)]
    nanoseconds(played[0])  # compile or load the kernels
    whole, shares, counts = costs(played)
    print(f"\n{len(played)} levels, {whole:.0f} ns a frame")
    print(f"  {'kind':<18}{'a level has':>12}{'ns a frame and level':>22}{'ns an entity':>14}")
    for kind in sorted(shares, key=lambda kind: -shares[kind]):
        number, share = counts[kind] / len(played), shares[kind] / len(played)
        print(f"  {KINDS[kind].name:<18}{number:>12.2f}{share:>22.1f}{share / number:>14.1f}")


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)
