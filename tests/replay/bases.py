"""Small levels and runs for the tests of recordings."""

from __future__ import annotations

import numpy as np

from nclone_env.constants import EXIT, EXIT_SWITCH, GOLD, MINE
from nclone_env.level.formats.attract import AttractFile
from nclone_env.level.raw import RawLevel

from ..sim.levels import room

RIGHT, SUICIDE = 2, 8
DEADLY = room([(GOLD, 44, 58, 0, 0), (MINE, 60, 58, 0, 0)])
"""Holding right takes a piece of gold, then ends in a mine."""
WINNABLE = room([(EXIT, 60, 58, 0, 0), (EXIT_SWITCH, 48, 58, 0, 0)])


def attract(level: RawLevel, inputs) -> AttractFile:
    return AttractFile(level, np.array(inputs, np.uint8), kind=0, replay_id=0)
