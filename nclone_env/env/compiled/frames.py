"""The frames of a step."""

from __future__ import annotations

from nclone_env.constants import CELEBRATING, DEAD
from nclone_env.env.compiled.records import DIED, PLAYING, TIMED_OUT, WON
from nclone_env.jit import kernel
from nclone_env.sim.tick import tick


@kernel
def simulate_frames(levels, worlds, index, inputs, frame_skip, max_frames):
    """Simulate frames until one ends the episode; return the outcome code.

    Victory or death on the last allowed frame counts as such, not as a time-out.
    """
    ninja = worlds.ninjas[index]
    for _ in range(frame_skip):
        tick(levels, worlds, index, inputs)
        if ninja["state"] == CELEBRATING:
            return WON
        if ninja["state"] == DEAD:
            return DIED
        if ninja["frame"] >= max_frames:
            return TIMED_OUT
    return PLAYING
