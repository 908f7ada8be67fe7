"""Train and held-out levels: which of the two a level belongs to follows from its tiles, whatever its seed.

So no level of one split, and none with the same tiles or their mirror image, can ever be among those of the other.
"""

from __future__ import annotations

import hashlib

import numpy as np

TRAIN, HELD_OUT = "train", "held-out"
SPLITS = (TRAIN, HELD_OUT)


def split_of(tiles: np.ndarray) -> str:
    """Return the split of the levels with some (23, 42) uint8 tiles, or with their mirror image."""
    ways = (tiles.tobytes(), mirrored(tiles).tobytes())
    return SPLITS[hashlib.blake2b(min(ways), digest_size=1).digest()[0] & 1]


def mirrored(tiles: np.ndarray) -> np.ndarray:
    """Return the mirror image of tiles, left and right exchanged."""
    return _MIRROR[tiles[:, ::-1]]


def _mirror_table() -> np.ndarray:
    """Return (256,) uint8: the mirror image of each tile number."""
    table = np.arange(256, dtype=np.uint8)
    for one, other in ((3, 5), (35, 37)):  # right and left
        table[[one, other]] = other, one
    for first in range(6, 34, 4):  # top-left, top-right, bottom-right, bottom-left
        table[first : first + 4] = first + 1, first, first + 3, first + 2
    return table


_MIRROR = _mirror_table()
