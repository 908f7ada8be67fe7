"""A table of 64-bit keys with open addressing, of fixed size: the memory of a search for what it has seen."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from nclone_env.jit import kernel

EMPTY = -1
_LOAD = 0.75
"""Largest share of the places that is used; chains of collisions stay short."""
PLACE_BYTES = 12


class KeyTable(NamedTuple):
    """Keys with a number each; the number of places is a power of 2.

    Attributes:
        keys: (P,) uint64.
        numbers: (P,) int32; not negative, ``EMPTY`` where there is no key.
    """

    keys: np.ndarray
    numbers: np.ndarray


def places_for(count: int) -> int:
    """Return the places of a table for so many keys."""
    places = 8
    while places * _LOAD < count:
        places *= 2
    return places


def most_that_fit(size: Callable[[int], int], memory: int) -> int:
    """Return the largest number n for which ``size(n)``, which grows with n, is at most so many bytes; 0 if none is."""
    least, most = 0, max(memory, 1)
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (middle, most) if size(middle) <= memory else (least, middle)
    return least


def make_table(count: int) -> KeyTable:
    """Return an empty table for so many keys.

    Args:
        count: most keys that will be in it.
    """
    places = places_for(count)
    return KeyTable(np.zeros(places, dtype=np.uint64), np.full(places, EMPTY, dtype=np.int32))


@kernel
def find_place(table, key):
    """Return the place of a key: where it is, or the empty place where it can be inserted.

    Args:
        table: ``KeyTable`` with an empty place.
        key: uint64 with well-mixed low bits.
    """
    last = table.keys.shape[0] - 1
    place = np.int64(key) & last
    while table.numbers[place] != EMPTY and table.keys[place] != key:
        place = (place + 1) & last
    return place
