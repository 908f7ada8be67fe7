"""Which levels and start states the episodes of a run begin with, adapted to success after each rollout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from nclone_env.config import EnvironmentConfig
from nclone_env.env.playable import playable_levels
from nclone_env.errors import ConfigError
from nclone_env.level.level_set import LevelSet
from nclone_env.level.solutions import known_solutions
from nclone_env.memory_tree import MemoryNode
from nclone_env.replay.recording import load_any_recording
from nclone_env.train.curriculum import LevelCurriculum
from nclone_env.train.environments import VectorEnvironment
from nclone_env.train.planned import PLANNED, planned_solutions
from nclone_env.train.starts import (
    STATES_PER_LEVEL,
    BackwardStarts,
    StartStates,
    mirrored_solutions,
    recorded_solutions,
    start_states,
)

KNOWN = "known"
"""Stand in ``TrainConfig.starts`` for the known solutions of built-in levels, and for those that the planner finds."""


class EpisodeSelection:
    """Level weights and start states of all environments of a run; without either, nothing is changed.

    Args:
        envs: the environments of each group; start states are set at once.
        count: number L of levels that episodes begin on, the first ones of the environments.
        curriculum: whether level weights follow success; else levels are left as they are.
        starts: states along solutions to begin episodes in; None: episodes begin at the start of their level.
    """

    def __init__(
        self,
        envs: Sequence[VectorEnvironment],
        count: int,
        curriculum: bool = False,
        starts: StartStates | None = None,
    ):
        self._envs, self._count = tuple(envs), count
        self._curriculum = LevelCurriculum(count) if curriculum else None
        self._backward = self._set_starts(starts)

    @property
    def weights(self) -> np.ndarray | None:
        """(L,) float64, the probability of each level; None if no curriculum decides it."""
        return None if self._curriculum is None else self._curriculum.weights()

    def update(self, episodes: Sequence[np.ndarray]) -> None:
        """Adapt the episodes that begin from now on to those that ended in a rollout.

        Level weights follow all of them, wherever they began: they measure what is learned from the episodes that are
        played.

        Args:
            episodes: ``FINISHED`` records of each group.
        """
        if self._curriculum is None and self._backward is None:
            return
        ended = np.concatenate(episodes)
        if self._curriculum is not None:
            self._curriculum.update(ended["level"], ended["success"])
            self._set_weights(self._curriculum.weights())
        if self._backward is not None and self._backward.update(ended["start"], ended["level"], ended["success"]):
            self._set_shares(self._backward.shares())

    def apply(self) -> None:
        """Set level weights and shares of the start states in all environments."""
        if self._curriculum is not None:
            self._set_weights(self._curriculum.weights())
        if self._backward is not None:
            self._set_shares(self._backward.shares())

    def renew(self, kept: int, starts: StartStates | None) -> None:
        """Go on with other levels, of which the first ``kept`` are those of before; what was measured on those stays.

        Args:
            kept: number of levels that stay.
            starts: states along solutions of the new levels; those of levels that stay are as many as before.
        """
        past = self.state()
        if self._curriculum is not None:
            self._curriculum = LevelCurriculum(self._count)
        self._backward = self._set_starts(starts)
        state = self.state()
        for name, arrays in state.items():
            for key, array in arrays.items():
                array[:kept] = past[name][key][:kept]
        self.restore(state)

    def state(self) -> dict[str, dict[str, np.ndarray]]:
        """Return the measured success as arrays by name, for a checkpoint."""
        return {name: part.state() for name, part in self._parts().items()}

    def restore(self, state: Mapping[str, Mapping[str, np.ndarray]]) -> None:
        """Go on from a state: the same episodes then give the same weights and shares. What it lacks begins afresh.

        Raises:
            ConfigError: if it is of other levels or start states.
        """
        for name, part in self._parts().items():
            if name in state:
                part.restore(state[name])
        self.apply()

    def memory(self) -> MemoryNode:
        """Return the bytes of the measured success."""
        return MemoryNode("selection", children=tuple(part.memory() for part in self._parts().values()))

    def _set_starts(self, starts: StartStates | None) -> BackwardStarts | None:
        if starts is None:
            return None
        backward = BackwardStarts(starts.levels, self._count)
        for group in self._envs:
            group.set_starts(starts.states, backward.shares())
        return backward

    def _set_weights(self, weights: np.ndarray) -> None:
        for group in self._envs:
            others = len(group.level_names) - self._count
            group.set_level_weights(np.append(weights, np.zeros(others)))

    def _set_shares(self, shares: np.ndarray) -> None:
        for group in self._envs:
            group.set_start_shares(shares)

    def _parts(self) -> dict[str, LevelCurriculum | BackwardStarts]:
        parts = {"curriculum": self._curriculum, "starts": self._backward}
        return {name: part for name, part in parts.items() if part is not None}


def run_starts(environment: EnvironmentConfig, sources: Sequence[str], threads: int) -> StartStates | None:
    """Return the states along solutions that the episodes of a run begin in.

    Args:
        environment: configuration of the environments.
        sources: recordings of solutions, ``known`` or ``planned``; without any, episodes begin at the start of their
            level.
        threads: levels that are planned at a time.

    Raises:
        ConfigError: if no source solves one of the levels, or a solution does not fit into the time limit.
        FormatError, UnknownLevelError: if a file cannot be read.
    """
    if not sources:
        return None
    solutions = solutions_of(playable_levels(environment), sources, environment.max_frames, threads)
    return start_states(environment, solutions, STATES_PER_LEVEL)


def spread_levels(envs: Sequence[VectorEnvironment], numbers: range, count: int, *, assign: bool) -> None:
    """Spread the first ``count`` levels over the environments evenly.

    Args:
        envs: the environments of each group.
        numbers: their numbers, counted over all ranks.
        count: number of levels.
        assign: whether each environment gets a level of its own, if there are enough; else levels are drawn.
    """
    for group in envs:
        if len(group.level_names) > count:
            group.set_level_weights((np.arange(len(group.level_names)) < count).astype(np.float64))
    if assign and count > 1:
        assign_levels(envs, numbers, count)


def assign_levels(envs: Sequence[VectorEnvironment], numbers: range, count: int) -> None:
    """Assign each environment the level that is its number modulo the number of levels.

    Levels that are drawn for every episode would get steps in proportion to the length of their episodes: a level where
    the policy dies early would hardly be trained on.

    Args:
        envs: the environments of each group.
        numbers: their numbers, counted over all ranks.
        count: number of levels.
    """
    levels = np.array(numbers) % count
    for group in envs:
        group.assign_levels(levels[: group.num_envs])
        levels = levels[group.num_envs :]


def solutions_of(levels: LevelSet, sources: Sequence[str], max_frames: int, threads: int) -> dict[str, Any]:
    """Return inputs that reach the exit by level name, one byte a frame; recordings come before known ones, then plans.

    Recordings and known solutions of a level also serve its mirror image, where they win with left and right exchanged.

    Args:
        levels: the levels to solve; solutions of others are left out.
        sources: recordings (``.replay`` or attract files), ``known`` for the known solutions of built-in levels, and
            ``planned`` for solutions that the planner finds now.
        max_frames: longest solution; longer ones are left out.
        threads: levels that are planned at a time.

    Raises:
        ConfigError: if none of the levels is solved.
        FormatError, UnknownLevelError: if a file cannot be read.
    """
    found = found_solutions(levels, sources, max_frames, threads)
    if not found:
        raise ConfigError(
            f"starts: expected recordings that reach the exit of a training level within max_frames, {max_frames}, "
            f"{KNOWN!r} with built-in levels, or {PLANNED!r}, got {', '.join(sources)} for {_names(levels)}; check "
            f"recordings with 'nclone-env replay verify'"
        )
    return found


def found_solutions(levels: LevelSet, sources: Sequence[str], max_frames: int, threads: int) -> dict[str, Any]:
    """Return the same as :func:`solutions_of`, an empty dict if none of the levels is solved."""
    recordings = [load_any_recording(Path(source)) for source in sources if source not in (KNOWN, PLANNED)]
    recorded = recorded_solutions(levels.levels, recordings)
    found: dict[str, Any] = {name: inputs for name, inputs in recorded.items() if len(inputs) <= max_frames}
    if KNOWN in sources:
        known = {name: inputs for name, inputs in known_solutions().items() if name in levels.names}
        found = {name: inputs for name, inputs in known.items() if len(inputs) <= max_frames} | found
    found |= mirrored_solutions(levels.levels, found)
    if PLANNED in sources:
        found = planned_solutions(levels, max_frames, threads) | found
    return found


def _names(levels: LevelSet) -> str:
    more = f" and {len(levels.names) - 3} more" if len(levels.names) > 3 else ""
    return ", ".join(levels.names[:3]) + more
