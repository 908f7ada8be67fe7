"""Public access to the levels and worlds of running environments."""

from __future__ import annotations

import numpy as np
import pytest

from nclone_env import NPlusPlusVectorEnv
from nclone_env.actions import INPUT_OF_ACTION
from nclone_env.sim.session import Session

from .bases import WALK

ACTIONS = np.array([2, 5, 1, 0])


def ahead(envs):
    """Return the worlds after the next step, simulated in copies."""
    session = Session(envs.level_set, envs.num_envs, envs.config.max_frames)
    for mine, theirs in zip(session.worlds, envs.worlds, strict=True):
        mine[:] = theirs
    session.play(np.repeat(np.array(INPUT_OF_ACTION, np.uint8)[ACTIONS][None], envs.config.frame_skip, axis=0))
    return session.worlds


def test_copies_of_the_worlds_foretell_the_next_step():
    envs = NPlusPlusVectorEnv(levels=(WALK, "jumps"), num_envs=4, observations="game_state")
    envs.reset(seed=1)
    for _ in range(10):
        envs.step(ACTIONS)
    expected = ahead(envs)
    envs.step(ACTIONS)
    for name in envs.worlds._fields:
        assert getattr(expected, name).tobytes() == getattr(envs.worlds, name).tobytes(), name
    envs.step(ACTIONS)
    assert expected.ninjas.tobytes() != envs.worlds.ninjas.tobytes(), "negative control"


def test_levels_are_read_only_and_in_the_order_of_the_names():
    envs = NPlusPlusVectorEnv(levels="jumps", num_envs=2, observations="game_state")
    assert envs.level_set.names == envs.level_names
    with pytest.raises(ValueError, match="read-only"):
        envs.level_set.arrays.tiles[:] = 0
