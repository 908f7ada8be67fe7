"""Plays what has loaded; every number must stay finite."""

import numpy as np

from nclone_env.level.level import Level
from nclone_env.sim.session import Session
from nclone_env.sim.state import WorldArrays
from nclone_env.sim.trajectory import simulate
from tests.sim.robustness import play

_FRAMES = 200
_MOST_INPUTS = 1000


def play_level(level: Level) -> None:
    """Play a level with random inputs that follow from its contents; restart it after every end."""
    session = Session(level)
    play(session, 0, _FRAMES, seed=int(level.raw.digest[:7], 16))
    check_worlds(session.worlds)


def play_inputs(level: Level, inputs: np.ndarray) -> None:
    """Play a level with given inputs."""
    run = simulate(level, inputs[:_MOST_INPUTS])
    for name in ("x", "y", "xspeed", "yspeed"):
        assert np.isfinite(getattr(run, name)).all(), name


def check_worlds(worlds: WorldArrays) -> None:
    """Check that every number of some worlds is finite."""
    for array in (worlds.ninjas, worlds.movers):
        for name in array.dtype.names or ():
            check_finite(name, array[name])
    check_finite("trail", worlds.trail)


def check_finite(name: str, array: np.ndarray) -> None:
    """Raise ``AssertionError`` with the name if a number of an array is not finite."""
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise AssertionError(f"{name}: expected finite numbers, got {array[~np.isfinite(array)][:3]}")
