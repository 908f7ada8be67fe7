"""Accidents that happen to bytes and numbers, in files of any format."""

import random
from collections.abc import Callable, Sequence
from typing import Any

EDGES = (0, 1, 2, 3, 6, 7, 8, 9, 15, 16, 31, 39, 40, 41, 42, 127, 128, 200, 254, 255)
WHOLE = (
    -(2**63),
    -(2**31),
    -2,
    -1,
    *EDGES,
    1000,
    32767,
    32768,
    65535,
    65536,
    2**24,
    2**31 - 1,
    2**32 - 1,
    2**63,
    2**64,
)
FLOATS = (0.0, -0.0, 0.5, 1.0, -1.0, 1e-300, 1e9, -1e9, 1e300, float("inf"), float("-inf"), float("nan"))
VALUES = (
    *WHOLE, *FLOATS, None, True, False, "", "a", "first-steps", "\0", "é" * 300, b"", b"\0" * 9, [], [[]], [0], [-1, 2],
    (), (1, 2), {}, {"a": 1}, {1: 2}, 1j, object, range(3), float,
)  # fmt: skip


def damaged(rng: random.Random, data: bytes, words: Sequence[bytes] = (b"\0",), most: int = 4) -> bytes:
    """Return data after one to ``most`` accidents.

    Args:
        rng: random numbers.
        data: the data.
        words: what may be inserted; the format's own marks, for example.
        most: number of accidents.
    """
    changed = bytearray(data)
    for _ in range(rng.randint(1, most)):
        place = rng.randrange(len(changed) + 1)
        if rng.random() < 0.3:
            place = min(place, rng.choice((8, 80, 1300)))
        length = min(rng.choice((1, 1, 2, 5, 80)), len(changed) - place)
        rng.choice(_ACCIDENTS)(rng, changed, place, length, words)
    return bytes(changed)


def _noise(rng: random.Random, data: bytearray, place: int, length: int, words: Sequence[bytes]) -> None:
    data[place : place + length] = rng.randbytes(length)


def _loss(rng: random.Random, data: bytearray, place: int, length: int, words: Sequence[bytes]) -> None:
    del data[place : place + length]


def _word(rng: random.Random, data: bytearray, place: int, length: int, words: Sequence[bytes]) -> None:
    data[place:place] = rng.choice(words)


def _repetition(rng: random.Random, data: bytearray, place: int, length: int, words: Sequence[bytes]) -> None:
    data[place:place] = data[place : place + length] * rng.choice((1, 1, 2, 30))


def _end(rng: random.Random, data: bytearray, place: int, length: int, words: Sequence[bytes]) -> None:
    if rng.random() < 0.5:
        del data[place:]
    else:
        data += rng.randbytes(length)


def _edge(rng: random.Random, data: bytearray, place: int, length: int, words: Sequence[bytes]) -> None:
    data[place : place + 1] = bytes([rng.choice(EDGES)])


def _number(rng: random.Random, data: bytearray, place: int, length: int, words: Sequence[bytes]) -> None:
    """Write a number of 2, 4 or 8 bytes at a multiple of its size, as headers have them."""
    size = rng.choice((2, 4, 8))
    place -= place % size
    if place + size <= len(data):
        data[place : place + size] = (rng.choice(WHOLE) % 256**size).to_bytes(size, "little")


_ACCIDENTS = (_noise, _loss, _word, _repetition, _end, _edge, _number)


def drawn(rng: random.Random, values: Sequence[Any]) -> Any:
    """Return one of some values, or a number, or a list or dict of such."""
    share = rng.random()
    if share < 0.1:
        return [drawn(rng, values) for _ in range(rng.randrange(4))]
    if share < 0.15:
        return {str(drawn(rng, WHOLE)): drawn(rng, values) for _ in range(rng.randrange(3))}
    if share < 0.3:
        return rng.randrange(-10, 300)
    return rng.uniform(-2.0, 2.0) if share < 0.4 else rng.choice(values)


def with_other_parts(rng: random.Random, value: Any, draw: Callable[[random.Random], Any]) -> Any:
    """Return nested dicts and lists with one part replaced, removed, renamed, repeated or added.

    Args:
        rng: random numbers.
        value: the nested value; it stays as it is.
        draw: draws a value for the part that is replaced or added.
    """
    if isinstance(value, dict) and value and rng.random() < 0.9:
        changed = dict(value)
        key = rng.choice(list(changed))
        action = rng.random()
        if action < 0.1:
            del changed[key]
        elif action < 0.2:
            changed[rng.choice(("", "x", str(key) + "x", key))] = draw(rng)
        else:
            changed[key] = with_other_parts(rng, changed[key], draw)
        return changed
    if isinstance(value, list) and value and rng.random() < 0.8:
        place, action = rng.randrange(len(value)), rng.random()
        if action < 0.2:
            return value[:place] + value[place + 1 :]
        if action < 0.4:
            return value[:place] + [value[place]] * rng.choice((2, 100)) + value[place + 1 :]
        return [*value[:place], with_other_parts(rng, value[place], draw), *value[place + 1 :]]
    return draw(rng)
