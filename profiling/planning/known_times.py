"""How short are the solutions of the planner? Next to known times of levels of packs.

The times are a JSON file, ``{"S:12": 311}``: pack and number of a level, and its frames. A pack is named by the end of
its file name, ``official-S.txt`` here. For each level: frames of the best solution, and its ratio to the known time.
"""

from __future__ import annotations

import json
import math
import time
from collections import Counter
from pathlib import Path

import numpy as np
import tyro
from tyro.conf import Positional

from nclone_env.level.load import load_level
from nclone_env.plan import solve
from profiling.measure import describe

LATE = 1.1
"""Levels with larger ratios are named at the end."""


def reference(level: str, packs: dict[str, Path]) -> str:
    """Return the reference of a level of a pack, ``PACK#NUMBER``."""
    name, _, number = level.partition(":")
    if name not in packs:
        raise SystemExit(f"known_times: expected a pack for {level!r}, whose file name ends in -{name}.txt")
    return f"{packs[name]}#{number}"


def main(
    times: Positional[Path],
    packs: Positional[tuple[Path, ...]],
    seconds: float = 4.0,
    frames: float = math.inf,
    count: int = 1000,
) -> None:
    """Print a row for each level, and a summary.

    Args:
        times: JSON file of known times.
        packs: the packs of its levels.
        seconds: seconds of processor time for each level.
        frames: frames for each level instead, so that the results do not depend on the machine.
        count: number of levels, evenly spaced over all.
    """
    print(describe())
    known = list(json.loads(times.read_text()).items())
    known = [known[int(place)] for place in np.linspace(0, len(known) - 1, min(count, len(known)))]
    by_name = {path.stem.rpartition("-")[2]: path for path in packs}
    seconds = seconds if math.isinf(frames) else math.inf
    ratios, total, won = {}, Counter[str](), Counter[str]()
    for level, length in known:
        place = load_level(reference(level, by_name))
        best = solve(place, seconds=seconds, frames=frames, clock=time.process_time)
        ratios[level] = best.frames / length if best.completed else math.inf
        total += Counter(known=length, found=best.frames, simulated=best.simulated)
        won += Counter(best.won)
        print(f"  {level:<8} known {length:5d}, found {best.frames:5d}, ratio {ratios[level]:.3f}", flush=True)
    found = np.array(list(ratios.values()))
    each = f"{seconds:g} s" if math.isinf(frames) else f"{frames:,.0f} frames"
    print(f"{len(found)} levels in {each} each, {np.isfinite(found).mean():.1%} completed; ratio to the known time:")
    print(f"median {np.median(found):.3f}, 90 % quantile {np.quantile(found, 0.9):.3f}, worst {found.max():.3f}")
    print(
        f"total {total['found'] / total['known']:.3f}; at or under {np.mean(found <= 1):.1%}, {np.sum(found < 1)} under"
    )
    print(f"frames won by stage: {dict(won)}; {total['simulated'] / 1e6:,.0f} million simulated")
    late = [f"{level} {ratio:.2f}" for level, ratio in ratios.items() if ratio > LATE]
    print(f"above {LATE:g}: {', '.join(late) or 'none'}")


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)
