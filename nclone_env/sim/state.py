"""The state of a batch of worlds: a fixed number of bytes per world, no pointers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nclone_env.memory_tree import MemoryNode, array_group

NINJA_FIELDS = [
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
]

WORLD_HEAD = np.dtype(NINJA_FIELDS, align=True)
"""The ninja (physics 01, section 5; pixels, pixels per frame, frames), the frame counter and the level played."""


class WorldArrays(NamedTuple):
    """The state of N worlds. Equal bytes mean an equal future; padding stays zero.

    Attributes:
        heads: (N,) ``WORLD_HEAD``.
        entity_states: (N, E) uint8, one byte an entity in the order of the level's entity table.
            0 is untouched; mine 0 armed, 1 safe, 2 stepped on; gold and exit switch 1 taken; exit 1 open.
    """

    heads: np.ndarray
    entity_states: np.ndarray

    def memory(self) -> MemoryNode:
        """Return the bytes of the arrays."""
        return array_group("worlds", self._asdict(), shared=False)


def make_worlds(count: int, max_entities: int) -> WorldArrays:
    """Return zeroed worlds that can hold levels of up to ``max_entities`` entities."""
    padded = -(-max_entities // 8) * 8
    return WorldArrays(np.zeros(count, dtype=WORLD_HEAD), np.zeros((count, padded), dtype=np.uint8))
