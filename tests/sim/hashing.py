"""Print a hash of a few runs; run in a process of its own (``python -m tests.sim.hashing FRAMES``)."""

import hashlib
import sys

from nclone_env._jit import cache_folder

from ..golden.synthetic import synthetic_map
from .recorder import Session


def run_hash(frames: int) -> str:
    """Return a hash over every byte of the worlds of three synthetic maps, frame by frame."""
    digest = hashlib.sha256()
    for density, seed in ((40, 3), (8, 2), (15, 4)):
        level, inputs = synthetic_map(density, seed)
        for rows in Session(level).play(inputs[:frames]):
            digest.update(rows.tobytes())
    return digest.hexdigest()


if __name__ == "__main__":
    sys.stdout.write(f"{run_hash(int(sys.argv[1]))} {cache_folder()}\n")
