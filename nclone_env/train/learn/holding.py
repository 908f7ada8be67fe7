"""Recordings at the pace of a policy: actions held for several frames each that follow a recording and win.

A recording has an input for every frame, a policy an action for every ``frame_skip`` frames. A recording whose inputs
change only at multiples of ``frame_skip`` can be played as it is. Any other is followed: of all ways to hold actions, a
beam search keeps those whose ninja stays closest to the recorded one at the end of each step, with few actions other
than the most frequent one of the recording in that step.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nclone_env.actions import ACTION_OF_INPUT, INPUT_OF_ACTION, NUM_ACTIONS
from nclone_env.constants import CELEBRATING, DEAD, DYING
from nclone_env.level import LevelSource
from nclone_env.sim.session import Frames, Session

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


class _Step(NamedTuple):
    """The worlds kept after a step, best first: the world each came from, and the action that led to it."""

    parents: np.ndarray
    actions: np.ndarray


def held_actions(level: LevelSource, inputs: np.ndarray, frame_skip: int, beam: int = BEAM) -> np.ndarray | None:
    """Return actions, each held for ``frame_skip`` frames, that follow a winning recording and win.

    Of actions with exactly the same effect the lowest is chosen, so equal situations have equal labels, and an
    ``action_mask`` allows all of them.

    Args:
        inputs: (T,) uint8, input bytes of the recording up to the frame in which it wins.
        beam: worlds that the search keeps.

    Returns:
        (k,) int64 actions, the last of which wins; None if the search finds none.
    """
    codes = np.resize(np.array(INPUT_OF_ACTION, np.uint8), beam * NUM_ACTIONS)
    session = Session(level, beam * NUM_ACTIONS, max_frames=len(inputs) + _LATER * frame_skip)
    whole_steps = np.pad(inputs, (0, -len(inputs) % frame_skip), mode="edge")
    recorded = Session(session.level_set, max_frames=len(whole_steps)).record(whole_steps)
    usual = most_frequent_actions(inputs, frame_skip)
    parents, others, steps = np.zeros(1, np.int64), np.zeros(1), list[_Step]()
    early: np.ndarray | None = None
    for step in range(-(-len(inputs) // frame_skip) + _LATER):
        session.gather(np.repeat(np.resize(parents, beam), NUM_ACTIONS))
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
            best = won[[distances[won].argmin()]]
            path = _path([*steps, _Step(best // NUM_ACTIONS, best % NUM_ACTIONS)])
            if step + 1 >= len(usual):
                return path
            early = path if early is None else early  # something else than the recording: only if nothing follows it
            distances[won] = np.inf
        chosen = _best(session, distances, beam)
        if not len(chosen):
            return early
        steps.append(_Step(chosen // NUM_ACTIONS, chosen % NUM_ACTIONS))
        parents, others = chosen, unusual[chosen]
    return early


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
    others = (session.worlds.entity_states[:count, : len(states)] != states).sum(axis=1)
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


def _path(steps: list[_Step]) -> np.ndarray:
    """Return the actions that lead to the first world of the last step."""
    actions, world = [], 0
    for step in reversed(steps):
        actions.append(int(step.actions[world]))
        world = int(step.parents[world])
    return np.array(actions[::-1], np.int64)
