"""Demonstrations: from recordings that finish their level, and from known solutions, to trajectories of the policy.

Every demonstration is played through the environment of the run, so observations, rewards and masks are those that the
policy gets.

A recording has an input for every frame, a policy an action for every ``frame_skip`` frames. A recording whose inputs
change only at multiples of ``frame_skip`` can be played as it is. Any other is followed: of all ways to hold actions, a
beam search keeps those whose ninja stays closest to the recorded one at the end of each step, with few actions other
than the most frequent one of the recording in that step.
"""

from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np

from nclone_env._files import expanded, there
from nclone_env.config import EnvironmentConfig
from nclone_env.env import WON, NPlusPlusVectorEnv, playable_levels
from nclone_env.errors import ConfigError, checked
from nclone_env.game import ACTION_OF_INPUT, CELEBRATING, DEAD, DYING, INPUT_OF_ACTION, NUM_ACTIONS, NUM_DIRECTIONS
from nclone_env.level import Level, LevelSource, known_solutions, load_level, resolve
from nclone_env.options import several
from nclone_env.replay import load_any_recording
from nclone_env.sim import Frames, Session
from nclone_env.train.learn.trajectories import EpisodeData
from nclone_env.train.levels.solutions import PLANNED, Planner, winning_inputs

BEAM = 64
"""Worlds that the search keeps after each step."""
_LATER = 20
"""Steps that a held run may take longer than the recording."""
_VELOCITY_WEIGHT = 8.0
"""Frames: a difference of 1 px/frame counts as much as one of this many pixels."""
_ENTITY_WEIGHT = 100.0
"""Squared pixels: weight of an entity in another state, such as a switch not taken."""
_OTHER_ACTION_WEIGHT = 25.0
"""Squared pixels: weight of an action that is not the most frequent one of the recording in its step."""


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


@checked()
def demonstrate(
    sources: str | Path | Iterable[str | Path],
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
    sources = several(sources)
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
    for source in several(sources):
        path = expanded(source)
        if there(path.exists) and not path.is_dir():
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
    levels = playable_levels(config).levels
    found = planner.demonstrations(levels, config.max_frames, config.frame_skip)
    for level in levels:
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
    alone = config.replace(levels=(level,), mirrored=False, action_space="discrete", action_repeat_probability=0.0)
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


def held_actions(level: LevelSource, inputs: np.ndarray, frame_skip: int) -> np.ndarray | None:
    """Return actions, (k,) int64, each held for ``frame_skip`` frames, that follow a recording and win with the last.

    The recording, (T,) uint8, ends with the frame in which it wins. Of actions with exactly the same effect the lowest
    is chosen, so equal situations have equal labels, and an ``action_mask`` allows all of them. None if a search that
    keeps ``BEAM`` worlds finds none.
    """
    codes = np.resize(np.array(INPUT_OF_ACTION, np.uint8), BEAM * NUM_ACTIONS)
    session = Session(level, BEAM * NUM_ACTIONS, max_frames=len(inputs) + _LATER * frame_skip)
    whole_steps = np.pad(inputs, (0, -len(inputs) % frame_skip), mode="edge")
    recorded = Session(session.level_set, max_frames=len(whole_steps)).record(whole_steps)
    usual = most_frequent_actions(inputs, frame_skip)
    parents, others, paths = np.zeros(1, np.int64), np.zeros(1), np.zeros((1, 0), np.int64)  # best first
    early: np.ndarray | None = None
    for step in range(-(-len(inputs) // frame_skip) + _LATER):
        session.gather(np.repeat(np.resize(parents, BEAM), NUM_ACTIONS))
        session.play(np.repeat(codes[np.newaxis], frame_skip, axis=0))
        live = len(parents) * NUM_ACTIONS
        states = session.worlds.ninjas["state"][:live]
        frame = min((step + 1) * frame_skip, len(whole_steps)) - 1
        distances = np.where(np.isin(states, (DEAD, DYING)), np.inf, _distances(session, live, recorded, frame))
        expected = usual[min(step, len(usual) - 1)]
        unusual = np.repeat(others, NUM_ACTIONS) + (np.arange(live) % NUM_ACTIONS != expected)
        distances += _OTHER_ACTION_WEIGHT * unusual
        won = np.flatnonzero(states == CELEBRATING)
        if len(won):
            path = _continued(paths, won[[distances[won].argmin()]])[0]
            if step + 1 >= len(usual):
                return path
            early = path if early is None else early  # something else than the recording: only if nothing follows it
            distances[won] = np.inf
        chosen = _best(session, distances, BEAM)
        if not len(chosen):
            return early
        parents, others, paths = chosen, unusual[chosen], _continued(paths, chosen)
    return early


def _continued(paths: np.ndarray, worlds: np.ndarray) -> np.ndarray:
    """Return the actions, (k, steps + 1), that led to worlds (k,) of a step, given those before it, (beam, steps)."""
    parents, actions = np.divmod(worlds, NUM_ACTIONS)
    return np.column_stack((paths[parents], actions))


def most_frequent_actions(inputs: np.ndarray, frame_skip: int) -> np.ndarray:
    """Return the most frequent action of each step of a recording, (ceil(T / frame_skip),) int64."""
    actions = np.array(ACTION_OF_INPUT)[inputs & 7]
    return np.array([np.bincount(actions[t : t + frame_skip]).argmax() for t in range(0, len(actions), frame_skip)])


def _distances(session: Session, count: int, recorded: Frames, frame: int) -> np.ndarray:
    """Return how far the first worlds are from the recording after a frame, (count,) float64."""
    ninjas, target = session.worlds.ninjas[:count], recorded.ninjas[frame]
    place = (ninjas["x"] - target["x"]) ** 2 + (ninjas["y"] - target["y"]) ** 2
    speed = (ninjas["vx"] - target["vx"]) ** 2 + (ninjas["vy"] - target["vy"]) ** 2
    states = recorded.entity_states[frame]
    places = session.worlds.rooms["entities"]["first"][:count, np.newaxis] + np.arange(len(states))
    others = (session.worlds.entity_states[places] != states).sum(axis=1)
    return place + _VELOCITY_WEIGHT**2 * speed + _ENTITY_WEIGHT * others


def _best(session: Session, distances: np.ndarray, beam: int) -> np.ndarray:
    """Return the closest worlds, best first, each of several equal ones once; dead ones never."""
    order = np.argsort(distances, kind="stable")
    found: dict[int, int] = {}
    for world in order[np.isfinite(distances[order])].tolist():
        found.setdefault(session.hash(world), world)
        if len(found) == beam:
            break
    return np.array(list(found.values()), np.int64)
