"""How fast a level is played: levels with many entities can be a thousand times slower than others."""

from __future__ import annotations

from time import process_time

import numpy as np

from nclone_env.kinds import KINDS
from nclone_env.level.level import Level
from nclone_env.sim.session import Session

_SLOW = 20_000  # frames a second; all 970 levels of the official and two community packs reach 75,000 and more
_SUSPECT = 100  # entities that act in every frame; levels with fewer are fast
_FRAMES, _SECONDS = 32, 0.05


def slow_frames_per_second(level: Level) -> float | None:
    """Return the frames a second that random play reaches on a slow level, None for a level that is fast enough.

    Seconds are processor time of this machine.
    """
    types = level.raw.records[:, 0]
    acting = sum(np.count_nonzero(types == kind.number) for kind in KINDS if kind.acts)
    if acting < _SUSPECT:
        return None
    speed = _measure(Session(level))
    return speed if speed < _SLOW else None


def _measure(session: Session) -> float:
    random, frames = np.random.default_rng(0), 0
    session.play(bytes(1))  # loads the kernel
    began = process_time()
    while (seconds := process_time() - began) < _SECONDS:
        session.play(np.full(_FRAMES, random.integers(0, 8)))
        frames += _FRAMES
        if session.over[0]:
            session.start()
    return frames / seconds
