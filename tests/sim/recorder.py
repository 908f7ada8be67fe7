"""Step a world from Python, one frame a call, and keep everything the simulator remembers."""

from __future__ import annotations

import zlib

import numpy as np

from nclone_env.level.compile import Level
from nclone_env.level.level_set import pack
from nclone_env.level.load import load_level
from nclone_env.sim.simulate import check_inputs, record_frames
from nclone_env.sim.state import WorldArrays, make_worlds
from nclone_env.sim.tick import start, tick

JUMP, RIGHT, LEFT, SUICIDE = 1, 2, 4, 8


class Session:
    """``count`` worlds at the start of a level."""

    def __init__(self, level, count: int = 1):
        self.level = load_level(level)
        level_set = pack([self.level])
        self.levels = level_set.arrays
        self.worlds = make_worlds(count, level_set)
        for index in range(count):
            start(self.levels, self.worlds, index, 0)

    @property
    def ninja(self) -> np.void:
        """The first world's ninja; a view."""
        return self.worlds.ninjas[0]

    def play(self, inputs, index: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """Play inputs in one world; return (T,) ninjas and (T, E) entity states, a row after each frame."""
        codes = check_inputs(inputs)
        ninjas = np.zeros(len(codes), dtype=self.worlds.ninjas.dtype)
        states = np.zeros((len(codes), self.worlds.entity_states.shape[1]), np.uint8)
        for frame, code in enumerate(codes):
            tick(self.levels, self.worlds, index, code)
            ninjas[frame], states[frame] = self.worlds.ninjas[index], self.worlds.entity_states[index]
        return ninjas, states

    def snapshot(self, index: int = 0) -> tuple[bytes, ...]:
        """Return the bytes of one world."""
        return tuple(array[index].tobytes() for array in self.worlds)

    def restore(self, snapshot: tuple[bytes, ...], index: int = 0) -> None:
        """Put saved bytes back into a world."""
        for array, data in zip(self.worlds, snapshot, strict=True):
            array[index : index + 1] = np.frombuffer(data, array.dtype).reshape(array[index : index + 1].shape)


def remembered(level: Level, inputs) -> WorldArrays:
    """Play a level from its start in one call; return the world after each frame, a row a frame.

    The trail is left out."""
    level_set = pack([level])
    codes = check_inputs(inputs)
    rows = make_worlds(len(codes), level_set, 1)
    record_frames(level_set.arrays, make_worlds(1, level_set), codes, rows.ninjas, rows.entity_states, rows.movers)
    return rows


def motion_crc(trajectory, frames: int | None = None) -> int:
    """Return the CRC-32 over x, y and velocity of each frame (physics 01, section 15)."""
    columns = (trajectory.x, trajectory.y, trajectory.xspeed, trajectory.yspeed)
    return zlib.crc32((np.stack(columns, axis=1)[:frames] + 0.0).astype("<f8").tobytes())
