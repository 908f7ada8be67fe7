"""What a player shows of a run, frame by frame, in whole numbers: taken from the simulator, not computed twice.

A level has N sprites, in drawing order: its doors, its entities (a rocket turret has two sprites, the turret from which
a rocket has left and the rocket or turret itself), and the ninja. Each frame of a run is a row of values:

=================  ============================================================================================
values             meaning
=================  ============================================================================================
3 of each sprite   its number in the sprite sheet (-1: it is not shown), x, y
5 of each shooter  emission of ``sim.sight`` (-1: none), x and y of its begin, x and y of its end
3                  ninja: state, facing, gold collected
1                  input byte that led to this frame
=================  ============================================================================================

Coordinates are in steps of 1/256 pixel, rounded to nearest: no position is off by more than 1/512 pixel.

Few values change from one frame to the next, so the *tracks* of a run hold the changes of each value by time. In text,
a track is the base64 of variable-length numbers (seven bits a byte, lowest first, bit 7 set if more follow): an odd
number 2k + 1 means that the next k + 1 frames change nothing, an even number 2z a frame with the change z >> 1 if z is
even, else -(z + 1) >> 1. After the last number nothing changes.
"""

import base64
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from nclone_env.game import KINDS, ROCKET_TURRET, bits
from nclone_env.jit import kernel
from nclone_env.level import LevelSet, load_level, pack
from nclone_env.render import all_glyphs, list_sprites
from nclone_env.sim import NO_BEAM, Frames, Session, beam_of, greater, lesser, state_of, worlds_of

STEPS = 256
"""Steps of a coordinate per pixel."""
PER_SPRITE, PER_SHOOTER, OF_RUN = 3, 5, 4
MOST_FRAMES, MOST_PLACES = 36_000, 1 << 22
"""Frames that a player shows, ten minutes, and frames times entities that move."""
_FARTHEST = 16384.0  # pixels from the corner of the world; farther is drawn there, which is out of sight
_AT_ONCE = 1 << 20  # values that are held before their changes are taken
_SHOOTING = tuple(kind.number for kind in KINDS if kind.shoots)
_SHOOTS = bits(kind for kind in KINDS if kind.shoots)


