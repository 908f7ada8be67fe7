"""Print a hash of a few runs; run in a process of its own (``python -m tests.sim.hashing FRAMES``)."""

import hashlib
import sys

from nclone_env.jit import cache_folder

from ..golden.synthetic import synthetic_map
from .levels import room
from .recorder import Session

CROWDED = room([(2, 44, 58, 0, 0), (3, 90, 58, 0, 0), (4, 60, 58, 0, 0), (2, 50, 56, 0, 0), (1, 20, 58, 0, 0)])


def run_hash(frames: int) -> str:
    """Return a hash over every byte of the worlds of three synthetic maps and a room, frame by frame."""
    digest = hashlib.sha256()
    runs = [synthetic_map(density, seed) for density, seed in ((40, 3), (8, 2), (40, 8))]
    runs.append((CROWDED, runs[0][1]))
    for level, inputs in runs:
        for rows in Session(level).play(inputs[:frames]):
            digest.update(rows.tobytes())
    return digest.hexdigest()


if __name__ == "__main__":
    sys.stdout.write(f"{run_hash(int(sys.argv[1]))} {cache_folder()}\n")
