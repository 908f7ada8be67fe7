"""Solutions of the levels of a run, along which its episodes may begin."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nclone_env.config import EnvironmentConfig
from nclone_env.env.playable import playable_levels
from nclone_env.errors import ConfigError
from nclone_env.level.level import Level
from nclone_env.level.level_set import LevelSet, pack
from nclone_env.level.mirror import mirrored
from nclone_env.level.solutions import known_solutions_of
from nclone_env.replay.recording import load_any_recording
from nclone_env.train.levels.planned import PLANNED, Planner
from nclone_env.train.starts import (
    STATES_PER_LEVEL,
    StartStates,
    mirrored_solutions,
    recorded_solutions,
    start_states,
)

KNOWN = "known"
"""Stand in ``TrainConfig.starts`` for the known solutions of built-in levels, and for those that the planner finds."""


def run_starts(environment: EnvironmentConfig, sources: Sequence[str], planner: Planner) -> StartStates | None:
    """Return the states along solutions that the episodes of a run begin in.

    Args:
        environment: configuration of the environments.
        sources: recordings of solutions, ``known`` or ``planned``; without any, episodes begin at the start of their
            level.
        planner: finds those that are planned.

    Raises:
        ConfigError: if no source solves one of the levels, or a solution does not fit into the time limit.
        FormatError, UnknownLevelError: if a file cannot be read.
    """
    if not sources:
        return None
    solutions = solutions_of(playable_levels(environment), sources, environment.max_frames, planner)
    return start_states(environment, solutions, STATES_PER_LEVEL)


def solutions_of(levels: LevelSet, sources: Sequence[str], max_frames: int, planner: Planner) -> dict[str, Any]:
    """Return inputs that reach the exit by level name, one byte a frame; recordings come before known ones, then plans.

    Recordings and known solutions of a level also serve its mirror image, where they win with left and right exchanged.

    Args:
        levels: the levels to solve; solutions of others are left out.
        sources: recordings (``.replay`` or attract files), ``known`` for the known solutions of built-in levels, and
            ``planned`` for solutions that the planner finds now.
        max_frames: longest solution; longer ones are left out.
        planner: finds those that are planned.

    Raises:
        ConfigError: if none of the levels is solved.
        FormatError, UnknownLevelError: if a file cannot be read.
    """
    found = found_solutions(levels, sources, max_frames, planner)
    if not found:
        raise ConfigError(
            f"starts: expected recordings that reach the exit of a training level within max_frames, {max_frames}, "
            f"{KNOWN!r} with built-in levels, or {PLANNED!r}, got {', '.join(sources)} for {_names(levels)}; check "
            f"recordings with 'nclone-env replay verify'"
        )
    return found


def found_solutions(levels: LevelSet, sources: Sequence[str], max_frames: int, planner: Planner) -> dict[str, Any]:
    """Return the same as :func:`solutions_of`, an empty dict if none of the levels is solved."""
    recordings = [load_any_recording(Path(source)) for source in sources if source not in (KNOWN, PLANNED)]
    recorded = recorded_solutions(levels.levels, recordings)
    found: dict[str, Any] = {name: inputs for name, inputs in recorded.items() if len(inputs) <= max_frames}
    if KNOWN in sources:
        known = known_solutions_of(levels.levels)
        found = {name: inputs for name, inputs in known.items() if len(inputs) <= max_frames} | found
    found |= mirrored_solutions(levels.levels, found)
    if PLANNED in sources:
        for without_images in (True, False):  # most images are solved by what solves their level
            rest = [level for level in levels.levels if level.name not in found]
            rest = _without_images(rest) if without_images else rest
            if rest:
                found |= planner.solutions(pack(rest), max_frames)
                found |= mirrored_solutions(levels.levels, found)
    return found


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