class Tracks:
    """The course of one run.

    Args:
        levels: the level, alone in its set.
        inputs: (T,) uint8, one input byte a frame; at most ``MOST_FRAMES``.

    Attributes:
        frames: T.
        sprites: N.
        shooters: S.
        start: (3 N + 5 S + 4,) int32; the values before the first frame.
        changes: value to its changes: (K,) frames, 1..T and ascending, and (K,) int32 differences.
    """

    def __init__(self, levels: LevelSet, inputs: np.ndarray):
        header, kinds = levels.arrays.header[0], levels.entities_of(0)["type"]
        self.frames = len(inputs)
        self.sprites = int(header["door_count"] + len(kinds) + np.count_nonzero(kinds == ROCKET_TURRET) + 1)
        self.shooters = int(np.isin(kinds, _SHOOTING).sum())
        session = Session(levels, max_frames=len(inputs))
        self.start = self._rows(levels, Frames(*(np.array(part)[np.newaxis] for part in session[0][:3])))[0]
        found = list(self._changes(session, inputs))
        frames, values, steps = (np.concatenate(parts) for parts in zip(*found)) if found else (np.zeros(0, int),) * 3
        order = np.argsort(values, kind="stable")
        bounds = np.flatnonzero(np.diff(values[order], prepend=-1))
        parts = zip(values[order][bounds], np.split(frames[order], bounds)[1:], np.split(steps[order], bounds)[1:])
        self.changes = {int(value): (when, step) for value, when, step in parts}

    def column(self, value: int) -> np.ndarray:
        """Return (T + 1,) int32: one value before the first frame and after each frame."""
        steps = np.zeros(self.frames + 1, np.int32)
        steps[0] = self.start[value]
        if value in self.changes:
            when, by = self.changes[value]
            steps[when] = by
        return np.cumsum(steps, dtype=np.int32)

    def texts(self) -> dict[int, str]:
        """Return the values that change, each with its track as text."""
        return {value: _text(when, steps) for value, (when, steps) in self.changes.items()}

    def _changes(self, session: Session, inputs: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Play the run; yield frames, values and differences of the changes, some frames at a time."""
        before, piece = self.start, max(_AT_ONCE // len(self.start), 1)
        for first in range(0, len(inputs), piece):
            codes = inputs[first : first + piece]
            rows = self._rows(session.level_set, session.record(codes))
            rows[:, -1] = codes
            steps = np.diff(rows, axis=0, prepend=before[None])
            when, values = np.nonzero(steps)
            yield when + first + 1, values, steps[when, values]
            before = rows[-1]

    def _rows(self, levels: LevelSet, frames: Frames) -> np.ndarray:
        """Return the values of frames: each is a world in which time stands still."""
        count = len(frames.ninjas)
        worlds = worlds_of(*frames, np.zeros((count, 0, 2)))
        size = PER_SPRITE * self.sprites + PER_SHOOTER * self.shooters + OF_RUN
        rows = np.zeros((count, size), np.int32)
        write_rows(levels.arrays, worlds, all_glyphs(), np.zeros((self.sprites, PER_SPRITE)), rows)
        return rows


def compile_kernels() -> None:
    """Compile the kernels of galleries, or load them."""
    Tracks(pack([load_level("first-steps/01-walk")]), np.zeros(1, np.uint8))


def _text(when: np.ndarray, steps: np.ndarray) -> str:
    """Return changes as text: each is preceded by the frames without one."""
    idle = np.diff(when, prepend=0) - 1
    numbers = np.empty((len(when), 2), np.int64)
    numbers[:, 0] = 2 * idle - 1  # 2 * (idle - 1) + 1
    numbers[:, 1] = 2 * np.where(steps < 0, -2 * steps.astype(np.int64) - 1, 2 * steps.astype(np.int64))
    needed = np.ones(numbers.shape, bool)
    needed[:, 0] = idle > 0
    return base64.b64encode(_varints(numbers[needed])).decode()


def _varints(numbers: np.ndarray) -> bytes:
    """Return numbers below 2 ** 35 in seven bits a byte."""
    parts = numbers[:, None] >> 7 * np.arange(5)
    needed = parts > 0
    needed[:, 0] = True
    more = np.append(needed[:, 1:], np.zeros((len(numbers), 1), bool), axis=1)
    return ((parts & 127) | more << 7)[needed].astype(np.uint8).tobytes()


@kernel
def write_rows(levels, worlds, glyphs, sprites, rows):
    """Write the values of each world of a level; the inputs stay as they are.

    Args:
        worlds: (F,) worlds.
        sprites: (N, 3) float64, overwritten.
        rows: (F, V) int32.
    """
    for index in range(rows.shape[0]):
        ninja = worlds.ninjas[index]
        count = list_sprites(levels, worlds, index, glyphs, sprites)
        for sprite in range(count):
            rows[index, PER_SPRITE * sprite] = int(sprites[sprite, 0])
            rows[index, PER_SPRITE * sprite + 1] = _in_steps(sprites[sprite, 1])
            rows[index, PER_SPRITE * sprite + 2] = _in_steps(sprites[sprite, 2])
        column = _write_beams(levels, worlds, index, levels.header[ninja["level"]], rows, PER_SPRITE * count)
        rows[index, column] = ninja["state"]
        rows[index, column + 1] = ninja["facing"]
        rows[index, column + 2] = ninja["gold"]


@kernel
def _write_beams(levels, worlds, index, header, rows, column):
    """Write the beams of all shooters; without one, the ends of the last one stay. Return the next column."""
    for slot in range(header["entity_count"]):
        entity = levels.entities[header["first_entity"] + slot]
        if _SHOOTS >> int(entity["type"]) & 1:
            emission, x, y, dx, dy, length = beam_of(levels, worlds, index, entity, state_of(worlds, index, slot))
            rows[index, column] = NO_BEAM
            if emission != NO_BEAM and length > 0.0:
                rows[index, column] = emission
                rows[index, column + 1] = _in_steps(x)
                rows[index, column + 2] = _in_steps(y)
                rows[index, column + 3] = _in_steps(x + length * dx)
                rows[index, column + 4] = _in_steps(y + length * dy)
            elif index > 0:
                for part in range(1, PER_SHOOTER):
                    rows[index, column + part] = rows[index - 1, column + part]
            column += PER_SHOOTER
    return column


@kernel
def _in_steps(value):
    """Return a coordinate in steps."""
    return int(math.floor(greater(lesser(value, _FARTHEST), -_FARTHEST) * STEPS + 0.5))


def shown_frames(levels: LevelSet, frames: int) -> int:
    """Return the most frames that a player shows of a level, at most ``frames``."""
    movers: Any = levels.arrays.header[0]["mover_count"]
    return min(frames, MOST_FRAMES, MOST_PLACES // (int(movers) + 1))
