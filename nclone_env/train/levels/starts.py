"""Episodes that begin along a solution: snapshots of it, and a curriculum that moves back from its end to its start.

Reverse curricula (Florensa et al., 2017; Salimans and Chen, 2018) begin episodes close to the goal, where success is
likely, and move the start back as success from it is learned.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nclone_env.actions import ACTION_OF_INPUT
from nclone_env.config import EnvironmentConfig, ObservationConfig
from nclone_env.constants import INPUT_SUICIDE
from nclone_env.env import OUTCOMES, NPlusPlusVectorEnv, playable_levels
from nclone_env.errors import ConfigError, InputsError
from nclone_env.memory_tree import MemoryNode, array_group
from nclone_env.options import check_integer
from nclone_env.sim import check_inputs
from nclone_env.train.hooks import SILENT, Hooks
from nclone_env.train.levels.curriculum import SuccessAverages, check_numbers, check_outcomes, copied, restore_arrays
from nclone_env.train.levels.solutions import Planner, find, none_found

STATES_PER_LEVEL = 16
"""Snapshots along the solution of a level in a training run."""
_NEW_EPISODE = 0.1
"""Weight of a new episode in the success rates."""
_LEAST_EPISODES = 10
"""Episodes from a start before its success rate is believed."""
_TOGETHER = 256
"""Solutions that are played at a time, of about equal lengths."""
_IN_USE = 3
"""Start states of a level in use at a time: the earliest and the next ones behind it, which are not unlearned then."""


@dataclass(frozen=True, eq=False)
class StartStates:
    """K snapshots along solutions.

    Attributes:
        states: the snapshots, as ``set_starts`` of a vector environment takes them; those of a level from its start to
            its exit, one level after another.
        levels: (K,) int64, ascending; the level of each, an index of the environment's ``level_names``.
        frames: (K,) int64; the number of inputs before each.
    """

    states: tuple[bytes, ...]
    levels: np.ndarray
    frames: np.ndarray


def start_states(
    config: EnvironmentConfig, solutions: Mapping[str, Any], count: int, hooks: Hooks = SILENT
) -> StartStates:
    """Return snapshots along solutions of the levels of an environment.

    Those of a level divide its solution evenly, without its start and its end.

    Args:
        config: configuration of the vector environment that will begin episodes in them.
        solutions: inputs that reach the exit, one byte 0..7 a frame, by level name; see
            ``nclone_env.level.known_solutions``. Levels without one get no states; inputs after the exit are ignored.
        count: number of states of a level, at least 1; fewer if its solution is shorter.
        hooks: told of the levels whose solutions were played.

    Raises:
        UnknownLevelError: if a name is not one of the environment's ``level_names``.
        InputsError: if an input is not a whole number from 0 to 7.
        ConfigError: if inputs do not reach the exit within the time limit, or ``count`` is out of range.
    """
    check_integer("count", count, low=1, high=1 << 20)
    observed = {"observations": ("game_state",), "observation": ObservationConfig(), "render_mode": None}
    played = config.replace(**observed, action_space="discrete", frame_skip=1)
    envs = NPlusPlusVectorEnv(played, min(max(len(solutions), 1), _TOGETHER), autoreset_mode="SameStep")
    numbers = {name: number for number, name in enumerate(envs.level_names)}
    actions = {name: _actions_of(inputs, name) for name, inputs in solutions.items()}
    names = sorted(actions, key=lambda name: len(actions[name]))
    found: dict[str, dict[int, bytes]] = {}
    for first in range(0, len(names), envs.num_envs):
        chosen = {name: actions[name] for name in names[first : first + envs.num_envs]}
        found |= _snapshots_along(envs, chosen, count)
        hooks.level("solutions played", len(found), len(names))
    envs.close()
    in_order = sorted(found, key=numbers.__getitem__)
    levels = [numbers[name] for name in in_order for _ in found[name]]
    frames = [frame for name in in_order for frame in found[name]]
    states = tuple(state for name in in_order for state in found[name].values())
    return StartStates(states, np.array(levels, np.int64), np.array(frames, np.int64))


def run_starts(environment: EnvironmentConfig, sources: Sequence[str], planner: Planner) -> StartStates | None:
    """Return the states along solutions that the episodes of a run begin in.

    Args:
        sources: recordings of solutions, ``known`` or ``planned``; without any, episodes begin at the start of their
            level.
        planner: finds those that are planned.

    Raises:
        ConfigError: if no source solves one of the levels, or a solution does not fit into the time limit.
        FormatError, UnknownLevelError: if a file cannot be read.
    """
    if not sources:
        return None
    levels = playable_levels(environment)
    solutions = find(levels, sources, environment.max_frames, planner)
    if not solutions:
        raise none_found(levels, sources, environment.max_frames)
    return start_states(environment, solutions, STATES_PER_LEVEL, planner.hooks)


class BackwardStarts:
    """Which start states are in use: at first the last ones of each level, then earlier ones as success is learned.

    Of each level, the earliest state in use and up to two behind it are drawn alike. Once the success rate of episodes
    from the earliest passes the threshold, the state before it comes into use; after the first state of the level, or
    once episodes from the level's own start pass the threshold, the level is done and always begins at its start. Rates
    fade exponentially over about ten episodes.

    Args:
        levels: (K,) integers, ascending; the level of each start state, those of a level from its start to its exit.
        num_levels: number L of levels.
        threshold: success rate from which the start is moved back.
        share: share of the episodes of a level that begin in start states until it is done.

    Raises:
        ConfigError: if a value is out of range, or the levels do not ascend.
    """

    def __init__(self, levels: np.ndarray, num_levels: int, *, threshold: float = 0.5, share: float = 0.8):
        self._levels = check_numbers("levels", levels, num_levels, low=0)
        if (np.diff(self._levels) < 0).any():
            raise ConfigError("levels: expected those of a level one after another, ascending, as start_states returns")
        if not 0.0 < threshold < 1.0:
            raise ConfigError(f"threshold: expected a success rate between 0 and 1, got {threshold!r}")
        if not 0.0 < share <= 1.0:
            raise ConfigError(f"share: expected a share above 0, at most 1, got {share!r}")
        self._threshold, self._share = float(threshold), float(share)
        self._first = np.searchsorted(self._levels, np.arange(num_levels))
        self._ahead = np.bincount(self._levels, minlength=num_levels)
        self._earliest, self._own = (SuccessAverages(num_levels, _NEW_EPISODE) for _ in range(2))

    @property
    def ahead(self) -> np.ndarray:
        """(L,) int64, the number of start states of each level that are still to be passed, a copy; 0: it is done."""
        return self._ahead.copy()

    def update(self, starts: np.ndarray, levels: np.ndarray, success: np.ndarray) -> bool:
        """Take in the outcomes of k episodes that ended together; a level moves by at most one state.

        Args:
            starts: (k,) integers, the number of the start state of each episode, -1 for any other start.
            levels: (k,) integers, the level of each.
            success: (k,) bool.

        Returns:
            Whether :meth:`shares` has changed.

        Raises:
            ConfigError: if a shape, dtype or number is wrong; nothing is changed.
        """
        played, won = check_outcomes(levels, success, len(self._ahead))
        begun = check_numbers("starts", starts, len(self._levels), low=-1)
        if begun.shape != played.shape:
            raise ConfigError(f"starts: expected shape {played.shape}, got {begun.shape}")
        earliest = self._first + self._ahead - 1
        for averages, chosen in ((self._earliest, begun == earliest[played]), (self._own, begun == -1)):
            counts = np.bincount(played[chosen], minlength=len(self._ahead))
            averages.add(counts, np.bincount(played[chosen & won], minlength=len(self._ahead)))
        waiting = self._ahead > 0
        done = waiting & self._passes(self._own)
        moved = waiting & self._passes(self._earliest)
        self._ahead[moved] -= 1
        self._ahead[done] = 0
        self._earliest.clear(moved | done)
        return bool((moved | done).any())

    def shares(self) -> np.ndarray:
        """Return the probability of each start state, (K,) float64, for ``set_start_shares``."""
        ahead = self._ahead[self._levels]
        place = np.arange(len(self._levels)) - self._first[self._levels]
        used = (ahead > 0) & (place >= ahead - 1) & (place < ahead - 1 + _IN_USE)
        counts = np.bincount(self._levels[used], minlength=len(self._ahead))
        return np.where(used, self._share / np.maximum(counts, 1)[self._levels], 0.0)

    def state(self) -> dict[str, np.ndarray]:
        """Return how far each level is, as arrays (L,), copies, for a checkpoint."""
        return copied(self._arrays())

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Go on from a state: the same outcomes then give the same bits.

        Args:
            state: from :meth:`state` with the same start states.

        Raises:
            ConfigError: if an array is missing, or has another shape or dtype; nothing is changed.
        """
        restore_arrays(self._arrays(), state)

    def memory(self) -> MemoryNode:
        """Return the bytes of numbers and rates."""
        own = {"levels": self._levels, "first": self._first}
        return array_group("backward starts", {**own, **self._arrays()}, shared=True)

    def _passes(self, averages: SuccessAverages) -> np.ndarray:
        believed = averages.left <= (1.0 - _NEW_EPISODE) ** (_LEAST_EPISODES - 0.5)
        return believed & (averages.rates() >= self._threshold)

    def _arrays(self) -> dict[str, np.ndarray]:
        return {
            "ahead": self._ahead,
            "earliest": self._earliest.total,
            "earliest_left": self._earliest.left,
            "own": self._own.total,
            "own_left": self._own.left,
        }


