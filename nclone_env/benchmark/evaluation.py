"""Evaluation of a policy on the levels of a track."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from concurrent.futures import Executor
from contextlib import AbstractContextManager, closing
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode

from nclone_env._processes import check_wanted, in_order
from nclone_env.benchmark.attempts import Attempts, Run, drawn_repeats, replay
from nclone_env.benchmark.track import Track, track_levels
from nclone_env.config import EnvironmentConfig
from nclone_env.env import NPlusPlusVectorEnv
from nclone_env.errors import ActionError, ConfigError, check_integer, checked, shortened
from nclone_env.level import LevelSet, pack
from nclone_env.train import SILENT, Hooks

BATCH = 1024
"""Most episodes that are played at a time; sampled actions depend on it."""
_PLAYING = Lock()
"""Threads would share the state of a policy, and the number of threads that it computes with."""


@checked()
def evaluate(
    policy: Any,
    track: Track,
    mode: str = "state",
    *,
    seed: int = 0,
    environment: EnvironmentConfig | None = None,
    packs: Mapping[str, Path] | None = None,
    hooks: Hooks = SILENT,
    executor: Executor | None = None,
) -> Run:
    """Play every level of a track: ``track.attempts`` times with sampled actions, once with the most probable ones.

    Args:
        policy: one of these.

            * a function that takes observations as the environment returns them, (n, ...) each, and returns actions
              (n,), integers 0..5; if it has a method ``reset``, that is called with a seed before each batch of
              episodes. It has no most probable actions;
            * a model of Stable-Baselines3 or sb3-contrib, or any object with its ``predict``;
            * a ``torch.nn.Module`` that takes a dict of tensors, or the only one, and returns logits (n, 6);
            * a policy of :func:`nclone_env.load_policy`, or the path of a checkpoint or of the folder of a run.
        track: the track.
        mode: ``state``, ``pixels`` or ``look-ahead``: the observations that are allowed.
        seed: of the sampled actions.
        environment: observations and their options; by default those that the policy was trained with, or those of
            the mode. Levels, frame skip and time limit are those of the track.
        packs: for a track of the game, the file of each pack by name; for ``Community-v1``, files or folders of packs.
        hooks: ``on_level`` is called, and ``stop`` asked, after each batch of episodes.
        executor: plays the batches, in other processes if the policy is picklable; threads take turns. Without one this
            thread does. The episodes are the same.

    Returns:
        The episodes, played again by the simulator. Fill in its ``claimed`` for a submission.

    Raises:
        ConfigError: if an argument does not fit the track, or a level is not the one of the track.
        ActionError: if the policy returns no actions.
        StoppedError: if ``hooks.stop`` returned True.
    """
    check_integer("seed", seed, low=0, high=2**63 - 1)
    episodes = Episodes(policy, track, mode, seed, environment, packs)
    return episodes.run(in_order(episodes.tasks, executor), hooks)


class Episodes:
    """The episodes of an evaluation in batches that know nothing of each other; see :func:`evaluate`.

    Attributes:
        tasks: play a batch each; they return its steps and actions as in ``Attempts``, and are picklable if the policy
            is.
    """

    def __init__(
        self,
        policy: Any,
        track: Track,
        mode: str,
        seed: int,
        environment: EnvironmentConfig | None = None,
        packs: Mapping[str, Path] | None = None,
    ):
        player = player_of(policy)
        self._track, self._seed, self._levels = track, seed, track_levels(track, packs)
        config = track.environment(mode, environment or player.environment).replace(levels=self._levels)
        every = np.arange(len(self._levels))
        self._batches = _batches(every.repeat(track.attempts), False)
        if player.both:
            self._batches += _batches(every, True)
        chance = track.action_repeat_probability
        self.tasks = [partial(_play, policy, config, seed, chance, *batch) for batch in self._batches]

    def run(self, played: Iterable[tuple[np.ndarray, np.ndarray]], hooks: Hooks = SILENT) -> Run:
        """Return the results of the tasks as a run."""
        parts: dict[bool, list[tuple[np.ndarray, np.ndarray]]] = {False: [], True: []}
        for (probable, which, first, size), batch in zip(self._batches, played, strict=True):
            parts[probable].append(batch)
            what = f"episodes played, {'most probable' if probable else 'sampled'} actions"
            hooks.level(what, min(first + size, len(which)), len(which))
        joined = [
            (np.concatenate([steps for steps, _ in part]), np.concatenate([actions for _, actions in part]))
            for part in parts.values()
            if part
        ]
        return run_of(self._track, pack(self._levels), self._seed, *joined)


def _batches(which: np.ndarray, most_probable: bool) -> list[tuple[bool, np.ndarray, int, int]]:
    """Return the batches of an episode on each of the levels ``which``: their first one, and how many at a time."""
    size = min(BATCH, len(which))
    return [(most_probable, which, first, size) for first in range(0, len(which), size)]


def run_of(
    track: Track,
    levels: LevelSet,
    seed: int,
    sampled: tuple[np.ndarray, np.ndarray],
    probable: tuple[np.ndarray, np.ndarray] | None = None,
) -> Run:
    """Return steps and actions of sampled episodes, and of a most probable one a level, as a run, played again."""

    def play(steps: np.ndarray, actions: np.ndarray, attempts: int) -> Attempts:
        which = np.arange(len(track.levels)).repeat(attempts)
        return replay(levels, which, steps, actions, track.frame_skip, track.max_frames, seed)

    return Run(seed, play(*sampled, track.attempts), None if probable is None else play(*probable, 1))


def _play(
    policy: Any,
    config: EnvironmentConfig,
    seed: int,
    chance: float,
    most_probable: bool,
    which: np.ndarray,
    first: int,
    size: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Play a batch of the episodes on levels ``which``; return their steps and actions as in ``Attempts``.

    ``chance`` is the probability that a step repeats the action before it.
    """
    player, chosen = player_of(policy), which[first : first + size]
    numbers = range(first, first + len(chosen))
    repeats = drawn_repeats(chance, seed, most_probable, numbers, config.max_steps) if chance else None
    environments = NPlusPlusVectorEnv(config, size, autoreset_mode=AutoresetMode.DISABLED, num_threads=1)
    with player.computing(), closing(environments) as envs:
        player.begin(most_probable, int(np.random.SeedSequence([seed, first]).generate_state(1)[0]))
        taken, steps = _play_batch(envs, chosen, player, config.max_steps, repeats)
    return steps, np.concatenate([row[:count] for row, count in zip(taken.T, steps)])


