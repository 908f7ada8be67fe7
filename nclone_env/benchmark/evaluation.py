"""Evaluation of a policy on the levels of a track."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import closing
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode

from nclone_env._tasks import in_order
from nclone_env.benchmark.attempts import Attempts, Run, replay
from nclone_env.benchmark.players import Player, Policy
from nclone_env.benchmark.track import Track
from nclone_env.benchmark.track_levels import track_levels
from nclone_env.config import EnvironmentConfig
from nclone_env.env import NPlusPlusVectorEnv
from nclone_env.level import Level, pack
from nclone_env.train import Hooks

BATCH = 1024
"""Most episodes that are played at a time; sampled actions depend on it."""
_SILENT = Hooks()
_PLAYING = Lock()
"""Threads would share the state of a policy, and the number of threads that it computes with."""


def evaluate(
    policy: Any,
    track: Track,
    mode: str = "state",
    *,
    seed: int = 0,
    environment: EnvironmentConfig | None = None,
    packs: Mapping[str, Path] | None = None,
    hooks: Hooks = _SILENT,
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
        packs: for a track of the game, the file of each pack by name.
        hooks: ``on_level`` is called after each batch of episodes.
        executor: plays the batches, in other processes if the policy is picklable; threads take turns. Without one this
            thread does. The episodes are the same.

    Returns:
        The episodes, played again by the simulator. Fill in its ``claimed`` for a submission.

    Raises:
        ConfigError: if an argument does not fit the track, or a level is not the one of the track.
        ActionError: if the policy returns no actions.
    """
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
        wrapped = Policy(policy)
        self._track, self._seed, self._levels = track, seed, track_levels(track, packs)
        config = track.environment(mode, environment or wrapped.environment).replace(levels=self._levels)
        every = np.arange(len(self._levels))
        self._batches = _batches(every.repeat(track.attempts), False)
        if wrapped.both:
            self._batches += _batches(every, True)
        self.tasks = [partial(_play, policy, config, seed, *batch) for batch in self._batches]

    def run(self, played: Iterable[tuple[np.ndarray, np.ndarray]], hooks: Hooks = _SILENT) -> Run:
        """Return the results of the tasks as a run."""
        parts: dict[bool, list[tuple[np.ndarray, np.ndarray]]] = {False: [], True: []}
        for (probable, which, first, size), batch in zip(self._batches, played, strict=True):
            parts[probable].append(batch)
            what = f"episodes played, {'most probable' if probable else 'sampled'} actions"
            hooks.on_level(what, min(first + size, len(which)), len(which))
        sampled, most_probable = (
            (np.concatenate([steps for steps, _ in part]), np.concatenate([actions for _, actions in part]))
            if part
            else None
            for part in parts.values()
        )
        assert sampled is not None
        return run_of(self._track, self._levels, self._seed, sampled, most_probable)


def _batches(which: np.ndarray, most_probable: bool) -> list[tuple[bool, np.ndarray, int, int]]:
    """Return the batches of an episode on each of the levels ``which``: their first one, and how many at a time."""
    size = min(BATCH, len(which))
    return [(most_probable, which, first, size) for first in range(0, len(which), size)]


def run_of(
    track: Track,
    levels: Sequence[Level],
    seed: int,
    sampled: tuple[np.ndarray, np.ndarray],
    probable: tuple[np.ndarray, np.ndarray] | None = None,
) -> Run:
    """Return episodes as a run, played by the simulator.

    Args:
        track: the track.
        levels: its levels.
        seed: of the run.
        sampled: steps and actions of the episodes, those of a level one after another.
        probable: the same of one episode a level.
    """
    level_set, parts = pack(levels), []
    for played, attempts in ((sampled, track.attempts), (probable, 1)):
        which = np.arange(len(levels)).repeat(attempts)
        limits = track.frame_skip, track.max_frames
        parts.append(None if played is None else replay(level_set, which, *played, *limits, seed))
    ends = parts[0]
    assert isinstance(ends, Attempts)
    return Run(seed, ends, parts[1])


def _play(
    policy: Any, config: EnvironmentConfig, seed: int, most_probable: bool, which: np.ndarray, first: int, size: int
) -> tuple[np.ndarray, np.ndarray]:
    """Play a batch of the episodes on levels ``which``; return their steps and actions as in ``Attempts``."""
    wrapped, chosen = Policy(policy), which[first : first + size]
    environments = NPlusPlusVectorEnv(config, size, autoreset_mode=AutoresetMode.DISABLED, num_threads=1)
    with _PLAYING, wrapped.computing(), closing(environments) as envs:
        player = wrapped.player(most_probable, int(np.random.SeedSequence([seed, first]).generate_state(1)[0]))
        taken, steps = _play_batch(envs, chosen, player, config.max_steps)
    return steps, np.concatenate([row[:count] for row, count in zip(taken.T, steps)])


def _play_batch(
    envs: NPlusPlusVectorEnv, which: np.ndarray, player: Player, most_steps: int
) -> tuple[np.ndarray, np.ndarray]:
    """Play an episode on each level; return actions (most_steps, n) uint8, and how many each episode took."""
    taken, steps = np.zeros((most_steps, envs.num_envs), np.uint8), np.zeros(len(which), np.uint32)
    envs.assign_levels(np.resize(which, envs.num_envs))
    seen, _ = envs.reset(seed=0)
    waiting, step = np.arange(len(which)), 0
    while len(waiting):
        taken[step, waiting] = player(seen, waiting)
        steps[waiting] += 1
        seen, _, terminated, truncated, _ = envs.step(taken[step])  # environments whose episode is over rest
        waiting, step = waiting[~(terminated | truncated)[waiting]], step + 1
    return taken, steps
