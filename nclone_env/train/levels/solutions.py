"""Solutions of levels, to begin episodes along them and as demonstrations: recorded, known, or by the planner.

The searches of the planner are deterministic, and their results are kept on disk with other arrays derived from levels,
so that runs with other seeds, ranks and resumed runs need not repeat them. A preparation that is interrupted goes on
where it was.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nclone_env.constants import CELEBRATING
from nclone_env.errors import ConfigError
from nclone_env.level import (
    Arrays,
    Layout,
    Level,
    LevelSet,
    RawLevel,
    cached_arrays,
    content_digest,
    known_solutions_of,
    mirrored,
    mirrored_inputs,
    pack,
)
from nclone_env.plan import smooth, solve
from nclone_env.replay import Recording, load_any_recording
from nclone_env.sim import check_inputs
from nclone_env.sim.simulate import simulate
from nclone_env.train.hooks import SILENT, Hooks

KNOWN = "known"
"""Stand in ``TrainConfig.starts`` for the known solutions of built-in levels, and for those that the planner finds."""
PLANNED = "planned"
"""Name of these solutions among sources of solutions."""
FRAMES = 2_000_000
"""Frames that are simulated for each level at most: less than half a second."""
_FRAMES_AT_FIRST = 200_000
"""Frames after which a search for starts ends if it has found a solution, as most have."""
_MEMORY = 150_000_000  # bytes of a search, at most
_KEPT_TOGETHER = 64
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
            first = solve(level, frames=_FRAMES_AT_FIRST, max_frames=max_frames, memory=_MEMORY)
            found = first if first.completed else solve(level, frames=FRAMES, max_frames=max_frames, memory=_MEMORY)
            return found.inputs

        name = f"solutions of {max_frames} frames by {_FRAMES_AT_FIRST} or {FRAMES}"
        return self._kept(levels, name, "solutions planned", search)

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


def find(levels: LevelSet, sources: Sequence[str], max_frames: int, planner: Planner) -> dict[str, Any]:
    """Return inputs that reach the exit by level name, one byte a frame; recordings come before known ones, then plans.

    Recordings and known solutions of a level also serve its mirror image, where they win with left and right exchanged.

    Args:
        levels: the levels to solve; solutions of others are left out.
        sources: recordings (``.replay`` or attract files), ``known`` for the known solutions of built-in levels, and
            ``planned`` for solutions that the planner finds now.
        max_frames: longest solution; longer ones are left out.
        planner: finds those that are planned.

    Raises:
        FormatError, UnknownLevelError: if a file cannot be read.
    """
    recordings = [load_any_recording(Path(source)) for source in sources if source not in (KNOWN, PLANNED)]
    recorded = recorded_solutions(levels.levels, recordings)
    found: dict[str, Any] = {name: inputs for name, inputs in recorded.items() if len(inputs) <= max_frames}
    if KNOWN in sources:
        known = known_solutions_of(levels.levels)
        found = {name: inputs for name, inputs in known.items() if len(inputs) <= max_frames} | found
    found |= mirrored_solutions(levels.levels, found)
    if PLANNED in sources:
        first = _without_images([level for level in levels.levels if level.name not in found])
        if first:
            found |= planner.solutions(pack(first), max_frames)
            found |= mirrored_solutions(levels.levels, found)
        solved = [level for level in first if level.name in found]
        again = {level.raw.digest for level in solved} | {mirrored(level).raw.digest for level in solved}
        rest = [level for level in levels.levels if level.name not in found and level.raw.digest in again]
        if rest:  # images that the solution of their level does not solve
            found |= planner.solutions(pack(rest), max_frames)
    return found


def none_found(levels: LevelSet, sources: Sequence[str], max_frames: int) -> ConfigError:
    """Return the error that none of the levels is solved."""
    return ConfigError(
        f"starts: expected recordings that reach the exit of a training level within max_frames, {max_frames}, "
        f"{KNOWN!r} with built-in levels, or {PLANNED!r}, got {', '.join(sources)} for {_names(levels)}; check "
        f"recordings with 'nclone-env replay verify'"
    )


def recorded_solutions(levels: Sequence[Level], recordings: Iterable[Recording]) -> dict[str, np.ndarray]:
    """Return the shortest way to the exit of each level that is recorded, inputs (T,) uint8 by level name.

    Args:
        levels: levels of an environment; those without such a recording are left out.
        recordings: of any levels; each is simulated, and levels are compared by tiles and entities. Frames after the
            one in which the ninja reaches the exit do not count.
    """
    digests = {level.raw.digest for level in levels}
    found: dict[str, np.ndarray] = {}
    for recording in recordings:
        digest = recording.level.digest
        if digest not in digests:
            continue
        verdict = recording.verify()
        is_solution = verdict.agrees and verdict.state == CELEBRATING
        if is_solution and (digest not in found or verdict.end < len(found[digest])):
            found[digest] = recording.inputs[: verdict.end]
    return {level.name: found[level.raw.digest] for level in levels if level.raw.digest in found}


def mirrored_solutions(levels: Sequence[Level], solutions: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Return solutions of levels whose mirror images are solved: the same inputs with left and right exchanged.

    Each is simulated, as rounding and ties may spoil it.

    Args:
        solutions: inputs of some of them by level name.

    Returns:
        Inputs (T,) uint8 by name of further levels, up to the frame in which the ninja reaches the exit.
    """
    solved = {level.raw.digest: solutions[level.name] for level in levels if level.name in solutions}
    found: dict[str, np.ndarray] = {}
    for level in levels:
        inputs = None if level.name in solutions else solved.get(mirrored(level).raw.digest)
        exchanged = None if inputs is None else winning_inputs(level.raw, mirrored_inputs(check_inputs(inputs)))
        if exchanged is not None:
            found[level.name] = exchanged
    return found


def winning_inputs(level: RawLevel, inputs: np.ndarray) -> np.ndarray | None:
    """Return inputs, (T,) uint8, up to the frame in which the ninja reaches the exit; None if it does not."""
    wins = np.flatnonzero(simulate(level, inputs).state == CELEBRATING)
    return inputs[: wins[0] + 1] if len(wins) else None


def _without_images(levels: Sequence[Level]) -> list[Level]:
    """Return levels without those that are mirror images of earlier ones."""
    kept: dict[str, Level] = {}
    for level in levels:
        if mirrored(level).raw.digest not in kept:
            kept[level.raw.digest] = level
    return list(kept.values())


def _names(levels: LevelSet) -> str:
    more = f" and {len(levels.names) - 3} more" if len(levels.names) > 3 else ""
    return ", ".join(levels.names[:3]) + more
