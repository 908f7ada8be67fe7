"""The state of a batch of worlds: a fixed number of bytes per world, no pointers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nclone_env.level import LevelSet
from nclone_env.memory_tree import MemoryNode, array_group

NINJA_RECORD = np.dtype(
    [
        ("x", "f8"),
        ("y", "f8"),
        ("vx", "f8"),
        ("vy", "f8"),
        ("gravity", "f8"),
        ("drag", "f8"),
        ("floor_x", "f8"),
        ("floor_y", "f8"),
        ("wall_normal", "f8"),
        ("pad_x", "f8"),
        ("pad_y", "f8"),
        ("finish_fraction", "f8"),
        ("frame", "i4"),
        ("level", "i4"),
        ("next_order", "i4"),
        ("gold", "i2"),
        ("state", "i1"),
        ("airborne", "i1"),
        ("walled", "i1"),
        ("facing", "i1"),
        ("jump_held", "i1"),
        ("jump_duration", "i1"),
        ("jump_buffer", "i1"),
        ("floor_buffer", "i1"),
        ("wall_buffer", "i1"),
        ("pad_buffer", "i1"),
    ],
    align=True,
)
"""The ninja (physics 01, section 5; pixels, pixels per frame, frames), the frame counter, the level played, and the
order number for the next entity that enters a cell."""

MOVER = np.dtype(
    [("x", "f8"), ("y", "f8"), ("a", "f8"), ("b", "f8"), ("order", "i4"), ("cell", "i2"), ("timer", "i2")], align=True
)
"""An entity that moves or aims: position (pixels), the cell it is registered in (-1: none), its order of entry.

The file of the kind under ``sim.entities`` names ``a``, ``b`` and ``timer`` by their meaning, and ``order`` of kinds
that are in no cell; other modules use its accessors."""

NO_CELL = -1


class WorldArrays(NamedTuple):
    """The state of N worlds. Equal bytes mean an equal future; padding stays zero.

    Attributes:
        ninjas: (N,) ``NINJA_RECORD``.
        entity_states: (N, E) uint8, one byte an entity in the order of the level's entity table; ``kinds`` names its
            values. 0 is untouched.
        movers: (N, M) ``MOVER``.
        trail: (N, R, 2) float64; past positions of the ninja for the evil ninjas of the level set, pixels, the one at
            the end of frame j in row j % R. One unused row without evil ninjas.
    """

    ninjas: np.ndarray
    entity_states: np.ndarray
    movers: np.ndarray
    trail: np.ndarray

    def memory(self) -> MemoryNode:
        """Return the bytes of the arrays."""
        return array_group("worlds", self._asdict(), shared=False)


def make_worlds(count: int, levels: LevelSet, max_frames: int | None = None) -> WorldArrays:
    """Return zeroed worlds that can hold any level of a set.

    Args:
        count: number of worlds.
        levels: levels to play.
        max_frames: a world is restarted after at most so many frames, which bounds the trail; None: no limit.
    """
    entities, movers = max(levels.max_entities, 1), max(levels.max_movers, 1)  # kernels need a valid first record
    trail = levels.max_trail if max_frames is None else min(levels.max_trail, max_frames)
    return WorldArrays(
        np.zeros(count, dtype=NINJA_RECORD),
        np.zeros((count, -(-entities // 8) * 8), dtype=np.uint8),
        np.zeros((count, movers), dtype=MOVER),
        np.zeros((count, max(trail, 1), 2)),
    )
