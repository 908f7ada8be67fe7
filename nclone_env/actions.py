"""The discrete action set, in one table: every count of actions and every input byte derives from it."""

from __future__ import annotations

from enum import IntEnum

from nclone_env.constants import INPUT_JUMP, INPUT_LEFT, INPUT_RIGHT


class Action(IntEnum):
    """The actions of the ``discrete`` space: 3 * jump + direction."""

    NONE = 0
    LEFT = 1
    RIGHT = 2
    JUMP = 3
    JUMP_LEFT = 4
    JUMP_RIGHT = 5


NUM_ACTIONS = len(Action)

DIRECTION_INPUTS = (0, INPUT_LEFT, INPUT_RIGHT)
"""Input byte of each direction: none, left, right."""
JUMP_INPUTS = (0, INPUT_JUMP)
"""Input byte without and with jump."""
NUM_DIRECTIONS = len(DIRECTION_INPUTS)
KEYS = {
    **dict.fromkeys(("left", "a"), INPUT_LEFT),
    **dict.fromkeys(("right", "d"), INPUT_RIGHT),
    **dict.fromkeys(("space", "z", "up", "w"), INPUT_JUMP),
}
"""Input bit of each key that moves the ninja, by its name in pygame."""

INPUT_OF_ACTION = tuple(jump | direction for jump in JUMP_INPUTS for direction in DIRECTION_INPUTS)
"""Input byte of the simulator for each :class:`Action`."""

ACTION_OF_INPUT = tuple(
    INPUT_OF_ACTION.index(code & ~INPUT_RIGHT if code & INPUT_LEFT else code)
    for code in range(1 + (INPUT_JUMP | INPUT_RIGHT | INPUT_LEFT))
)
"""Action of each input byte 0..7; left wins over right."""
