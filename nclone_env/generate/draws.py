"""Random choices that depend only on a seed: integers, the same on every machine."""

import hashlib
from collections.abc import Sequence
from typing import TypeVar

from nclone_env.sim import random_bits

T = TypeVar("T")


def seed_of(*parts: str | int) -> int:
    """Return a seed of 63 bits that depends on all parts: the same parts give the same seed everywhere."""
    text = "\0".join(map(str, parts)).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little") >> 1


class Draws:
    """A sequence of random choices by a seed, 0 to 2**63 - 1."""

    def __init__(self, seed: int):
        self._seed, self._number = seed, 0

    def below(self, count: int) -> int:
        """Return a number from 0 to ``count - 1``."""
        number: int = random_bits(self._seed, self._number)
        self._number += 1
        return number % count

    def between(self, least: int, most: int) -> int:
        """Return a number from ``least`` to ``most``, both included; ``least`` if that is the larger one."""
        return least + self.below(max(most - least, 0) + 1)

    def chance(self, percent: int) -> bool:
        """Return True in so many of a hundred cases."""
        return self.below(100) < percent

    def pick(self, items: Sequence[T]) -> T:
        """Return one of the items."""
        return items[self.below(len(items))]

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """Return the items in random order."""
        mixed = list(items)
        for place in range(len(mixed) - 1, 0, -1):
            other = self.below(place + 1)
            mixed[place], mixed[other] = mixed[other], mixed[place]
        return mixed
