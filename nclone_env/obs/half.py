"""Conversion of float32 to the bits of float16, as uint16: Numba's CPU target cannot store float16."""

from __future__ import annotations

import numpy as np

from nclone_env.jit import kernel

_INFINITE = 0x7F800000
_OVERFLOW = 0x477FF000  # 65520, the smallest value that rounds to infinity
_NORMAL = 0x38800000  # 2 ** -14
_BIAS = 0x38000000  # difference of the exponents' biases
_TINY = 2.0**24  # steps of a subnormal float16 in 1


def kernel_array(array: np.ndarray) -> np.ndarray:
    """Return an array as kernels take it: one of float16 as its bits."""
    return array.view(np.uint16) if array.dtype == np.float16 else array


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
    """Write numbers as a vector: (k,) float32, or uint16 for the bits of float16."""
    for column in range(out.shape[0]):
        if out.itemsize == 2:  # a constant for the compiler
            out[column] = half_bits(values[column])
        else:
            out[column] = values[column]
