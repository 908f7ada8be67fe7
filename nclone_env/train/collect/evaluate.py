"""Evaluation of a policy over a fixed number of episodes per level, next to a uniform random baseline.

Episodes to be watched are played frame by frame.

A policy can also play ahead, and take the best of several candidates in copies of the environments. Every 32 frames
each candidate goes on for 256 frames with sampled actions of the policy, the first one with those that are left of the
plan before. Rewards and, at the horizon, the value function rank them; the exit comes before all, and a death after
all. The actions of the best are taken for 32 frames, or up to the exit. The physics is deterministic, so they have the
effect that they had in the copy; with sticky actions the copies repeat others than the environment will, and none is
taken for more than 32 frames. Later candidates draw from flatter distributions, so that fewer decisions leave only
deaths.
"""

import itertools
import math
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, get_args

import numpy as np
from gymnasium.vector import AutoresetMode

from nclone_env._processes import check_wanted, in_order, threads
from nclone_env.config import EnvironmentConfig
from nclone_env.env import DIED, WON, NPlusPlusVectorEnv, playable_levels
from nclone_env.errors import ConfigError, check_choice, check_integer, checked
from nclone_env.game import INPUT_OF_ACTION, NUM_ACTIONS
from nclone_env.level import Level
from nclone_env.machine import default_workers
from nclone_env.replay import WatchedRun, shown_name
from nclone_env.train.collect.environments import (
    Choose,
    MakeEnvironments,
    VectorEnvironment,
    make_resting_environments,
    play_episodes,
)
from nclone_env.train.hooks import SILENT, OnLevel
from nclone_env.train.policies.acting import chosen_actions, one_thread_per_call, policy_outputs
from nclone_env.train.policies.network import ActorCritic

Mode = Literal["sampled", "argmax", "random"]
_MOST_EPISODES, _MOST_THREADS = 10**6, 1024
_TOGETHER, _TOGETHER_AHEAD = 512, 64
"""Most episodes that are played at a time, unless a level alone has more; and of those that play ahead, whose decisions
take eight environments at a time, so that all cores have a share of few episodes."""


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
    death_rate: float
    """Fraction of episodes that ended in a death; the others ran out of time."""
    mean_return: float
    """Mean undiscounted return."""
    mean_frames: float
    """Mean number of simulated frames."""
    best_frames: int | None
    """Frames of the fastest win; None without a win."""
    won: bool
    """Whether ``actions`` reach the exit."""
    actions: np.ndarray = field(repr=False)
    """(k,) int8, actions that the fastest win took; without a win, the first environment."""

    @checked()
    def inputs(self, environment: EnvironmentConfig) -> np.ndarray:
        """Return the input bytes of ``actions`` in the environment of the evaluation, (frames,) uint8.

        They end with the frame that wins, or at the limit of frames; after a death some may be left over.
        """
        frames = self.best_frames if self.won else environment.max_frames
        return np.array(INPUT_OF_ACTION, np.uint8)[self.actions].repeat(environment.frame_skip)[:frames]

    @checked()
    def any_of(self, attempts: int) -> float:
        """Return the probability that at least one of some attempts succeeds.

        It is the share of the subsets of ``attempts`` of the episodes that contain a success, which has no bias.

        Raises:
            ConfigError: if there are fewer episodes than attempts.
        """
        check_integer("attempts", attempts, low=1, high=self.episodes)
        lost = self.episodes - round(self.success_rate * self.episodes)
        return 1.0 - math.comb(lost, attempts) / math.comb(self.episodes, attempts)