def _snapshots_along(
    envs: NPlusPlusVectorEnv, actions: Mapping[str, np.ndarray], count: int
) -> dict[str, dict[int, bytes]]:
    """Play a solution in each environment; return the snapshots of each level by the number of actions before it."""
    names = list(actions)
    lengths = [len(own) for own in actions.values()]
    places = [{round(part * length / (count + 1)) for part in range(1, count + 1)} - {0, length} for length in lengths]
    states: dict[str, dict[int, bytes]] = {name: {} for name in names}
    ended: dict[str, tuple[int, str]] = {}
    for frame, ends, info in _steps(envs, actions):
        for index in np.flatnonzero(ends[: len(names)]).tolist():
            ended.setdefault(names[index], (frame, OUTCOMES[info["final_info"]["outcome"][index]]))
        for index, chosen in enumerate(places):
            if frame in chosen:
                states[names[index]][frame] = envs.get_state(index)
    longer: dict[str, np.ndarray] = {}
    for name, own in actions.items():
        frame, outcome = ended.get(name, (len(own) + 1, "playing"))
        if frame > len(own):
            frame, outcome = len(own), "playing" if len(own) else "no input"
        if outcome != "won":
            raise ConfigError(
                f"inputs: expected a solution that reaches the exit of {name!r}, got {outcome} after {frame} frames; "
                f"max_frames is {envs.config.max_frames}"
            )
        if frame < len(own):
            longer[name] = own[:frame]
    return states | _snapshots_along(envs, longer, count) if longer else states


def _steps(
    envs: NPlusPlusVectorEnv, actions: Mapping[str, np.ndarray]
) -> Iterator[tuple[int, np.ndarray, dict[str, Any]]]:
    """Begin an episode on a level in each environment, and step them; yield frame, ends of episodes and info."""
    rows = np.zeros((max(map(len, actions.values())), envs.num_envs), np.int64)
    for index, own in enumerate(actions.values()):
        rows[: len(own), index] = own
    envs.assign_levels([*actions, *[None] * (envs.num_envs - len(actions))])
    envs.reset(seed=[0] * envs.num_envs)  # the seed is part of a snapshot
    for frame, row in enumerate(rows, start=1):
        _, _, terminated, truncated, info = envs.step(row)
        yield frame, terminated | truncated, info


def _actions_of(inputs: Any, level: str) -> np.ndarray:
    """Return the action of each input byte, (T,) int64."""
    codes = check_inputs(inputs)
    if (codes & INPUT_SUICIDE).any():
        frame = int(np.flatnonzero(codes & INPUT_SUICIDE)[0])
        raise InputsError(f"inputs: expected bytes 0..7 for {level!r}, got {codes[frame]} (give up) in frame {frame}")
    return np.array(ACTION_OF_INPUT, np.int64)[codes]
