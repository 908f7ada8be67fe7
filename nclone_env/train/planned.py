"""Solutions of levels by the planner, for episodes that begin along them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from nclone_env.level.array_cache import Arrays, Layout
from nclone_env.level.level import Level
from nclone_env.level.level_set import LevelSet
from nclone_env.plan.solve import solve

FRAMES = 2_000_000
"""Frames that are simulated for each level: less than half a second."""
_MEMORY = 150_000_000  # bytes of a search, at most
_LAYOUT: Layout = {"inputs": np.dtype(np.uint8), "lengths": np.dtype(np.int32)}


def planned_solutions(levels: LevelSet, max_frames: int, threads: int) -> dict[str, np.ndarray]:
    """Return inputs that complete levels, (T,) uint8 by level name; levels for which none were found are left out.

    The search is deterministic, and its results are kept on disk with other arrays derived from levels, so that runs
    with other seeds, ranks and resumed runs need not repeat it.

    Args:
        levels: L levels, each with an exit.
        max_frames: longest solution.
        threads: levels that are searched at a time.
    """
    name = f"solutions of {max_frames} frames by {FRAMES}"
    arrays = levels.derived(name, _LAYOUT, lambda: _search(levels.levels, max_frames, threads))
    parts = np.split(arrays["inputs"], np.cumsum(arrays["lengths"]))
    return {name: inputs for name, inputs in zip(levels.names, parts) if len(inputs)}


def _search(levels: tuple[Level, ...], max_frames: int, threads: int) -> Arrays:
    def inputs_of(level: Level) -> np.ndarray:
        return solve(level, frames=FRAMES, max_frames=max_frames, memory=_MEMORY).inputs

    with ThreadPoolExecutor(threads) as executor:
        found = list(executor.map(inputs_of, levels))
    return {"inputs": np.concatenate(found), "lengths": np.array([len(inputs) for inputs in found], np.int32)}
