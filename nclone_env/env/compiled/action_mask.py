"""The ``action_mask``: which actions would do the same as one with a lower number.

It is written after the step by a kernel of its own, which environments without the mask do not even compile.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nclone_env.env.actions import INPUT_OF_ACTION
from nclone_env.env.compiled.frames import simulate_frames
from nclone_env.jit import kernel, specialised
from nclone_env.level.level_set import LevelSet
from nclone_env.memory_tree import MemoryNode, array_group
from nclone_env.sim.copy import copy_world, equal_worlds
from nclone_env.sim.state import WorldArrays, make_worlds

ACTIONS = 6
_DIRECTIONS = 3
MASK_AT_END = (1, 0, 0, 0, 0, 0)
"""Once an episode is over no action does anything."""


class ActionMasks:
    """Writes the masks of a batch.

    Args:
        levels: what is played.
        settings: (1,) ``SETTINGS``.
        episodes: (n,) ``EPISODE`` of the batch.
        seats: number of places from which threads may write at the same time.
        worlds: the worlds of the batch.
    """

    def __init__(self, levels: LevelSet, settings: np.ndarray, episodes: np.ndarray, seats: int, worlds: WorldArrays):
        self._levels, self._settings, self._episodes = levels, settings, episodes
        rows = worlds.trail.shape[1]
        self._scratch = make_worlds(ACTIONS * seats, levels, rows if levels.max_trail else None)
        nothing = np.zeros((0, ACTIONS), np.int8)
        self._write = specialised(mask_range, *self._arguments(worlds, nothing), 0, 0, 0, 0)

    def write(self, worlds: WorldArrays, out: np.ndarray, base: int, seat: int, first: int, last: int) -> None:
        """Write the masks of environments ``first`` to ``last - 1``.

        Args:
            worlds: of the batch.
            out: (n, 6) int8.
            base: environment whose row is the first of ``out``.
            seat: of the thread that calls.
            first: first environment.
            last: end of the environments.
        """
        self._write(*self._arguments(worlds, out), base, seat, first, last)

    def memory(self) -> MemoryNode:
        """Return the bytes of the worlds that actions are tried on."""
        return array_group("worlds of action_mask", self._scratch._asdict(), shared=False)

    def _arguments(self, worlds: WorldArrays, out: np.ndarray) -> tuple[Any, ...]:
        own = (self._settings, self._episodes, self._scratch)
        return (self._levels.arrays, worlds, *own, out)


@kernel
def mask_range(levels, worlds, settings, episodes, scratch, out, base, seat, first, last):
    """Play every action on copies of environments ``first`` to ``last - 1``; arguments as in :class:`ActionMasks`."""
    rules = settings[0]
    for index in range(first, last):
        if episodes[index]["over"] != 0:
            for action in range(ACTIONS):
                out[index - base, action] = MASK_AT_END[action]
        else:
            frame_skip, max_frames = rules["frame_skip"], rules["max_frames"]
            write_mask(levels, worlds, index, frame_skip, max_frames, scratch, ACTIONS * seat, index - base, out)


@kernel
def write_mask(levels, worlds, index, frame_skip, max_frames, scratch, first_row, row, out):
    """Write 1 for each action if no lower one leads to the same world, else 0.

    The same means every bit: remembered inputs, timers and the frame counter too. A world remembers whether jump was
    pressed in its last frame, so only actions that agree in jump can lead to the same; the others are not compared.

    Args:
        levels: ``LevelArrays``.
        worlds: ``WorldArrays``.
        index: world.
        frame_skip: frames of a step.
        max_frames: frames after which an episode is truncated.
        scratch: ``WorldArrays``; six rows of it are overwritten.
        first_row: the first of these rows.
        row: row of ``out``.
        out: (n, 6) int8, in the order of ``Action``.
    """
    for action in range(ACTIONS):
        copy_world(worlds, index, scratch, first_row + action)
        simulate_frames(levels, scratch, first_row + action, INPUT_OF_ACTION[action], frame_skip, max_frames)
        out[row, action] = 1
        for lower in range(action - action % _DIRECTIONS, action):
            if out[row, lower] != 0 and equal_worlds(scratch, first_row + lower, first_row + action):
                out[row, action] = 0
