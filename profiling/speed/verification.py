"""Processor seconds to replay episodes of random play on the levels of a benchmark track, on one core.

This is the part of ``nclone-env benchmark verify`` that grows with the episodes. Random play is the worst case: most
episodes last until the time limit.
"""

from __future__ import annotations

import time

import numpy as np
import tyro

from nclone_env.benchmark import load_track
from nclone_env.benchmark.attempts import replay
from nclone_env.benchmark.track import track_levels
from nclone_env.game import NUM_ACTIONS
from nclone_env.level.level_set import pack
from profiling.measure import describe, timed


def main(track: str = "Generated-v1", episodes: int = 100_000) -> None:
    """Replay episodes and print how long that takes.

    Args:
        track: name of the track.
        episodes: number of episodes; they take turns on the levels.
    """
    print(describe())
    found = load_track(track)
    levels, packed = timed(lambda: pack(track_levels(found)), time.thread_time)
    which = np.arange(episodes) % len(found.levels)
    steps = np.full(episodes, found.max_steps)
    actions = np.random.default_rng(0).integers(NUM_ACTIONS, size=episodes * found.max_steps, dtype=np.uint8)
    limits = found.frame_skip, found.max_frames, 0
    replay(levels, which[:1], steps[:1], actions[: found.max_steps], *limits)  # compiles
    played, seconds = timed(lambda: replay(levels, which, steps, actions, *limits), time.thread_time)
    frames = int(played.ends["frames"].sum(dtype=np.int64))
    print(f"{len(found.levels):,} levels of {track} packed in {packed:.1f} s")
    print(f"{episodes:,} episodes, {frames:,} frames in {seconds:.1f} s: {frames / seconds / 1e6:.1f} million frames/s")


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)
