"""Print whether this process checks array bounds in kernels (``python -m tests.sim.bounds``)."""

import sys

import numpy as np

from nclone_env.jit import kernel


@kernel
def read(array, index):
    return array[index]


if __name__ == "__main__":
    try:
        read(np.zeros(4)[:2], 3)
        sys.stdout.write("unchecked\n")
    except IndexError:
        sys.stdout.write("checked\n")
