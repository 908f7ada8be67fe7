"""Records of the compiled step: what an environment remembers, what a step says, and the settings of both."""

from __future__ import annotations

import numpy as np

from nclone_env.config import EnvironmentConfig

EPISODE = np.dtype(
    [
        ("seed", "u8"),
        ("episode_return", "f8"),
        ("potential", "f8"),
        ("number", "i4"),
        ("steps", "i4"),
        ("next_level", "i4"),
        ("own_level", "i4"),
        ("over", "u1"),
    ],
    align=True,
)
"""Kept per environment: seed, return and steps so far, potential of the state, count of episodes begun, level of the
next episode and that of every episode (-1 where there is none), and whether the episode is over."""

RESULT = np.dtype(
    [
        ("reward", "f8"),
        ("episode_return", "f8"),
        ("frames", "i4"),
        ("episode_frames", "i4"),
        ("episode_steps", "i4"),
        ("level", "i4"),
        ("gold", "i2"),
        ("outcome", "i1"),
        ("terminated", "?"),
        ("truncated", "?"),
    ],
    align=True,
)
"""What the last step of an environment did, in the episode it belongs to; ``frames`` are those of the step."""

EVENT = np.dtype(
    [
        ("x0", "f8"),
        ("y0", "f8"),
        ("x", "f8"),
        ("y", "f8"),
        ("vx", "f8"),
        ("vy", "f8"),
        ("potential0", "f8"),
        ("potential", "f8"),
        ("earned", "f8"),
        ("frames", "i4"),
        ("gold", "i4"),
        ("switches", "i4"),
        ("outcome", "i4"),
    ],
    align=True,
)
"""What happened in a step, for reward functions of users: place of the ninja before and after (pixels), its velocity
(pixels per frame), minus the way still to go before and after (in whole ways; 0 after the end), what the episode had
earned before, frames simulated, pieces of gold and exit switches taken, and the outcome code."""

PLAYING, WON, DIED, TIMED_OUT = range(4)
OUTCOMES = ("playing", "won", "died", "timed_out")
"""Names of the ``outcome`` codes."""

NEXT_STEP, SAME_STEP, DISABLED = range(3)

SETTINGS = np.dtype(
    [(name, "f8") for name in ("completion", "switch", "death", "time", "gold", "shaping", "gamma")]
    + [("frame_skip", "i4"), ("max_frames", "i4"), ("autoreset", "i4")],
    align=True,
)
"""Reward weights and rules that kernels need, one record."""


def make_settings(config: EnvironmentConfig, autoreset: int) -> np.ndarray:
    """Return the (1,) ``SETTINGS`` record of a configuration."""
    settings = np.zeros(1, dtype=SETTINGS)
    for name in ("completion", "switch", "death", "time", "gold", "shaping", "gamma"):
        settings[name] = getattr(config.reward, name)
    settings["frame_skip"], settings["max_frames"] = config.frame_skip, config.max_frames
    settings["autoreset"] = autoreset
    return settings
