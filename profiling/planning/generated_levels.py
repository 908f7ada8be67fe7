"""Generated levels: how many are proved in a second of one core, what is rejected, how difficult they are; pictures.

Each family makes the same number of levels of one seed, one after another in this process; compiling is not counted.
The contact sheet shows levels of all families by growing difficulty.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import cv2
import numpy as np
import tyro

from nclone_env.game import BOOST_PAD, BOUNCE_BLOCK, LAUNCH_PAD, ONE_WAY
from nclone_env.generate.candidate import TRAIN_SPLIT
from nclone_env.generate.difficulty import LEAST_DIFFICULTY, MOST_DIFFICULTY
from nclone_env.generate.families import DEFAULT_FAMILIES
from nclone_env.generate.levels import GeneratedLevel, generate_level
from nclone_env.render.picture import level_picture
from profiling.measure import describe
from profiling.pictures.scenes import write_picture

Made = Mapping[str, Sequence[GeneratedLevel]]
"""Levels by family."""
_SHOWN = (264, 150)
"""Width and height of a level on the sheet, pixels."""


def make(families: Sequence[str], count: int, seed: int, split: str) -> tuple[Made, dict[str, float]]:
    """Return the levels and the seconds of processor time by family."""
    made, seconds = {}, {}
    for family in families:
        generate_level(family, seed, count, split=split)  # compile or load the kernels
        began = time.process_time()
        made[family] = [generate_level(family, seed, number, split=split) for number in range(count)]
        seconds[family] = time.process_time() - began
    return made, seconds


def report(made: Made, seconds: Mapping[str, float]) -> None:
    """Print a table of the families, and the reasons of rejection."""
    print(f"{'family':<12} levels/s  accepted  solved  difficulty 5/50/95 %  shortest, s  random wins  kept  removed")
    for family, levels in made.items():
        rejected: Counter[str] = Counter()
        for level in levels:
            rejected.update(level.rejected)
        hardness = [level.difficulty for level in levels]
        low, middle, high = np.percentile([each.number for each in hardness], (5, 50, 95))
        drawn = len(levels) + sum(rejected.values())
        tried = len(levels) + sum(rejected[reason] for reason in rejected if reason in _AFTER_SKETCH)
        unsolved = rejected["no solution found"]
        wins = sum(each.random_wins for each in hardness) / sum(each.random_runs for each in hardness)
        speed, kept = len(levels) / seconds[family], sum(len(level.witnesses) for level in levels)
        removed, shortest = sum(len(level.removed) for level in levels), np.median([each.shortest for each in hardness])
        solved = 1 - unsolved / tried
        print(
            f"{family:<12} {speed:8.1f}  {len(levels) / drawn:8.1%}  {solved:6.1%}  {low:5.0f} {middle:5.0f}"
            f" {high:5.0f}      {shortest / 60:11.1f}  {wins:11.2%}  {kept:4}  {removed:7}"
        )
        tens = np.histogram([each.number for each in hardness], range(0, 101, 10))[0].tolist()
        kinds = [{group[0][0] for group, _ in level.witnesses} for level in levels]
        acting = np.mean([bool(each - _CARRIERS) for each in kinds])
        print(f"             difficulties by tens: {tens}; with a door or mover that matters: {acting:.0%}")
        print("             rejected: " + ", ".join(f"{reason} {times}" for reason, times in rejected.most_common()))
    total = sum(map(len, made.values()))
    print(f"all: {total} levels in {sum(seconds.values()):.1f} s, {total / sum(seconds.values()):.1f} levels/s")


_CARRIERS = {LAUNCH_PAD, BOOST_PAD, BOUNCE_BLOCK, ONE_WAY}
_AFTER_SKETCH = ("no solution found", "nothing matters", "random play", "other difficulty", "witness lost")


def contact_sheet(made: Made, count: int, columns: int = 6) -> np.ndarray:
    """Return (h, w, 3) uint8: a picture of some levels of each family, by growing difficulty."""
    each = -(-count // len(made))
    pictures = []
    for levels in made.values():
        ordered = sorted(levels, key=lambda level: level.difficulty.number)
        chosen = [ordered[int(place)] for place in np.linspace(0, len(ordered) - 1, min(each, len(ordered)))]
        pictures += [_small_picture(level) for level in chosen]
    pictures = pictures[:count]
    blank = np.full_like(pictures[0], 255)
    pictures += [blank] * (-len(pictures) % columns)
    return np.vstack([np.hstack(pictures[first : first + columns]) for first in range(0, len(pictures), columns)])


def _small_picture(level: GeneratedLevel) -> np.ndarray:
    small = cv2.resize(level_picture(level.level.raw), _SHOWN, interpolation=cv2.INTER_AREA)
    return np.pad(small, ((2, 2), (2, 2), (0, 0)), constant_values=255)


def main(
    families: tuple[str, ...] = DEFAULT_FAMILIES,
    count: int = 20,
    seed: int = 0,
    split: str = TRAIN_SPLIT,
    shown: int = 60,
    sheet: Path = Path("runs/generated-levels.png"),
) -> None:
    """Make levels, print a table and draw a contact sheet.

    Args:
        families: families to measure.
        count: levels of each.
        seed: seed of the collection.
        split: train or held-out.
        shown: levels on the contact sheet.
        sheet: picture of the levels to write.
    """
    print(describe())
    made, seconds = make(families, count, seed, split)
    report(made, seconds)
    write_picture(contact_sheet(made, shown), sheet)
    print(f"difficulties {LEAST_DIFFICULTY}..{MOST_DIFFICULTY}; contact sheet in {sheet}")


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)
