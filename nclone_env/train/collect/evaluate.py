"""Evaluation of a policy over a fixed number of episodes per level, next to a uniform random baseline."""

from __future__ import annotations

import math
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from nclone_env.actions import INPUT_OF_ACTION, NUM_ACTIONS
from nclone_env.config import EnvironmentConfig
from nclone_env.options import check_integer
from nclone_env.train.collect.acting import chosen_actions, one_thread_per_call
from nclone_env.train.collect.environments import MakeEnvironments, VectorEnvironment, make_environments, play_episodes
from nclone_env.train.hooks import SILENT, OnLevel
from nclone_env.train.network.policy import ActorCritic

Mode = Literal["sampled", "argmax", "random"]


@dataclass(frozen=True)
class LevelResult:
    """Result of one action mode on one level."""

    level: str
    """Name of the level."""
    mode: Mode
    """``sampled`` or ``argmax`` actions of a policy, or uniform ``random`` actions."""
    episodes: int
    """Episodes played."""
    success_rate: float
    """Fraction of episodes that reached the exit."""
    mean_return: float
    """Mean undiscounted return."""
    mean_frames: float
    """Mean number of simulated frames."""
    best_frames: int | None
    """Frames of the fastest win; None without a win."""
    won: bool
    """Whether ``actions`` reach the exit."""
    actions: np.ndarray = field(repr=False)
    """(k,) int8, actions of the fastest win; without a win, of the first environment."""

    def inputs(self, environment: EnvironmentConfig) -> np.ndarray:
        """Return the input bytes of ``actions`` in the environment of the evaluation, (frames,) uint8.

        They end with the frame that wins, or at the limit of frames; after a death some may be left over.
        """
        frames = self.best_frames if self.won else environment.max_frames
        return np.array(INPUT_OF_ACTION, np.uint8)[self.actions].repeat(environment.frame_skip)[:frames]

    def any_of(self, attempts: int) -> float:
        """Return the probability that at least one of some attempts succeeds.

        It is the share of the subsets of ``attempts`` of the episodes that contain a success, which has no bias.

        Raises:
            ConfigError: if there are fewer episodes than attempts.
        """
        check_integer("attempts", attempts, low=1, high=self.episodes)
        lost = self.episodes - round(self.success_rate * self.episodes)
        return 1.0 - math.comb(lost, attempts) / math.comb(self.episodes, attempts)


def evaluate(
    policy: ActorCritic | None,
    environment: EnvironmentConfig,
    mode: Mode = "sampled",
    episodes_per_level: int = 100,
    seed: int = 0,
    make_envs: MakeEnvironments = make_environments,
    on_level: OnLevel = SILENT.on_level,
) -> tuple[LevelResult, ...]:
    """Play each level in ``episodes_per_level`` environments and evaluate the first episode of each.

    Counting one episode per environment avoids a bias towards short episodes.

    Args:
        policy: the policy to evaluate; None for uniform random actions.
        environment: configuration of the environments.
        mode: how actions are chosen; always ``random`` without a policy.
        episodes_per_level: number of episodes per level.
        seed: fixes the environments and the sampled actions.
        make_envs: creates the vector environment.
        on_level: called after each level.

    Returns:
        One result per level, in the order of the environment's levels.
    """
    if policy is None or mode == "random":
        policy, mode, environment = None, "random", _without_look_ahead(environment)
    with one_thread_per_call(), closing(make_envs(environment, episodes_per_level)) as envs:
        chooser, count = Chooser(policy, mode, envs.num_envs, seed), len(envs.level_names)
        results = []
        for number in range(count):
            results.append(_play_level(envs, number, chooser, environment.max_steps, seed))
            on_level(f"levels played, {mode} actions", number + 1, count)
        return tuple(results)


def compare(
    policy: ActorCritic,
    environment: EnvironmentConfig,
    episodes_per_level: int = 100,
    seed: int = 0,
    make_envs: MakeEnvironments = make_environments,
    on_level: OnLevel = SILENT.on_level,
) -> dict[Mode, tuple[LevelResult, ...]]:
    """Evaluate sampled and argmax actions of a policy and random actions; return the results by mode.

    The arguments are those of :func:`evaluate`.
    """
    modes: tuple[Mode, ...] = ("sampled", "argmax", "random")
    return {mode: evaluate(policy, environment, mode, episodes_per_level, seed, make_envs, on_level) for mode in modes}


def best_episode(results: dict[Mode, tuple[LevelResult, ...]]) -> LevelResult:
    """Return the result to show as a video: the longest win of the policy, else any episode."""
    candidates = [*results.get("argmax", ()), *results.get("sampled", ())] or list(results["random"])
    return max(candidates, key=lambda result: (result.won, len(result.actions)))


def _without_look_ahead(environment: EnvironmentConfig) -> EnvironmentConfig:
    """Return the configuration without observations that simulate actions, unless there are no others."""
    others = tuple(name for name in environment.observations if name not in ("action_outcomes", "action_mask"))
    return environment.replace(observations=others or environment.observations)


class Chooser:
    """Chooses the actions of all environments according to a mode."""

    def __init__(self, policy: ActorCritic | None, mode: Mode, num_envs: int, seed: int):
        self.mode = mode
        self._policy, self._num_envs, self._seed, self._step = policy, num_envs, seed, 0
        self._random = np.random.default_rng(seed)

    def __call__(self, observations: Any) -> np.ndarray:
        """Return the actions (n,) int64 for observations (n, *shape)."""
        if self._policy is None:
            return self._random.integers(NUM_ACTIONS, size=self._num_envs)
        actions = chosen_actions(self._policy, observations, self.mode == "argmax", self._seed, self._step)
        self._step += 1
        return actions


def _play_level(envs: VectorEnvironment, number: int, choose: Chooser, most_steps: int, seed: int) -> LevelResult:
    """Play the first episode of every environment on the level of this number."""
    observations, _ = envs.reset(seed=seed, options={"level": number})
    actions = np.zeros((most_steps, envs.num_envs), np.int8)

    def act(seen: Any, waiting: np.ndarray, step: int) -> np.ndarray:
        chosen = choose(seen)
        actions[step] = chosen
        return chosen

    played = play_episodes(envs, act, observations, np.ones(envs.num_envs, np.bool_), most_steps)
    success, frames = played["success"], played["frames"]
    wins = frames[success]
    shown = int(np.where(success, frames, np.iinfo(int).max).argmin())
    return LevelResult(
        level=envs.level_names[number],
        mode=choose.mode,
        episodes=envs.num_envs,
        success_rate=float(success.mean()),
        mean_return=float(played["total"].mean()),
        mean_frames=float(frames.mean()),
        best_frames=int(wins.min()) if len(wins) else None,
        won=bool(success[shown]),
        actions=actions[: played["steps"][shown], shown].copy(),
    )
