"""Which levels and start states the episodes of a run begin with, adapted to success after each rollout."""

from collections.abc import Mapping, Sequence

import numpy as np

from nclone_env.memory import MemoryNode
from nclone_env.train.collect.environments import VectorEnvironment
from nclone_env.train.levels.curriculum import BackwardStarts, LevelCurriculum
from nclone_env.train.levels.solutions import StartStates


class EpisodeSelection:
    """Level weights and start states of all environments of a run; without either, nothing is changed.

    Args:
        envs: the environments of each group, of L levels; start states are set at once.
        curriculum: whether level weights follow success; else levels are left as they are.
        starts: states along solutions to begin episodes in; None: episodes begin at the start of their level.
    """

    def __init__(self, envs: Sequence[VectorEnvironment], curriculum: bool = False, starts: StartStates | None = None):
        self._envs, self._count = tuple(envs), len(envs[0].level_names)
        self._curriculum = LevelCurriculum(self._count) if curriculum else None
        self._backward = self._set_starts(starts)

    @property
    def weights(self) -> np.ndarray | None:
        """(L,) float64, the probability of each level; None if no curriculum decides it."""
        return None if self._curriculum is None else self._curriculum.weights()

    def update(self, episodes: Sequence[np.ndarray]) -> None:
        """Adapt the episodes that begin from now on to those that ended, ``FINISHED`` records of each group.

        Level weights follow all of them, wherever they began: they measure what is learned from the episodes played.
        """
        if not self._parts():
            return
        ended = np.concatenate(episodes)
        if self._curriculum is not None:
            self._curriculum.update(ended["level"], ended["success"])
            self._set_weights()
        if self._backward is not None and self._backward.update(ended["start"], ended["level"], ended["success"]):
            self._set_shares()

    def state(self) -> dict[str, dict[str, np.ndarray]]:
        """Return the measured success as arrays by name, for a checkpoint."""
        return {name: part.state() for name, part in self._parts().items()}

    def restore(self, state: Mapping[str, Mapping[str, np.ndarray]]) -> None:
        """Go on from a state: the same episodes then give the same weights and shares. What it lacks begins afresh."""
        for name, part in self._parts().items():
            if name in state:
                part.restore(state[name])
        self._set_weights()
        self._set_shares()

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

    def _set_weights(self) -> None:
        for group in self._envs:
            if self.weights is not None:
                group.set_level_weights(self.weights)

    def _set_shares(self) -> None:
        for group in self._envs:
            if self._backward is not None:
                group.set_start_shares(self._backward.shares())

    def _parts(self) -> dict[str, LevelCurriculum | BackwardStarts]:
        parts = {"curriculum": self._curriculum, "starts": self._backward}
        return {name: part for name, part in parts.items() if part is not None}


def assign_levels(envs: Sequence[VectorEnvironment], numbers: range) -> None:
    """Assign each environment the level that is its number, counted over all ranks, modulo the number of levels.

    Levels that are drawn for every episode get steps in proportion to the length of their episodes: a level where the
    policy dies early would hardly be trained on.
    """
    levels = np.array(numbers) % len(envs[0].level_names)
    for group in envs:
        group.assign_levels(levels[: group.num_envs])
        levels = levels[group.num_envs :]
