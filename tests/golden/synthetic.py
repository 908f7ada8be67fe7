"""Generator of the synthetic maps of the physics specification (physics 01, section 15.5)."""

from collections.abc import Iterator

import numpy as np

from nclone_env.level.level import RawLevel

FRAMES = 1500
SPAWN_RECORD = (0, 86, 48, 0, 0)


def draws(seed: int) -> Iterator[int]:
    """Yield the draws of the 32-bit generator."""
    state = seed
    while True:
        state = (1664525 * state + 1013904223) % 2**32
        yield state // 65536


def synthetic_map(density: int, seed: int) -> tuple[RawLevel, bytes]:
    """Return a level of random tiles and 1500 random input bytes."""
    numbers = draws(seed)
    tiles = np.zeros((23, 42), np.uint8)
    for row in range(23):
        for column in range(42):
            chance, tile = next(numbers), next(numbers)
            tiles[row, column] = tile % 38 if chance % 100 < density else 0
    tiles[10:13, 19:23] = 0
    inputs = bytearray()
    while len(inputs) < FRAMES:
        code, length = next(numbers), next(numbers)
        inputs += bytes([code % 8]) * (1 + length % 16)
    return RawLevel(tiles, np.array([SPAWN_RECORD])), bytes(inputs[:FRAMES])
