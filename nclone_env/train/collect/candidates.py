"""Actions of a policy that plays ahead: the best of several candidates, in copies of the environments.

Every 32 frames each candidate goes on for 256 frames with sampled actions of the policy, the first one with those that
are left of the plan before. Rewards and, at the horizon, the value function rank them; the exit comes before all, and
a death after all. The actions of the best are taken for 32 frames, or up to the exit. The physics is deterministic, so
they have the effect that they had in the copy.

Later candidates draw from flatter distributions, so that fewer decisions leave only deaths.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode

from nclone_env.config import EnvironmentConfig
from nclone_env.env import DIED, WON, NPlusPlusVectorEnv
from nclone_env.errors import check_integer
from nclone_env.train.collect.acting import one_thread_per_call, policy_outputs
from nclone_env.train.collect.environments import VectorEnvironment
from nclone_env.train.network.policy import ActorCritic

HORIZON_FRAMES, TAKEN_FRAMES = 256, 32
"""Frames that a candidate is played for, and how many of them are taken."""
HOTTEST = 3.0
"""Temperature of the last candidate; that of the first is 1."""
_MOST_CANDIDATES, _TOGETHER = 4096, 256
"""Most candidates of a decision; and most of several decisions that are played at a time."""
_OUTWEIGHS = 1e6
"""More than any return."""


def check_candidates(candidates: int) -> None:
    """Check the number of candidates of a decision.

    Raises:
        ConfigError: if it is out of range.
    """
    check_integer("candidates", candidates, low=1, high=_MOST_CANDIDATES)


class CandidateSearch:
    """Chooses the actions of environments, as ``environments.Choose``; every call must be the next step of theirs.

    The random numbers of a decision are a function of the seed, the number of the episode and the step.

    Args:
        policy: proposes the actions and values the ends of candidates.
        config: configuration of the environments.
        envs: n environments without autoreset.
        candidates: k, candidates of each decision.
        seed: of the random numbers.
        first: number of the episode that the first environment plays.
    """

    def __init__(
        self,
        policy: ActorCritic,
        config: EnvironmentConfig,
        envs: VectorEnvironment,
        candidates: int,
        seed: int,
        first: int = 0,
    ):
        self._policy, self._envs, self._seed, self._first = policy, envs, seed, first
        self._horizon, self._taken = (max(1, frames // config.frame_skip) for frames in (HORIZON_FRAMES, TAKEN_FRAMES))
        self._gamma = config.reward.gamma
        rows = max(1, min(envs.num_envs, _TOGETHER // candidates))
        self._shape, count = (rows, candidates), rows * candidates
        self._copies = NPlusPlusVectorEnv(config, count, autoreset_mode=AutoresetMode.DISABLED, num_threads=1)
        self._copies.reset(seed=0)
        self._temperatures = np.tile(np.linspace(1.0, HOTTEST, candidates, dtype=np.float32), rows)[:, None]
        self._plans = np.full((self._horizon, envs.num_envs), -1)
        self._left = np.zeros(envs.num_envs, np.int64)

    def __call__(self, seen: Any, waiting: np.ndarray, step: int) -> np.ndarray:
        """Return the actions (n,) of a step; observations are taken from the copies."""
        asked = np.flatnonzero(waiting & (self._left == 0))
        if len(asked):
            with one_thread_per_call():
                for start in range(0, len(asked), self._shape[0]):
                    self._decide(asked[start : start + self._shape[0]], step)
        actions = np.maximum(self._plans[0], 0)
        self._plans = np.roll(self._plans, -1, axis=0)
        self._plans[-1] = -1
        self._left = np.maximum(self._left - 1, 0)
        return actions

    def close(self) -> None:
        """Close the copies."""
        self._copies.close()

    def _decide(self, places: np.ndarray, step: int) -> None:
        """Plan the next steps of some environments."""
        rows, candidates = self._shape
        firsts, filled = np.arange(rows) * candidates, np.resize(places, rows)
        for first, place in zip(firsts, filled):
            self._copies.set_state(int(first), self._envs.get_state(int(place)))
        observations, _ = self._copies.gather(firsts.repeat(candidates))
        actions, scores, won = self._play(observations, filled, step)
        best = (firsts + scores.reshape(rows, candidates).argmax(axis=1))[: len(places)]
        self._plans[:, places] = actions[:, best]
        self._left[places] = np.where(won[best], self._horizon, self._taken)

    def _play(
        self, observations: Mapping[str, np.ndarray], places: np.ndarray, step: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Play all candidates; return their actions (horizon, n), their scores (n,) and which of them won, (n,)."""
        count, candidates = self._copies.num_envs, self._shape[1]
        uniforms = np.stack([self._draws(place, step) for place in places], axis=1).reshape(self._horizon, count)
        planned = self._plans[:, places]
        actions = np.zeros((self._horizon, count), np.int64)
        scores, playing, won, discount = np.zeros(count), np.ones(count, np.bool_), np.zeros(count, np.bool_), 1.0
        for number in range(self._horizon):
            chosen = self._sample(observations, uniforms[number])
            chosen[::candidates] = np.where(planned[number] < 0, chosen[::candidates], planned[number])
            actions[number] = chosen
            observations, rewards, terminated, truncated, info = self._copies.step(chosen)
            scores += np.where(playing, discount * rewards, 0.0)
            discount *= self._gamma
            won |= playing & (info["outcome"] == WON)
            scores[playing & (info["outcome"] == DIED)] -= _OUTWEIGHS * (2 - number / self._horizon)  # better late
            playing &= ~(terminated | truncated)
            if not playing.any():
                break
        scores[playing] += discount * policy_outputs(self._policy, observations)[1][playing]
        return actions, scores + _OUTWEIGHS * won, won

    def _draws(self, place: int, step: int) -> np.ndarray:
        """Return the random numbers of a decision, (horizon, k)."""
        random = np.random.default_rng([self._seed, self._first + int(place), step])
        return random.random((self._horizon, self._shape[1]), np.float32)

    def _sample(self, observations: Mapping[str, np.ndarray], uniforms: np.ndarray) -> np.ndarray:
        """Draw an action for each candidate, (n,) int64, at its temperature."""
        logits = policy_outputs(self._policy, observations)[0] / self._temperatures
        if "action_mask" in self._policy.observation_shapes:
            logits[observations["action_mask"] == 0] = -np.inf
        weights = np.exp(logits - logits.max(axis=1, keepdims=True)).cumsum(axis=1)
        return (weights <= uniforms[:, None] * weights[:, -1:]).sum(axis=1)
