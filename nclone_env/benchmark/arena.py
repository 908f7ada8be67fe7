"""Environments for one episode each: those whose episode is over rest."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode

from nclone_env.config import EnvironmentConfig
from nclone_env.env import NPlusPlusVectorEnv

GROUP = 64
"""Environments that are stepped together."""
_FULL = 0.75
"""Episodes move together when fewer of the stepped environments than this share have an unfinished one."""


class Arena:
    """Environments in groups, of which only those with an unfinished episode are stepped.

    Unfinished episodes move together as others end. Their observations stay in the same rows.

    Args:
        config: of the environments.
        size: number of environments.

    Attributes:
        seen: the last observations of all episodes, as the environment returns them.
    """

    def __init__(self, config: EnvironmentConfig, size: int):
        # a stack of frames is one of all environments
        count = max(size // GROUP, 1) if config.observation.frame_stack == 1 else 1
        self._envs = NPlusPlusVectorEnv(
            config, size, autoreset_mode=AutoresetMode.SAME_STEP, num_threads=1, num_groups=count
        )
        self._edges = [size * group // count for group in range(count + 1)]
        self._group_of = np.repeat(np.arange(count), np.diff(self._edges))
        self._actions, self._over = np.zeros(size, np.int64), np.zeros(size, np.bool_)
        self.seen: Any = None

    def begin(self, levels: np.ndarray) -> None:
        """Begin an episode on each of at most ``size`` levels, (n,)."""
        size = self._envs.num_envs
        self._envs.assign_levels(np.resize(levels, size))
        self.seen, _ = self._envs.reset(seed=0)
        self._episodes = np.arange(size)  # the episode of each environment

    def step(self, waiting: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """Step episodes.

        Args:
            waiting: (k,) the unfinished episodes, ascending.
            actions: (k,) one for each.

        Returns:
            (k,) bool, which of them ended.
        """
        place = np.argsort(self._episodes)[waiting]
        self._actions[place] = actions
        groups = np.unique(self._group_of[place]).tolist()
        for group in groups:
            self._envs.send(self._actions[self._edges[group] : self._edges[group + 1]], group)
        for group in groups:
            observations, _, terminated, truncated, _ = self._envs.recv(group)
            rows = self._episodes[self._edges[group] : self._edges[group + 1]]
            _put(self.seen, rows, observations)
            self._over[rows] = terminated | truncated
        ended = self._over[waiting]
        left = place[~ended]
        if len(groups) > 1 and 0 < len(left) <= _FULL * np.isin(self._group_of, groups).sum():
            order = np.concatenate((left, np.delete(np.arange(len(self._episodes)), left)))
            self._envs.gather(order)
            self._episodes = self._episodes[order]
        return ended

    def close(self) -> None:
        """Close the environments."""
        self._envs.close()


def _put(seen: Any, rows: np.ndarray, observations: Any) -> None:
    """Write observations (k, ...) into rows of others."""
    if isinstance(observations, dict):
        for name, array in observations.items():
            seen[name][rows] = array
    else:
        seen[rows] = observations
