"""Demonstrations: from recordings that finish their level, and from known solutions, to trajectories of the policy.

Every demonstration is played through the environment of the run, so observations, rewards and masks are those that the
policy gets. The inputs of a recording are turned into held actions first (``train.learn.holding``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np

from nclone_env.actions import NUM_DIRECTIONS
from nclone_env.config import EnvironmentConfig
from nclone_env.env import WON, NPlusPlusVectorEnv, playable_levels
from nclone_env.errors import ConfigError
from nclone_env.level import Level, known_solutions, load_level, resolve
from nclone_env.replay import load_any_recording
from nclone_env.train.learn.episode_data import EpisodeData
from nclone_env.train.learn.holding import held_actions
from nclone_env.train.levels.solutions import PLANNED, Planner, winning_inputs


class Demonstration(NamedTuple):
    """Inputs on a level."""

    source: str
    """File, or name of the built-in level."""
    level: Level
    """The level."""
    inputs: np.ndarray
    """(T,) uint8, one input byte a frame."""


class Demonstrated(NamedTuple):
    """Trajectories for cloning, and what became none."""

    trajectories: list[EpisodeData]
    """One for each demonstration that was used."""
    sources: list[str]
    """Their sources, in the same order."""
    skipped: dict[str, str]
    """Source to the reason why it was not used."""


def demonstrate(
    sources: Sequence[str | Path],
    config: EnvironmentConfig,
    planner: Planner = Planner(),  # noqa: B008 - immutable
) -> Demonstrated:
    """Return the trajectories of demonstrations that finish their level, at the pace of a policy.

    Args:
        sources: recordings (``.replay`` or attract files); names of built-in levels or sets, whose known solutions are
            played; and ``planned`` for solutions of the levels of ``config`` by the planner.
        config: environment of the policy, without frame stacks; its levels need not be those of recordings.
        planner: finds those that are planned.

    Raises:
        UnknownLevelError: if a source is neither a file nor a built-in level.
        ConfigError: if a built-in level has no known solution.
        FormatError: if a recording is malformed.
    """
    result = Demonstrated([], [], {})
    files = [source for source in sources if source != PLANNED]
    planned = _planned(config, planner) if len(files) < len(sources) else ()
    for demonstration in chain(read_demonstrations(files), planned):
        trajectory = trajectory_of(demonstration, config)
        if isinstance(trajectory, str):
            result.skipped[demonstration.source] = trajectory
        else:
            result.trajectories.append(trajectory)
            result.sources.append(demonstration.source)
    return result


def read_demonstrations(sources: Iterable[str | Path]) -> Iterator[Demonstration]:
    """Yield the demonstrations of files and of built-in levels and sets; errors as :func:`demonstrate`."""
    solutions = known_solutions()
    for source in sources:
        path = Path(source)
        if path.is_file():
            recording = load_any_recording(path)
            yield Demonstration(str(path), load_level(recording.level), recording.inputs)
            continue
        for ref in resolve(source):
            if ref.name not in solutions:
                raise ConfigError(
                    f"warm_start: expected recordings, or built-in levels with a known solution, got {ref.name!r}; "
                    f"record one with 'nclone-env replay record {ref.name} --human'"
                )
            yield Demonstration(ref.name, ref.load(), np.frombuffer(solutions[ref.name], np.uint8))


def _planned(config: EnvironmentConfig, planner: Planner) -> Iterator[Demonstration]:
    """Yield demonstrations by the planner."""
    levels = playable_levels(config)
    found = planner.demonstrations(levels, config.max_frames, config.frame_skip)
    for level in levels.levels:
        if level.name in found:
            yield Demonstration(level.name, level, found[level.name])


def trajectory_of(demonstration: Demonstration, config: EnvironmentConfig) -> EpisodeData | str:
    """Return the trajectory of a demonstration in an environment, or the reason why there is none."""
    inputs = winning_inputs(demonstration.level.raw, demonstration.inputs)
    if inputs is None:
        return "it does not finish its level"
    actions = held_actions(demonstration.level, inputs, config.frame_skip)
    if actions is None:
        return f"actions held for {config.frame_skip} frames do not follow it to the exit: lower frame_skip"
    trajectory = play_actions(demonstration.level, actions, config)
    if trajectory is None:
        return f"it takes more than max_frames = {config.max_frames} frames"
    return trajectory


def play_actions(level: Level, actions: np.ndarray, config: EnvironmentConfig) -> EpisodeData | None:
    """Play (T,) actions from the start of a level; return the trajectory, None if the last one does not win.

    The last one is replaced where the mask excludes it: more actions are equal in a step that victory cuts short.
    """
    actions = actions.copy()
    alone = config.replace(levels=(level,), action_space="discrete")
    with closing(NPlusPlusVectorEnv(alone, 1, autoreset_mode="Disabled", num_threads=1)) as env:
        seen, _ = env.reset(seed=0)
        rows = {name: np.zeros((len(actions) + 1, *array.shape[1:]), array.dtype) for name, array in seen.items()}
        rewards = np.zeros(len(actions), np.float32)
        won = False
        for step, action in enumerate(actions):
            for name, array in seen.items():
                rows[name][step] = array[0]
            if "action_mask" in seen and not seen["action_mask"][0, action]:
                actions[step] = action = _allowed_winner(env, seen["action_mask"][0].copy(), action)
            seen, reward, terminated, truncated, info = env.step(np.array([action]))
            rewards[step] = reward[0]
            won = info["outcome"][0] == WON
            if (terminated[0] or truncated[0]) and step + 1 < len(actions):
                return None
        for name, array in seen.items():
            rows[name][-1] = array[0]
    return EpisodeData(rows, actions, rewards, terminated=True) if won else None


def _allowed_winner(env: NPlusPlusVectorEnv, mask: np.ndarray, action: int) -> int:
    """Return the lowest allowed action with the same jump input that wins, the given one if none does."""
    state, jump = env.get_state(0), action // NUM_DIRECTIONS
    for other in range(jump * NUM_DIRECTIONS, action):
        if mask[other]:
            info = env.step(np.array([other]))[4]
            won = info["outcome"][0] == WON
            env.set_state(0, state)
            if won:
                return other
    return action
