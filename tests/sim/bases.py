"""Inputs and numbers that the tests of the simulator share."""

import zlib

import numpy as np

from nclone_env.sim.trajectory import Trajectory

JUMP, RIGHT, LEFT, SUICIDE = 1, 2, 4, 8
FLOOR_Y = 24 * 15 - 10.0  # centre of a ninja on the floor of a built room


def motion_crc(trajectory: Trajectory, frames: int | None = None) -> int:
    """Return the CRC-32 over x, y and velocity of each frame (physics 01, section 15)."""
    columns = (trajectory.x, trajectory.y, trajectory.xspeed, trajectory.yspeed)
    return zlib.crc32((np.stack(columns, axis=1)[:frames] + 0.0).astype("<f8").tobytes())
