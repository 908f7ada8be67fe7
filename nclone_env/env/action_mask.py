"""The writer of ``action_mask``: which actions would do the same as one with a lower number."""

from __future__ import annotations

from nclone_env._jit import called_kernel
from nclone_env.env.actions import INPUT_OF_ACTION
from nclone_env.env.frames import simulate_frames
from nclone_env.sim.copy import copy_world, equal_worlds

ACTIONS = 6
_DIRECTIONS = 3


@called_kernel
def write_action_mask(levels, worlds, index, over, frame_skip, max_frames, scratch, first_row, out):
    """Play every action on a copy of one world; 1 where no lower action leads to the same world, else 0.

    The same means every bit: remembered inputs, timers and the frame counter too. A world remembers whether jump was
    pressed in its last frame, so only actions that agree in jump can lead to the same; the others are not compared.
    Once the episode is over no action does anything: 1 for action 0 alone.

    Args:
        levels: ``LevelArrays``.
        worlds: ``WorldArrays``.
        index: world and row of ``out``.
        over: whether its episode is over.
        frame_skip: frames of a step.
        max_frames: frames after which an episode is truncated.
        scratch: ``WorldArrays``; six rows of it are overwritten.
        first_row: the first of these rows.
        out: (n, 6) int8, in the order of ``Action``.
    """
    for action in range(ACTIONS):
        out[index, action] = 1 if action == 0 or not over else 0
    if over:
        return
    for action in range(ACTIONS):
        copy_world(worlds, index, scratch, first_row + action)
        simulate_frames(levels, scratch, first_row + action, INPUT_OF_ACTION[action], frame_skip, max_frames)
        for lower in range(action - action % _DIRECTIONS, action):
            if out[index, lower] != 0 and equal_worlds(scratch, first_row + lower, first_row + action):
                out[index, action] = 0
