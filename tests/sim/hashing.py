"""Print a hash of a few runs; run in a process of its own (``python -m tests.sim.hashing FRAMES``)."""

import hashlib
import sys

from nclone_env.jit import cache_folder
from nclone_env.level.build import build_room
from nclone_env.sim.session import Session

from ..golden.synthetic import synthetic_map

CROWDED = build_room("gold 44 58", "exit 90 58", "exit_switch 60 58", "gold 50 56", "mine 20 58")


def run_hash(frames: int) -> str:
    """Return a hash over every byte of the worlds of three synthetic maps and a room, frame by frame."""
    digest = hashlib.sha256()
    runs = [synthetic_map(density, seed) for density, seed in ((40, 3), (8, 2), (40, 8))]
    runs.append((CROWDED, runs[0][1]))
    for level, inputs in runs:
        for rows in Session(level).record(inputs[:frames]):
            digest.update(rows.tobytes())
    return digest.hexdigest()


if __name__ == "__main__":
    sys.stdout.write(f"{run_hash(int(sys.argv[1]))} {cache_folder()}\n")
