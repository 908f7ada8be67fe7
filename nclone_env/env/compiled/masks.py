"""The ``action_mask`` of a batch: 0 for each action that has exactly the effect of an action with a lower number.

It is written after the step by a kernel of its own: environments without it do not compile it.
"""

from typing import Any

import numpy as np

from nclone_env.env.compiled.passes import Call
from nclone_env.env.compiled.step import simulate_frames
from nclone_env.env.compiled.step_arrays import StepArrays
from nclone_env.game import INPUT_OF_ACTION, NUM_ACTIONS, NUM_DIRECTIONS
from nclone_env.jit import kernel, specialised
from nclone_env.level import LevelSet
from nclone_env.memory import MemoryNode, array_group
from nclone_env.sim import copy_world, equal_worlds, make_worlds

_MASK = "action_mask"
MASK_AT_END = (1,) + (0,) * (NUM_ACTIONS - 1)
"""After the end of an episode all actions have the same effect: none."""


class ActionMasks:
    """Writes the masks of a batch."""

    def __init__(self, levels: LevelSet, arrays: StepArrays, slots: int):
        self._scratch = make_worlds(NUM_ACTIONS * slots, levels, int(arrays.settings["max_frames"][0]))
        unused = np.zeros((0, NUM_ACTIONS), np.int8)
        self._write = specialised(mask_range, *self._arguments(arrays, unused), 0, 0, 0, 0)

    def __call__(self, call: Call, worker: int, first: int, last: int) -> None:
        """Write the masks of environments ``first`` to ``last - 1`` into ``call.out["action_mask"]``, (n, 6) int8."""
        self._write(*self._arguments(call.arrays, call.out[_MASK]), call.base, worker, first, last)

    def memory(self) -> MemoryNode:
        """Return the bytes of the worlds on which actions are tried."""
        return array_group(f"worlds of {_MASK}", self._scratch._asdict(), shared=False)

    def _arguments(self, arrays: StepArrays, out: np.ndarray) -> tuple[Any, ...]:
        return arrays.levels, arrays.worlds, arrays.settings, arrays.episodes, self._scratch, out


@kernel
def mask_range(levels, worlds, settings, episodes, scratch, out, base, worker, first, last):
    """Write the masks of environments ``first`` to ``last - 1``.

    Args:
        settings: (1,) ``SETTINGS``.
        episodes: (n,) ``EPISODE``.
        scratch: ``WorldArrays`` with six rows per worker slot, overwritten.
        out: (n, 6) int8.
        base: environment of the first row of ``out``.
    """
    rules = settings[0]
    for index in range(first, last):
        if episodes[index]["over"] != 0:
            for action in range(NUM_ACTIONS):
                out[index - base, action] = MASK_AT_END[action]
        else:
            frame_skip, max_frames = rules["frame_skip"], rules["max_frames"]
            write_mask(levels, worlds, index, frame_skip, max_frames, scratch, NUM_ACTIONS * worker, index - base, out)


@kernel
def write_mask(levels, worlds, index, frame_skip, max_frames, scratch, first_row, row, out):
    """Write 1 for each action that leads to another world than every lower action, else 0.

    Worlds are compared bit by bit, with remembered inputs, timers and the frame counter. A world remembers whether jump
    was pressed in its last frame, so only actions with the same jump input can coincide; the others are not compared.

    ``out`` is (n, 6) int8, in the order of ``Action``; six rows of ``scratch`` are overwritten, from ``first_row`` on.
    """
    for action in range(NUM_ACTIONS):
        copy_world(worlds, index, scratch, first_row + action)
        simulate_frames(levels, scratch, first_row + action, INPUT_OF_ACTION[action], frame_skip, max_frames)
        out[row, action] = 1
        for lower in range(action - action % NUM_DIRECTIONS, action):
            if out[row, lower] != 0 and equal_worlds(scratch, first_row + lower, first_row + action):
                out[row, action] = 0