def _play_batch(
    envs: NPlusPlusVectorEnv, which: np.ndarray, player: Player, most_steps: int, repeats: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Play an episode on each level; return actions (most_steps, n) uint8, and how many each episode took.

    At the steps that ``repeats``, (n, most_steps) bool, tells, the action before is taken instead of the policy's.
    """
    taken, steps = np.zeros((most_steps, envs.num_envs), np.uint8), np.zeros(len(which), np.uint32)
    envs.assign_levels(np.resize(which, envs.num_envs))
    seen, _ = envs.reset(seed=0)
    waiting, step = np.arange(len(which)), 0
    while len(waiting):
        check_wanted()
        taken[step, waiting] = player(seen, waiting)
        if repeats is not None:
            again = waiting[repeats[waiting, step]]
            taken[step, again] = taken[step - 1, again]
        steps[waiting] += 1
        seen, _, terminated, truncated, _ = envs.step(taken[step])  # environments whose episode is over rest
        waiting, step = waiting[~(terminated | truncated)[waiting]], step + 1
    return taken, steps


def player_of(policy: Any) -> Player:
    """Return what plays a policy; see :func:`evaluate`."""
    if isinstance(policy, (str, Path)):
        from nclone_env.train import load_policy  # imports torch

        policy = load_policy(policy, levels=("first-steps",))  # those of the track take their place
    if hasattr(policy, "act") and hasattr(policy, "checkpoint"):
        return _Own(copy.copy(policy))  # with a sequence of random numbers of its own, as threads play side by side
    if hasattr(policy, "predict"):
        return _StableBaselines(policy)
    if hasattr(policy, "state_dict"):
        return _Module(policy)
    if callable(policy):
        return Player(policy)
    expected = "a function from observations to actions, a Stable-Baselines3 model, a torch module or a checkpoint"
    raise ConfigError(f"policy: expected {expected}, got {shortened(policy)}")


class Player:
    """Plays a function of observations; what it needs to know about time it must observe.

    Attributes:
        both: whether it has most probable actions besides sampled ones.
        environment: the observations that the policy needs; None if it does not tell.
    """

    both = False

    def __init__(self, policy: Any):
        self._policy, self.environment = policy, getattr(policy, "environment", None)

    def computing(self) -> AbstractContextManager[Any]:
        """Return a context to play in: one thread at a time, as little is known of the policy."""
        return _PLAYING

    def begin(self, most_probable: bool, seed: int) -> None:
        """Begin a batch of episodes, with the most probable actions or those sampled from a seed."""
        if hasattr(self._policy, "reset"):
            self._policy.reset(seed)

    def __call__(self, observations: Any, rows: np.ndarray) -> np.ndarray:
        """Return actions (k,) for observations of n environments and the k rows that need one, ascending."""
        return _actions(self._policy(_rows_of(observations, rows)), len(rows))


class _Own(Player):
    """A policy of this package, whose sampled actions follow from the seed."""

    both = True
    _seed: int | None

    def computing(self) -> AbstractContextManager[None]:
        """Return a context to play in: several threads at a time, and libraries on each alone."""
        from nclone_env.train import one_thread_per_call  # imports torch

        return one_thread_per_call()

    def begin(self, most_probable: bool, seed: int) -> None:
        self._argmax, self._seed, self._begins = most_probable, seed, True

    def __call__(self, observations: Any, rows: np.ndarray) -> np.ndarray:
        seed, self._seed = self._seed, None  # of the first call
        begins, self._begins = self._begins, False
        if self._policy.recurrent:  # sees all rows, as its memory belongs to rows
            return self._policy.act(observations, argmax=self._argmax, seed=seed, episode_start=begins)[rows]
        return self._policy.act(_rows_of(observations, rows), argmax=self._argmax, seed=seed)


class _StableBaselines(Player):
    """A model with ``predict``, which sees all rows, as its memory belongs to rows."""

    both = True

    def begin(self, most_probable: bool, seed: int) -> None:
        self._deterministic, self._state, self._begins = most_probable, None, True
        if hasattr(self._policy, "set_random_seed"):
            self._policy.set_random_seed(seed)

    def __call__(self, observations: Any, rows: np.ndarray) -> np.ndarray:
        count = len(next(iter(observations.values())) if isinstance(observations, dict) else observations)
        starts, self._begins = np.full(count, self._begins), False
        actions, self._state = self._policy.predict(
            observations, state=self._state, episode_start=starts, deterministic=self._deterministic
        )
        return _actions(actions, count)[rows]


class _Module(Player):
    """A torch module that returns logits, (n, 6), possibly as the first of several outputs."""

    both = True

    def begin(self, most_probable: bool, seed: int) -> None:
        self._random = None if most_probable else np.random.default_rng(seed)

    def __call__(self, observations: Any, rows: np.ndarray) -> np.ndarray:
        import torch

        seen = _rows_of(observations, rows)
        with torch.inference_mode():
            tensors = {name: torch.from_numpy(array) for name, array in seen.items()}
            output = self._policy(next(iter(tensors.values())) if len(tensors) == 1 else tensors)
        logits = np.asarray(output[0] if isinstance(output, (tuple, list)) else output, np.float64)
        noise = 0 if self._random is None else self._random.gumbel(size=logits.shape)
        return _actions((logits + noise).argmax(axis=-1), len(rows))


def _rows_of(observations: Any, rows: np.ndarray) -> Any:
    if isinstance(observations, dict):
        return {name: array[rows] for name, array in observations.items()}
    return observations[rows]


def _actions(given: Any, count: int) -> np.ndarray:
    """Check the actions of a policy."""
    actions = np.asarray(given)
    if actions.shape != (count,) or actions.dtype.kind not in "iu":
        got = f"{actions.dtype} of shape {actions.shape}"
        raise ActionError(
            f"policy: expected integers of shape ({count},), one action 0..5 for each observation, got {got}"
        )
    if count and not 0 <= actions.min() <= actions.max() <= 5:
        raise ActionError(f"policy: expected actions from 0 to 5, got {actions.min()} to {actions.max()}")
    return actions
