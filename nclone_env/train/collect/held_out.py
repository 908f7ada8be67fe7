"""Success of the policy on levels that it does not train on, measured between two updates.

Every held-out level is played k times with sampled actions, by the threads and the network of the run. Nothing that
training reads is changed, so a run has the same parameters with and without it.
"""

import itertools
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from nclone_env.env import Workers
from nclone_env.memory import MemoryNode, array_group, merged
from nclone_env.train.collect.environments import PLAYED, VectorEnvironment, observation_arrays, play_episodes
from nclone_env.train.policies.acting import chosen_actions
from nclone_env.train.policies.device import DeviceNetwork
from nclone_env.train.policies.mlp import Network

MOST_ENVIRONMENTS = 64
"""Most episodes that a thread plays at a time."""
LEVEL_ATTEMPTS = np.dtype([("attempts", "i8"), ("wins", "i8"), ("total", "f8"), ("frames", "f8")])
"""The latest attempts on a level: how many, how many reached the exit, mean return and mean simulated frames."""


class HeldOutLevels:
    """The held-out levels of a run.

    The episodes are numbered, those of a level one after another, and played in batches of n. The random numbers of an
    episode follow from the seed, its number and the number of updates; batches do not depend on the threads.

    Args:
        envs: n environments with same-step autoreset for each thread, at most as many as a call of the network takes.

    Attributes:
        digests: digest of tiles and entities of each level, in the order of the environments' ``level_names``.
        results: (L,) ``LEVEL_ATTEMPTS``; no attempts before the first :meth:`play`.
    """

    def __init__(
        self,
        envs: Sequence[VectorEnvironment],
        digests: Sequence[str],
        network: Network | DeviceNetwork,
        *,
        attempts: int,
        seed: int,
        most_steps: int,
        recurrent_size: int = 0,
    ):
        self.digests = tuple(digests)
        self.results = np.zeros(len(self.digests), LEVEL_ATTEMPTS)
        self._envs, self._network = tuple(envs), network
        self._observations = [observation_arrays(group) for group in self._envs]
        self._states = [np.zeros((group.num_envs, recurrent_size), np.float32) for group in self._envs]
        self._attempts, self._most_steps = attempts, most_steps
        self._seed = int(np.random.SeedSequence([seed, 2]).generate_state(1)[0])
        self._played = np.zeros(len(self.digests) * attempts, PLAYED)

    @property
    def level_names(self) -> tuple[str, ...]:
        """Names of the L levels."""
        return self._envs[0].level_names

    def play(self, workers: Workers, updates: int) -> dict[str, float]:
        """Play every level; keep the results, and return two columns of the learning curve.

        ``held_out_success`` is the mean success of all attempts, ``held_out_any`` the share of levels of which at least
        one succeeded.
        """
        size = self._envs[0].num_envs

        def play(seat: int, first: int, last: int) -> None:
            for batch in range(first, last):
                self._play_batch(seat, batch * size, updates * self._most_steps)

        workers.run(play, 0, -(-len(self._played) // size))
        played = self._played.reshape(-1, self._attempts)
        self.results["attempts"] = self._attempts
        self.results["wins"] = played["success"].sum(axis=1)
        for name in ("total", "frames"):
            self.results[name] = played[name].mean(axis=1)
        return {
            "held_out_success": float(self._played["success"].mean()),
            "held_out_any": float((self.results["wins"] > 0).mean()),
        }

    def warm_up(self, workers: Workers) -> None:
        """Reset and step the environments of every thread once; the results are left as they are."""

        def begin(seat: int, first: int, last: int) -> None:
            groups = zip(self._envs, self._observations, self._states)
            for envs, observations, states in itertools.islice(groups, first, last):
                envs.reset(seed=0, out=observations)
                self._network.outputs(seat, observations, states)
                envs.step(np.zeros(envs.num_envs, np.int64), out=observations)

        workers.run(begin, 0, len(self._envs))

    def memory(self) -> MemoryNode:
        """Return the bytes of the environments, their observations and the results."""
        arrays: dict[str, np.ndarray] = {"results": self.results, "attempts": self._played}
        arrays |= {f"states {seat}": states for seat, states in enumerate(self._states) if states.size}
        own = array_group("results", arrays, shared=True)
        seen = (array_group("observations", arrays, shared=True) for arrays in self._observations)
        envs = _of_the_run(merged([envs.memory() for envs in self._envs]))
        return MemoryNode("held-out levels", children=(own, *seen, envs))

    def close(self) -> None:
        """Close the environments."""
        for envs in self._envs:
            envs.close()

    def _play_batch(self, seat: int, first: int, first_step: int) -> None:
        """Play the episodes from number ``first`` on, one in each environment of a thread."""
        envs, observations, count = self._envs[seat], self._observations[seat], len(self._played)
        states = self._states[seat]
        states.fill(0)
        numbers = first + np.arange(envs.num_envs)
        waiting = numbers < count  # environments beyond the last episode repeat its level
        envs.assign_levels(np.minimum(numbers, count - 1) // self._attempts)
        envs.reset(seed=0, out=observations)

        def choose(seen: Any, waiting: np.ndarray, step: int) -> np.ndarray:
            draw = self._seed, first, first_step + step
            return chosen_actions(partial(self._network.outputs, seat), seen, False, draw, waiting, states)

        played = play_episodes(envs, choose, observations, waiting, self._most_steps, observations)
        self._played[first : first + len(played)] = played[: count - first]


def _of_the_run(tree: MemoryNode) -> MemoryNode:
    """Return a tree whose bytes do not grow with the environments that are trained in."""
    return replace(tree, shared=True, children=tuple(map(_of_the_run, tree.children)))
