"""How good are the frames to the exit by ``plan.values``? Next to searches that begin in the same states.

For each level: states and seconds; then, over states drawn at random, the ratio of the estimate to the frames of the
best solution that ``solve`` finds from there, its median, tenth and ninetieth percentile.
"""

from __future__ import annotations

import time

import numpy as np
import tyro

from nclone_env.level.level import Level
from nclone_env.level.load import resolve
from nclone_env.plan import StateValues, solve, state_values
from profiling.measure import describe


def ratios(level: Level, values: StateValues, count: int, frames: int, random: np.random.Generator) -> np.ndarray:
    """Return estimates divided by the frames of solutions, for states at random from which both are known."""
    known = np.flatnonzero(np.isfinite(values.frames))
    found = []
    for row in random.choice(known, min(count, len(known)), replace=False):
        best = solve(level, frames=frames, hold=values.hold, start=(values.worlds, int(row)))
        if best.completed:
            found.append(values.frames[row] / best.frames)
    return np.array(found)


def main(levels: tuple[str, ...] = ("first-steps", "jumps", "hazards"), count: int = 20, frames: int = 500_000) -> None:
    """Print a table.

    Args:
        levels: sets, levels, files, packs.
        count: states of each level that are compared.
        frames: frames that each search from a state simulates.
    """
    print(describe())
    print(f"{'level':<30}{'states':>8}{'known':>7}{'seconds':>9}{'median':>8}{'10 %':>7}{'90 %':>7}")
    random, joined = np.random.default_rng(0), []
    for ref in (ref for name in levels for ref in resolve(name)):
        level = ref.load()
        began = time.perf_counter()
        values = state_values(level)
        seconds = time.perf_counter() - began
        each = ratios(level, values, count, frames, random)
        joined.append(each)
        low, middle, high = np.percentile(each, [10, 50, 90])
        share = np.isfinite(values.frames).mean()
        print(
            f"{ref.name:<30.29}{len(values.frames):>8,}{share:>7.0%}{seconds:>9.2f}{middle:>8.2f}{low:>7.2f}{high:>7.2f}",
            flush=True,
        )
    low, middle, high = np.percentile(np.concatenate(joined), [10, 50, 90])
    print(f"{'all':<54}{middle:>8.2f}{low:>7.2f}{high:>7.2f}")


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)
