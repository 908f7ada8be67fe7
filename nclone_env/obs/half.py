"""Vectors of float32 or float16 as kernels write them: as 16-bit words.

Numba's CPU target cannot store float16. With words for float32 too, kernels are compiled once for both dtypes.
"""

import numpy as np

from nclone_env.jit import kernel

_INFINITE = 0x7F800000
_OVERFLOW = 0x477FF000  # 65520, the smallest value that rounds to infinity
_NORMAL = 0x38800000  # 2 ** -14
_BIAS = 0x38000000  # difference of the exponents' biases
_TINY = 2.0**24  # steps of a subnormal float16 in 1


def words(array: np.ndarray) -> np.ndarray:
    """Return the words of an array of vectors: (..., k) uint16 for float16, (..., 2k) for float32, low word first."""
    return array.view(np.uint16)


@kernel
def half_bits(value):
    """Return the bits of a float32 rounded to float16: to nearest, ties to even, as NumPy does.

    NaN stays NaN and keeps its sign.
    """
    bits = np.int64(np.float32(value).view(np.uint32))
    sign, magnitude = (bits >> 16) & 0x8000, bits & 0x7FFFFFFF
    if magnitude > _INFINITE:
        return sign | 0x7E00
    if magnitude >= _OVERFLOW:
        return sign | 0x7C00
    if magnitude >= _NORMAL:
        return sign | ((magnitude - _BIAS + 0xFFF + ((magnitude >> 13) & 1)) >> 13)
    steps = abs(np.float64(np.float32(value))) * _TINY
    whole = int(steps)
    rest = steps - whole
    if rest > 0.5 or (rest == 0.5 and whole & 1 == 1):
        whole += 1
    return sign | whole


@kernel
def write_vector(values, out):
    """Write k numbers as a vector: (k,) float32, or uint16 words, k for float16 and 2k for float32."""
    count = values.shape[0]
    if out.itemsize == 4:  # a constant for the compiler
        for column in range(count):
            out[column] = values[column]
    elif out.shape[0] == count:
        for column in range(count):
            out[column] = half_bits(values[column])
    else:
        for column in range(count):
            bits = np.int64(np.float32(values[column]).view(np.uint32))
            out[2 * column], out[2 * column + 1] = bits & 0xFFFF, bits >> 16
