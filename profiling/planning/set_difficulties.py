"""Difficulties of the levels of built-in sets, by the generator's measure: the band of each.

Effort is the median of the first searches with three seeds, so that it depends less on one of them than that of a
generated level. All budgets are frames, so every machine prints the same numbers. A row has the difficulty, the level
and the parts: effort, frames of the shortest solution, wins of random play, and clearance in tenths of a pixel.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import tyro
from tyro.conf import Positional

from nclone_env.generate.difficulty import Difficulty
from nclone_env.generate.runs import least_clearance, random_wins
from nclone_env.level import Level, load_levels
from nclone_env.plan import Edits, first_solution, make_task, shorter_solution
from profiling.pictures.level_sets import MOTIFS

BAND = 10
"""Difficulties in a band; the last one holds 100 too."""
_SEEDS = (1, 2, 3)
_SEARCH_FRAMES, _SHORTER_FRAMES, _EDIT_FRAMES = 4_000_000, 200_000, 100_000
_RANDOM_RUNS, _MORE_RANDOM_RUNS = 64, 192


def measure(level: Level) -> Difficulty:
    """Return the difficulty of a level that the planner completes."""
    task = make_task(level)
    found = [first_solution(task, _SEARCH_FRAMES, seed) for seed in _SEEDS]
    effort = int(np.median([each.simulated for each in found]))
    best = min((each.inputs for each in found if len(each.inputs)), key=len)
    best = Edits(task, shorter_solution(task, best, _SHORTER_FRAMES, _SEEDS[0]), _SEEDS[0]).spend(_EDIT_FRAMES)
    runs, wins = _RANDOM_RUNS, random_wins(task.level_set, _RANDOM_RUNS, 1)
    if wins:
        runs, wins = runs + _MORE_RANDOM_RUNS, wins + random_wins(task.level_set, _MORE_RANDOM_RUNS, 2)
    return Difficulty(effort, len(best), wins, runs, least_clearance(task.level_set, best))


def band(difficulty: int) -> int:
    """Return the band of a difficulty, from 1 to 10."""
    return min(difficulty // BAND, 9) + 1


def main(sets: Positional[tuple[str, ...]] = MOTIFS) -> None:
    """Print a row for each level, and the number of levels in each band.

    Args:
        sets: names of sets, or anything else that denotes levels.
    """
    bands = Counter[int]()
    for level in load_levels(sets):
        measured = measure(level)
        bands[band(measured.number)] += 1
        random = f"{measured.random_wins}/{measured.random_runs}"
        print(
            f"{measured.number:3d}  {level.name:<30} effort {measured.effort:9,d}  shortest {measured.shortest:5d}  "
            f"random {random:>7}  clearance {measured.clearance:5d}",
            flush=True,
        )
    print("levels by band:", ", ".join(f"{number}: {bands[number]}" for number in sorted(bands)))


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)
