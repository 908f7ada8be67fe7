"""Episodes as the actions that were taken, and their ends by the exact simulator; those of a policy are a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from nclone_env.env import PLAYING, simulate_frames
from nclone_env.game import CELEBRATING, INPUT_OF_ACTION
from nclone_env.jit import kernel
from nclone_env.level import LevelSet, load_level, pack
from nclone_env.sim import Pace, make_worlds, mark_of, start

END = np.dtype([("frames", "<u4"), ("mark", "<u4"), ("won", "?"), ("whole", "?")])
"""The end of an episode: its frames, 32 bits that depend on its actions, on the last state of the ninja, on the level
and on the number of the episode, whether it reached the exit, and whether it ended with its last action."""


class Attempts(NamedTuple):
    """Episodes one after another; where actions are repeated at random, they are those that were taken.

    Attributes:
        steps: (E,) uint32, actions of each episode.
        actions: (sum of steps,) uint8, the actions 0..5 of all episodes.
        ends: (E,) ``END``.
    """

    steps: np.ndarray
    actions: np.ndarray
    ends: np.ndarray

    def episodes(self) -> list[np.ndarray]:
        """Return the actions of each episode."""
        return np.split(self.actions, np.cumsum(self.steps, dtype=np.int64)[:-1])


@dataclass(frozen=True, eq=False)
class Run:
    """The episodes of a policy, and what its author says about its training.

    Attributes:
        seed: of the run.
        sampled: episodes with sampled actions, those of a level one after another.
        probable: one episode a level with the most probable actions, if the policy has any.
        claimed: ``steps`` and ``seconds`` of training, ``frames`` that a planner simulated, and others; JSON values.
        policy: contents of the checkpoint, from which sampled actions can be reproduced.
        curve: contents of the learning curve, CSV.
    """

    seed: int
    sampled: Attempts
    probable: Attempts | None = None
    claimed: Mapping[str, Any] = field(default_factory=dict)
    policy: bytes | None = None
    curve: bytes | None = None

    def claiming(self, claimed: Mapping[str, Any]) -> Run:
        """Return a copy with other claims."""
        return replace(self, claimed=claimed)


def replay(
    levels: LevelSet, which: np.ndarray, steps: np.ndarray, actions: np.ndarray, hold: int, most_frames: int, key: int
) -> Attempts:
    """Play each episode on the level ``which``, from its start; marks depend on ``key``, such as the seed of a run."""
    ends = np.zeros(len(steps), END)
    starts = np.concatenate(([0], np.cumsum(steps, dtype=np.int64)))
    which, actions = np.require(which, np.int64, ["C", "W"]), np.require(actions, np.uint8, ["C", "W"])
    worlds = make_worlds(1, levels, most_frames)
    for first, last in Pace().pieces(0, len(steps)):
        play_range(levels.arrays, worlds, which, starts, actions, hold, most_frames, key, ends, first, last)
    return Attempts(np.asarray(steps, np.uint32), actions, ends)


def drawn_repeats(
    probability: float, seed: int, most_probable: bool, numbers: Iterable[int], most_steps: int
) -> np.ndarray:
    """Return at which steps episodes take the action of the step before, (n, most_steps) bool; never at the first.

    The draws of an episode are a function of the seed of the run, the kind of its actions, and its number alone, so
    that a submission can be held to them. NumPy guarantees that the raw numbers of PCG64 stay as they are.
    """
    keys = ([int(seed), int(most_probable), int(number)] for number in numbers)
    raw = np.array([np.random.PCG64(np.random.SeedSequence(key)).random_raw(most_steps) for key in keys])
    drawn = raw < np.uint64(probability * 2.0**64)
    drawn[:, 0] = False
    return drawn


def compile_kernels() -> None:
    """Compile the kernels of benchmarks, or load them."""
    one = np.ones(1, np.int64)
    replay(pack([load_level("first-steps/01-walk")]), 0 * one, one, 0 * one, hold=4, most_frames=100, key=0)


@kernel
def play_range(levels, worlds, which, starts, actions, hold, most_frames, key, ends, first, last):
    """Play episodes ``first`` to ``last - 1`` in one world; ``starts``, (E + 1,), are the places of their actions."""
    ninja = worlds.ninjas[0]
    for number in range(first, last):
        start(levels, worlds, 0, which[number])
        step, over = starts[number], False
        while step < starts[number + 1] and not over:
            inputs = INPUT_OF_ACTION[actions[step]]
            over = simulate_frames(levels, worlds, 0, inputs, hold, most_frames) != PLAYING
            step += 1
        end = ends[number]
        end["frames"] = ninja["frame"]
        end["won"] = ninja["state"] == CELEBRATING
        end["whole"] = over and step == starts[number + 1]
        end["mark"] = mark_of(ninja, actions, starts[number], step, number, key)
