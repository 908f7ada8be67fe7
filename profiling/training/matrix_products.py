"""GFLOP/s of matrix products in kernels by size: whole, as BLAS gets them, and split by rows as ``jit.products`` does.

For each product a @ b of (n, k) and (k, m) the rows are n, the columns the multiplications of a row, k * m. One thread;
the fastest of several turns, because only that is a limit.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import tyro

from nclone_env.jit import numeric_kernel
from nclone_env.jit.products import _multiply, multiply, multiply_transposed
from nclone_env.train.policies.acting import one_thread_per_call
from profiling.measure import best_of, describe

WIDTHS = ((30, 64), (64, 64), (30, 96), (96, 96), (128, 128))


@numeric_kernel
def repeat_whole(a, b, b_transposed, out, count):
    """Multiply as often as ``count`` says."""
    for _ in range(count):
        _multiply(a, b, out)


@numeric_kernel
def repeat_split(a, b, b_transposed, out, count):
    """Multiply as often as ``count`` says, split by rows."""
    for _ in range(count):
        multiply(a, b, out)


@numeric_kernel
def repeat_transposed(a, b, b_transposed, out, count):
    """Multiply by the transposed factor as often as ``count`` says."""
    for _ in range(count):
        multiply_transposed(a, b_transposed, out)


FORMS: dict[str, Callable[..., None]] = {
    "whole": repeat_whole,
    "split": repeat_split,
    "transposed": repeat_transposed,
}


def speed(form: Callable[..., None], rows: int, depth: int, columns: int, runs: int) -> float:
    """Return GFLOP/s."""
    random = np.random.default_rng(0)
    a, b = (random.random(shape, np.float32) for shape in ((rows, depth), (depth, columns)))
    operations = 2 * rows * depth * columns
    count = max(1, 10**8 // operations)
    out, b_transposed = np.zeros((rows, columns), np.float32), b.T.copy()
    return count * operations / best_of(runs, lambda: form(a, b, b_transposed, out, count)) / 1e9


def main(rows: tuple[int, ...] = (16, 64, 128, 256), runs: int = 20) -> None:
    """Print the table.

    Args:
        rows: n.
        runs: turns of each product.
    """
    print(describe())
    print(f"{'n':>6} {'k x m':>10}" + "".join(f"{form:>12}" for form in FORMS))
    with one_thread_per_call():
        for count in rows:
            for depth, columns in WIDTHS:
                speeds = [speed(form, count, depth, columns, runs) for form in FORMS.values()]
                print(f"{count:>6} {f'{depth} x {columns}':>10}" + "".join(f"{value:>12.0f}" for value in speeds))


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)
