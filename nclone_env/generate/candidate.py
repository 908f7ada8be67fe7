"""From a sketch to a level with a proof: the checks that a sketch must pass, the cheap ones first.

Which split a level belongs to, train or held-out, follows from its tiles, whatever its seed: no level of one split, and
none with the same tiles or their mirror image, can ever be among those of the other.
"""

import hashlib

import numpy as np

from nclone_env.game import kind_name
from nclone_env.generate.course import is_safe, least_clearance, random_wins
from nclone_env.generate.difficulty import EASIEST, Difficulty
from nclone_env.generate.draws import Draws
from nclone_env.generate.families.table import BY_KIND, FAMILIES, MOST_FRAMES, NEEDED
from nclone_env.generate.matters import Furnished, Trimmed, furnish, shows, trim
from nclone_env.generate.route import Unusable
from nclone_env.generate.search import edited, first_solution, shorter_solution
from nclone_env.level import mirrored_tiles, pack, validate
from nclone_env.plan import make_task

TRAIN_SPLIT, HELD_OUT_SPLIT = "train", "held-out"
SPLITS = (TRAIN_SPLIT, HELD_OUT_SPLIT)
_FEWEST_FRAMES = 30_000
"""Frames that the search for a first solution may simulate at an aim of 0; at 100 ``MOST_FRAMES`` of the family."""
_PROPOSAL_FRAMES, _SHORTER_FRAMES, _EDIT_FRAMES = 150_000, 40_000, 20_000
_RANDOM_RUNS, _MORE_RANDOM_RUNS = 64, 192


def split_of(tiles: np.ndarray) -> str:
    """Return the split of the levels with some (23, 42) uint8 tiles, or with their mirror image."""
    ways = (tiles.tobytes(), mirrored_tiles(tiles).tobytes())
    return SPLITS[hashlib.blake2b(min(ways), digest_size=1).digest()[0] & 1]


def try_sketch(family: str, seed: int, split: str, bounds: tuple[int, int]) -> tuple[int, Trimmed, Difficulty]:
    """Draw a level of a seed and check it.

    Args:
        split: that its tiles must belong to.
        bounds: least and greatest difficulty.

    Returns:
        What the family was asked for, 0 easy to 100 hard; the level with its solution, and what was removed from the
        sketch; what was measured.

    Raises:
        Unusable: if it fails; the message is the reason.
    """
    draws = Draws(seed)
    aim = draws.between(*bounds)
    sketch = FAMILIES[family](draws, aim)
    _demand(split_of(sketch.tiles) == split, "other split")
    level = sketch.level()
    _demand(not validate(level.raw), "not valid")
    _demand(is_safe(pack([level])), "start not safe")
    task = make_task(level)
    frames = _FEWEST_FRAMES + (MOST_FRAMES[family] - _FEWEST_FRAMES) * aim // 100
    found = first_solution(task, frames, seed)
    _demand(len(found.inputs) > 0, "no solution found")
    shorter = shorter_solution(task, found.inputs, _SHORTER_FRAMES, seed)
    made = furnish(sketch, Furnished(level, task, found, shorter, {}), min(frames, _PROPOSAL_FRAMES), seed)
    best = edited(made.task, made.inputs, _EDIT_FRAMES, seed)
    trimmed = trim(made.level, made.task, best, made.blocked, seed, family in BY_KIND)
    needed, kept = NEEDED.get(family), {kind_name(group[0][0]) for group, _ in trimmed.witnesses}
    _demand(needed is None or not kept.isdisjoint(needed), "nothing matters")
    effort = (first_solution(trimmed.task, frames, seed) if trimmed.removed else made.found).simulated
    measured = _measure(trimmed, effort, seed)
    _demand(measured.random_is_rare or measured.number < EASIEST, "random play")
    _demand(bounds[0] <= measured.number <= bounds[1], "other difficulty")
    _demand(
        all(shows(trimmed.level, trimmed.task.level_set, *witness) for witness in trimmed.witnesses), "witness lost"
    )
    return aim, trimmed, measured


def _demand(holds: bool, reason: str) -> None:
    if not holds:
        raise Unusable(reason)


def _measure(trimmed: Trimmed, effort: int, seed: int) -> Difficulty:
    """Measure the difficulty of a level; more random runs are made if one of the first wins."""
    levels = trimmed.task.level_set
    runs = _RANDOM_RUNS
    wins = random_wins(levels, runs, seed)
    if wins:
        runs += _MORE_RANDOM_RUNS
        wins += random_wins(levels, _MORE_RANDOM_RUNS, seed + 1)
    clearance = least_clearance(levels, trimmed.inputs)
    return Difficulty(effort, len(trimmed.inputs), wins, runs, clearance)
