"""Solutions of levels by the planner: to begin episodes along them, and as demonstrations.

The searches are deterministic, and their results are kept on disk with other arrays derived from levels, so that runs
with other seeds, ranks and resumed runs need not repeat them.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from nclone_env.level.array_cache import Arrays, Layout
from nclone_env.level.level import Level
from nclone_env.level.level_set import LevelSet
from nclone_env.plan.smooth import smooth
from nclone_env.plan.solve import solve

PLANNED = "planned"
"""Name of these solutions among sources of solutions."""
FRAMES = 2_000_000
"""Frames that are simulated for each level: less than half a second."""
_MEMORY = 150_000_000  # bytes of a search, at most
_LAYOUT: Layout = {"inputs": np.dtype(np.uint8), "lengths": np.dtype(np.int32)}


def planned_solutions(levels: LevelSet, max_frames: int, threads: int) -> dict[str, np.ndarray]:
    """Return inputs that complete levels, (T,) uint8 by level name; levels for which none were found are left out.

    Args:
        levels: L levels, each with an exit.
        max_frames: longest solution.
        threads: levels that are searched at a time.
    """

    def search(level: Level) -> np.ndarray:
        return solve(level, frames=FRAMES, max_frames=max_frames, memory=_MEMORY).inputs

    return _kept(levels, f"solutions of {max_frames} frames by {FRAMES}", search, threads)


def planned_demonstrations(levels: LevelSet, max_frames: int, frame_skip: int, threads: int) -> dict[str, np.ndarray]:
    """Return inputs that a policy can follow, with few changes; otherwise as :func:`planned_solutions`.

    Args:
        levels: L levels, each with an exit.
        max_frames: longest solution.
        frame_skip: frames that an action is held.
        threads: levels that are searched at a time.
    """

    def search(level: Level) -> np.ndarray:
        found = solve(level, frames=FRAMES, max_frames=max_frames, hold=frame_skip, memory=_MEMORY)
        return smooth(level, found.inputs, hold=frame_skip) if found.completed else found.inputs

    return _kept(levels, f"demonstrations of {max_frames} frames by {FRAMES} held {frame_skip}", search, threads)


def _kept(levels: LevelSet, name: str, search: Callable[[Level], np.ndarray], threads: int) -> dict[str, np.ndarray]:
    """Return what a search finds on each level, from disk if it was found before."""
    arrays = levels.derived(name, _LAYOUT, lambda: _search(levels.levels, search, threads))
    parts = np.split(arrays["inputs"], np.cumsum(arrays["lengths"]))
    return {name: inputs for name, inputs in zip(levels.names, parts) if len(inputs)}


def _search(levels: tuple[Level, ...], search: Callable[[Level], np.ndarray], threads: int) -> Arrays:
    with ThreadPoolExecutor(threads) as executor:
        found = list(executor.map(search, levels))
    return {"inputs": np.concatenate(found), "lengths": np.array([len(inputs) for inputs in found], np.int32)}
