"""Small levels and runs for the tests of recordings."""

import numpy as np

from nclone_env.level import AttractFile, LevelSource, build_room, load_level

RIGHT, SUICIDE = 2, 8
DEADLY = build_room("gold 44 58", "mine 60 58")
"""Holding right takes a piece of gold, then ends in a mine."""
WINNABLE = build_room("exit 60 58", "exit_switch 48 58")


def attract(level: LevelSource, inputs) -> AttractFile:
    return AttractFile(load_level(level).raw, np.array(inputs, np.uint8), kind=0, replay_id=0)
