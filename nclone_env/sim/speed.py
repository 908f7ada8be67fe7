"""How fast a level is played: levels with many entities can be a thousand times slower than others."""

from __future__ import annotations

from time import process_time

import numpy as np

from nclone_env.kinds import KINDS
from nclone_env.level import RawLevel, load_level
from nclone_env.sim.session import Session

_SLOW = 20_000  # frames a second; all 970 levels of the official and two community packs reach 75,000 and more
_SUSPECT = 100  # entities that act in every frame; levels with fewer are fast
_PIECE, _LONGEST = 32, 10_000  # frames


def slow_frames_per_second(raw: RawLevel) -> float | None:
    """Return the frames a second that random play reaches on a slow level, None for a level that is fast enough."""
    types = raw.records[:, 0]
    acting = sum(np.count_nonzero(types == kind.number) for kind in KINDS if kind.acts)
    if acting < _SUSPECT:
        return None
    speed = frames_per_second(raw, 0.05)
    return speed if speed < _SLOW else None


def frames_per_second(raw: RawLevel, seconds: float) -> float:
    """Return the frames a second of random play, measured for some seconds of processor time of this machine."""
    session, random, frames = Session(load_level(raw), max_frames=2 * _LONGEST), np.random.default_rng(0), 0
    session.play(bytes(1))  # loads the kernel
    began = process_time()
    while (taken := process_time() - began) < seconds:
        session.play(np.full(_PIECE, random.integers(0, 8)))
        frames += _PIECE
        if session.over[0] or session.ninja["frame"] > _LONGEST:
            session.start()
    return frames / taken
