"""Random numbers that depend only on a seed and a counter, such as the number of an episode."""

import numpy as np

from nclone_env.jit import kernel

RANDOM_BITS = 63

_GOLDEN, _MIX_1, _MIX_2 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_S1, _S30, _S27, _S31 = np.uint64(1), np.uint64(30), np.uint64(27), np.uint64(31)


@kernel
def splitmix(z):
    """Return a uint64 whose bits all depend on all bits of ``z``; SplitMix64 (Steele, Lea and Flood, 2014)."""
    z += _GOLDEN
    z = (z ^ (z >> _S30)) * _MIX_1
    z = (z ^ (z >> _S27)) * _MIX_2
    return z ^ (z >> _S31)


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
