"""Mixing of bits: hashes word by word, and random numbers that depend only on a seed and a counter.

For each word of a hash, modulo 2**64,

    h = (h ^ word) * 0x9E3779B97F4A7C15;  h = h ^ (h >> 32)

and at the end the finalizer of SplitMix64 (Steele, Lea and Flood, 2014), so that any of its bits can index a table.
Every step is invertible, so two states that differ in a single word never have the same hash.
"""

import numpy as np

from nclone_env.jit import kernel

RANDOM_BITS = 63
FIRST, _GOLDEN = np.uint64(0x243F6A8885A308D3), np.uint64(0x9E3779B97F4A7C15)
_MIX_1, _MIX_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_S1, _S27, _S30, _S31, _S32 = np.uint64(1), np.uint64(27), np.uint64(30), np.uint64(31), np.uint64(32)


@kernel
def mix(value, word):
    """Return a hash with one word mixed into it."""
    value = (value ^ word) * _GOLDEN
    return value ^ (value >> _S32)


@kernel
def finish(value):
    """Return a hash whose bits all depend on all bits of ``value``; different for different values."""
    value = (value ^ (value >> _S30)) * _MIX_1
    value = (value ^ (value >> _S27)) * _MIX_2
    return value ^ (value >> _S31)


@kernel
def splitmix(z):
    """Return a uint64 whose bits all depend on all bits of ``z``: a step of SplitMix64."""
    return finish(z + _GOLDEN)


@kernel
def random_bits(seed, number):
    """Return random number ``number`` of 63 bits, uint64, of the sequence of a seed."""
    return splitmix(np.uint64(seed) + _GOLDEN * np.uint64(number)) >> _S1


@kernel
def draw(state, count):
    """Return a random number from 0 to ``count - 1``.

    Args:
        state: record with ``seed`` and ``random``, how many numbers were drawn, which is updated.
        count: positive integer.
    """
    state["random"] += 1
    return np.int64(random_bits(state["seed"], state["random"]) % np.uint64(count))
