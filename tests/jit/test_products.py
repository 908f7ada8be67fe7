"""Matrix products of any size against NumPy's, split into small ones or not."""

import numpy as np
import pytest

from nclone_env.jit import numeric_kernel
from nclone_env.jit.products import add_multiply, add_transposed_multiply, multiply, multiply_transposed


@numeric_kernel
def multiply_by_transposed(a, b, out):
    """Call the product from compiled code, as only kernels can."""
    multiply_transposed(a, b, out)


SIZES = [(1, 1, 1), (128, 30, 64), (100, 96, 96), (257, 128, 128), (7, 1024, 128), (40, 600, 90), (0, 5, 4)]


@pytest.mark.parametrize("size", SIZES)
def test_products_equal_those_of_numpy(size):
    rows, depth, columns = size
    random = np.random.default_rng(0)

    def matrix(*shape):
        """Whole numbers, so that sums are exact in any order; rows are apart in memory."""
        return random.integers(-8, 9, (shape[0], shape[1] + 3)).astype(np.float32)[:, 1:-2]

    a, b, start = matrix(rows, depth), matrix(depth, columns), matrix(rows, columns)
    beside, gradient = matrix(rows, columns), matrix(depth, columns)
    for product, expected in (
        (lambda out: multiply(a, b, out), a @ b),
        (lambda out: add_multiply(a, b, out), start + a @ b),
    ):
        out = start.copy()
        product(out)
        np.testing.assert_array_equal(out, expected)
    out = gradient.copy()
    add_transposed_multiply(a, beside, out)
    np.testing.assert_array_equal(out, gradient + a.T @ beside)


def test_a_transposed_factor():
    random = np.random.default_rng(1)
    a, b, out = (random.integers(-8, 9, shape).astype(np.float32) for shape in ((100, 96), (64, 96), (100, 64)))
    multiply_by_transposed(a, b, out)
    np.testing.assert_array_equal(out, a @ b.T)
