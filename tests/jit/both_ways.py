"""Print how kernels were compiled and a hash of what some return."""

import hashlib
import math
import sys

import numpy as np

from nclone_env.jit import called_kernel, copy_bytes, each, kernel, local_f64
from nclone_env.jit.dispatcher import IS_PLAIN

POINT = np.dtype([("x", np.float64), ("y", np.float64)])
FIELDS = ("x", "y")


@called_kernel
def running_sums(point, out):
    """Write sums that depend on their order, divisions by zero among them."""
    sums = local_f64(3)
    for index in range(out.shape[0]):
        sums[index % 3] += point["x"] * sums[(index + 1) % 3] + point["y"] / (index % 7)
        out[index] = sums[index % 3] if sums[index % 3] < 1e6 else 1.0 / point["x"]


@kernel
def turned(point, index):
    """Return a point turned by a right angle, and doubled in every third row."""
    factor = 2.0 if index % 3 == 0 else 1.0
    return -factor * point["y"], factor * point["x"]


@kernel
def fill(points, sines, angles, sums, copied):
    """Fill the outputs for all points."""
    for index in range(points.shape[0]):
        point = points[index]
        for name in each(FIELDS):
            point[name] *= 1.5
        sines[index, 0], sines[index, 1] = turned(point, index)
        angles[index] = math.sqrt(abs(point["y"])) / point["x"]
        running_sums(point, sums[index])
        copy_bytes(copied, 8 * index, copied, 8 * index + 8, 8)


def results_hash() -> str:
    """Return a hash over all outputs."""
    draw = np.random.default_rng(0)
    points = np.zeros(500, POINT)
    points["x"], points["y"] = draw.uniform(-10, 10, (2, 500))
    outputs = np.zeros((500, 2)), np.zeros(500), np.zeros((500, 20)), draw.integers(0, 256, 4008).astype(np.uint8)
    fill(points, *outputs)
    digest = hashlib.sha256()
    for array in (points, *outputs):
        digest.update(array.tobytes())
    return digest.hexdigest()


if __name__ == "__main__":
    sys.stdout.write(f"{'plain' if IS_PLAIN else 'fast'} {results_hash()}\n")
