"""Solutions of levels by the planner: to begin episodes along them, and as demonstrations.

The searches are deterministic, and their results are kept on disk with other arrays derived from levels, so that runs
with other seeds, ranks and resumed runs need not repeat them. A preparation that is interrupted goes on where it was.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from nclone_env.level.array_cache import Arrays, Layout, cached_arrays
from nclone_env.level.level import Level
from nclone_env.level.level_set import LevelSet, content_digest
from nclone_env.plan.smooth import smooth
from nclone_env.plan.solve import solve
from nclone_env.train.hooks import SILENT, Hooks

PLANNED = "planned"
"""Name of these solutions among sources of solutions."""
FRAMES = 2_000_000
"""Frames that are simulated for each level: less than half a second."""
_MEMORY = 150_000_000  # bytes of a search, at most
_KEPT_TOGETHER = 16
"""Levels whose results are kept in one file."""
_LAYOUT: Layout = {"inputs": np.dtype(np.uint8), "lengths": np.dtype(np.int32)}


@dataclass(frozen=True)
class Planner:
    """Finds solutions of the levels of a run."""

    threads: int = 1
    """Levels that are searched at a time."""
    hooks: Hooks = SILENT
    """Told of each level that was searched, not of results that were kept."""

    def solutions(self, levels: LevelSet, max_frames: int) -> dict[str, np.ndarray]:
        """Return inputs that complete levels, (T,) uint8 by level name; levels for which none were found are left out.

        Args:
            levels: L levels, each with an exit.
            max_frames: longest solution.
        """

        def search(level: Level) -> np.ndarray:
            return solve(level, frames=FRAMES, max_frames=max_frames, memory=_MEMORY).inputs

        return self._kept(levels, f"solutions of {max_frames} frames by {FRAMES}", "solutions planned", search)

    def demonstrations(self, levels: LevelSet, max_frames: int, frame_skip: int) -> dict[str, np.ndarray]:
        """Return inputs that a policy can follow, with few changes; otherwise as :meth:`solutions`.

        Args:
            levels: L levels, each with an exit.
            max_frames: longest solution.
            frame_skip: frames that an action is held.
        """

        def search(level: Level) -> np.ndarray:
            found = solve(level, frames=FRAMES, max_frames=max_frames, hold=frame_skip, memory=_MEMORY)
            return smooth(level, found.inputs, hold=frame_skip) if found.completed else found.inputs

        name = f"demonstrations of {max_frames} frames by {FRAMES} held {frame_skip}"
        return self._kept(levels, name, "demonstrations planned", search)

    def _kept(
        self, levels: LevelSet, name: str, what: str, search: Callable[[Level], np.ndarray]
    ) -> dict[str, np.ndarray]:
        """Return what a search finds on each level, from disk if it was found before."""
        found: list[np.ndarray] = []
        for first in range(0, len(levels.levels), _KEPT_TOGETHER):
            digest = content_digest(levels.levels[first : first + _KEPT_TOGETHER])
            make = functools.partial(self._search, levels.levels, first, what, search)
            arrays = cached_arrays(name, digest, _LAYOUT, make)
            found += np.split(arrays["inputs"], np.cumsum(arrays["lengths"])[:-1])
        return {name: inputs for name, inputs in zip(levels.names, found, strict=True) if len(inputs)}

    def _search(self, levels: Sequence[Level], first: int, what: str, search: Callable[[Level], np.ndarray]) -> Arrays:
        """Search the levels from ``first`` on that are kept together; an error cancels those that wait."""
        found: list[np.ndarray] = []
        executor = ThreadPoolExecutor(self.threads)
        try:
            for inputs in executor.map(search, levels[first : first + _KEPT_TOGETHER]):
                found.append(inputs)
                self.hooks.level(what, first + len(found), len(levels))
        finally:
            executor.shutdown(cancel_futures=True)
        return {"inputs": np.concatenate(found), "lengths": np.array([len(inputs) for inputs in found], np.int32)}