@checked("mode", "candidates")
def evaluate(
    policy: ActorCritic | None,
    environment: EnvironmentConfig,
    mode: Mode = "sampled",
    episodes_per_level: int = 100,
    seed: int = 0,
    make_envs: MakeEnvironments = make_resting_environments,
    on_level: OnLevel = SILENT.on_level,
    candidates: int = 1,
    num_threads: int | None = None,
) -> tuple[LevelResult, ...]:
    """Play each level in ``episodes_per_level`` environments and evaluate the first episode of each.

    Counting one episode per environment avoids a bias towards short episodes.

    Args:
        policy: the policy to evaluate; None for uniform random actions.
        environment: configuration of the environments.
        mode: how actions are chosen; always ``random`` without a policy.
        episodes_per_level: number of episodes per level.
        seed: fixes the environments and the sampled actions; the random number of an action is a function of the
            seed, the number of the episode, those of a level one after another, and the step.
        make_envs: creates the vector environment, with same-step autoreset or without any.
        on_level: called after each batch of levels.
        candidates: candidates of each decision, with sampled actions; 1: the actions of the policy itself.
        num_threads: batches of levels played at once; None: one per core. The results are the same.

    Returns:
        One result per level, in the order of the environment's levels.

    Raises:
        ConfigError: if the mode is unknown, or a number is out of range.
    """
    candidates = check_candidates(candidates, policy)
    check_choice("mode", mode, get_args(Mode))
    check_integer("episodes_per_level", episodes_per_level, low=1, high=_MOST_EPISODES)
    check_integer("seed", seed, low=0)
    if num_threads is not None:
        check_integer("num_threads", num_threads, low=1, high=_MOST_THREADS)
    if policy is None or mode == "random":
        blind = tuple(name for name in environment.observations if name not in ("action_outcomes", "action_mask"))
        policy, mode = None, "random"
        environment = environment.replace(observations=blind or environment.observations)  # no actions are simulated
    with closing(make_envs(environment, 1)) as one:
        count = len(one.level_names)
    together = min(count, max(1, (_TOGETHER if candidates == 1 else _TOGETHER_AHEAD) // episodes_per_level))
    firsts = range(0, count, together)
    workers = min(num_threads, len(firsts)) if num_threads else default_workers(len(firsts))
    results: list[LevelResult] = []
    with one_thread_per_call(), ExitStack() as stack, threads(workers) as executor:
        free = [
            stack.enter_context(closing(make_envs(environment, together * episodes_per_level))) for _ in range(workers)
        ]

        def play(first: int) -> list[LevelResult]:
            envs, levels = free.pop(), range(first, min(first + together, count))
            with chooser(policy, environment, envs, mode, seed, first * episodes_per_level, candidates) as choose:
                found = _play_levels(envs, levels, choose, mode, episodes_per_level, seed, environment.max_steps)
            free.append(envs)
            return found

        for found in in_order((partial(play, first) for first in firsts), executor):
            results += found
            on_level(f"levels played, {mode} actions", len(results), count)
    return tuple(results)


def best_episode(results: dict[Mode, tuple[LevelResult, ...]]) -> LevelResult:
    """Return the result to show as a video: the longest win of the policy, else any episode."""
    candidates = [*results.get("argmax", ()), *results.get("sampled", ())] or list(results["random"])
    return max(candidates, key=lambda result: (result.won, len(result.actions)))


@contextmanager
def chooser(
    policy: ActorCritic | None,
    environment: EnvironmentConfig,
    envs: VectorEnvironment,
    mode: Mode,
    seed: int,
    first: int = 0,
    candidates: int = 1,
) -> Iterator[Choose]:
    """Yield what chooses the actions of environments, the first of which plays episode number ``first``."""
    if policy is None:
        random = np.random.default_rng([seed, first])
        yield lambda seen, waiting, step: random.integers(NUM_ACTIONS, size=envs.num_envs)
    elif candidates > 1 and mode == "sampled":
        with closing(CandidateSearch(policy, environment, envs, candidates, seed, first)) as search:
            yield search
    else:
        shapes, outputs, argmax = policy.observation_shapes, partial(policy_outputs, policy), mode == "argmax"
        states = np.zeros((envs.num_envs, policy.recurrent_size), np.float32)

        def choose(seen: Mapping[str, np.ndarray], waiting: np.ndarray, step: int) -> np.ndarray:
            own = {name: seen[name] for name in shapes}
            return chosen_actions(outputs, own, argmax, (seed, first, step), waiting, states)

        yield choose


def _play_levels(
    envs: VectorEnvironment, levels: range, choose: Choose, mode: Mode, episodes: int, seed: int, most_steps: int
) -> list[LevelResult]:
    """Play episodes on each of some levels, of which the environments have at least as many as needed."""
    count = len(levels) * episodes
    places = np.minimum(np.arange(envs.num_envs), count - 1)
    envs.assign_levels(levels.start + places // episodes)
    observations, _ = envs.reset(seed=seed)
    actions = np.zeros((most_steps, envs.num_envs), np.int8)

    def act(seen: Any, waiting: np.ndarray, step: int) -> np.ndarray:
        check_wanted()
        return choose(seen, waiting, step)

    played = play_episodes(envs, act, observations, np.arange(envs.num_envs) < count, most_steps, taken=actions)
    parts = (slice(first, first + episodes) for first in range(0, count, episodes))
    return [
        _result(envs.level_names[number], mode, played[part], actions[:, part])
        for number, part in zip(levels, parts, strict=True)
    ]


def _result(level: str, mode: Mode, played: np.ndarray, actions: np.ndarray) -> LevelResult:
    """Return the result of episodes (n,) ``PLAYED`` and their actions (steps, n)."""
    success, frames = played["success"], played["frames"]
    wins = frames[success]
    shown = int(np.where(success, frames, np.iinfo(int).max).argmin())
    return LevelResult(
        level=level,
        mode=mode,
        episodes=len(played),
        success_rate=float(success.mean()),
        death_rate=float(played["died"].mean()),
        mean_return=float(played["total"].mean()),
        mean_frames=float(frames.mean()),
        best_frames=int(wins.min()) if len(wins) else None,
        won=bool(success[shown]),
        actions=actions[: played["steps"][shown], shown].copy(),
    )


def policy_runs(
    policy: ActorCritic,
    environment: EnvironmentConfig,
    mode: Mode = "sampled",
    seed: int = 0,
    label: str = "",
    candidates: int = 1,
) -> list[WatchedRun]:
    """Return an episode of a policy on each level, played as its inputs are taken; ``label`` begins their labels."""
    check_candidates(candidates, policy)
    return [
        WatchedRun(
            level, episode_inputs(policy, environment, level, mode, seed, candidates), f"{label}{shown_name(level)}"
        )
        for level in playable_levels(environment).levels
    ]


def episode_inputs(
    policy: ActorCritic, environment: EnvironmentConfig, level: Level, mode: Mode, seed: int, candidates: int = 1
) -> Iterator[int]:
    """Play an episode on a level; yield the input byte of each frame."""
    config = environment.replace(levels=(level,), mirrored=False, render_mode=None)
    waiting = np.ones(1, np.bool_)
    with closing(make_resting_environments(config, 1)) as envs:
        observations, _ = envs.reset(seed=seed)
        with chooser(policy, config, envs, mode, seed, candidates=candidates) as choose:
            for step in itertools.count():
                with one_thread_per_call():  # others draw and play meanwhile, and calls would wait for their cores
                    actions = choose(observations, waiting, step)
                observations, _, terminated, truncated, info = envs.step(actions)
                yield from (INPUT_OF_ACTION[envs.taken_actions[0]],) * int(info["frames"][0])
                if terminated[0] or truncated[0]:
                    break


def evaluated_run(episode: LevelResult, environment: EnvironmentConfig) -> WatchedRun:
    """Return an evaluated episode as a run."""
    (level, *_) = (level for level in playable_levels(environment).levels if level.name == episode.level)
    return WatchedRun(level, episode.inputs(environment).tolist())


HORIZON_FRAMES, TAKEN_FRAMES = 256, 32
"""Frames that a candidate is played for, and how many of them are taken."""
HOTTEST = 3.0
"""Temperature of the last candidate; that of the first is 1."""
_MOST_CANDIDATES, _MOST_COPIES = 4096, 256
"""Most candidates of a decision; and most of several decisions that are played at a time."""
_OUTWEIGHS = 1e6
"""More than any return."""


def check_candidates(candidates: int, policy: ActorCritic | None = None) -> int:
    """Return the number of candidates of a decision; check it, and that the policy can propose more than one."""
    candidates = check_integer("candidates", candidates, low=1, high=_MOST_CANDIDATES)
    if candidates > 1 and policy is not None and policy.recurrent_size:
        raise ConfigError(
            f"candidates: expected 1 for a policy with memory, got {candidates} with recurrent_size "
            f"{policy.recurrent_size}; copies of the environments have no memory of the episode"
        )
    return candidates


class CandidateSearch:
    """Chooses the actions of n environments without autoreset, as ``Choose``; each call must be their next step.

    The policy proposes the actions, and values the ends of the k candidates. The random numbers of a decision are a
    function of the seed, the number of the episode (``first`` is that of the first environment) and the step.
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
        self._gamma, self._is_sticky = config.reward.gamma, config.action_repeat_probability > 0.0
        rows = max(1, min(envs.num_envs, _MOST_COPIES // candidates))
        self._shape, count = (rows, candidates), rows * candidates
        self._copies = NPlusPlusVectorEnv(config, count, autoreset_mode=AutoresetMode.DISABLED, num_threads=1)
        self._copies.reset(seed=0)
        self._temperatures = np.tile(np.linspace(1.0, HOTTEST, candidates, dtype=np.float32), rows)[:, None]
        self._plans = np.full((self._horizon, envs.num_envs), -1)
        self._left = np.zeros(envs.num_envs, np.int64)

    def __call__(self, seen: Any, waiting: np.ndarray, step: int) -> np.ndarray:
        """Return the actions (n,) of a step; observations are taken from the copies."""
        asked = np.flatnonzero(waiting & (self._left == 0))
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
        if self._is_sticky:
            self._copies.reseed([seed for place in filled for seed in self._seeds(place, step)])
        actions, scores, won = self._play(observations, filled, step)
        best = (firsts + scores.reshape(rows, candidates).argmax(axis=1))[: len(places)]
        self._plans[:, places] = actions[:, best]
        self._left[places] = np.where(won[best] & (not self._is_sticky), self._horizon, self._taken)

    def _play(
        self, observations: Mapping[str, np.ndarray], places: np.ndarray, step: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Play all candidates; return their actions (horizon, n), their scores (n,) and which of them won, (n,)."""
        count, candidates = self._copies.num_envs, self._shape[1]
        draws = [self._random(place, step).random((self._horizon, candidates), np.float32) for place in places]
        uniforms = np.stack(draws, axis=1).reshape(self._horizon, count)
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

    def _seeds(self, place: int, step: int) -> list[int]:
        """Return a seed for each of the k copies of a decision."""
        return self._random(place, step, 1).integers(2**63, size=self._shape[1]).tolist()

    def _random(self, place: int, step: int, *stream: int) -> np.random.Generator:
        return np.random.default_rng([self._seed, self._first + int(place), step, *stream])

    def _sample(self, observations: Mapping[str, np.ndarray], uniforms: np.ndarray) -> np.ndarray:
        """Draw an action for each candidate, (n,) int64, at its temperature."""
        logits = policy_outputs(self._policy, observations)[0] / self._temperatures
        if "action_mask" in self._policy.observation_shapes:
            logits[observations["action_mask"] == 0] = -np.inf
        weights = np.exp(logits - logits.max(axis=1, keepdims=True)).cumsum(axis=1)
        return (weights <= uniforms[:, None] * weights[:, -1:]).sum(axis=1)
