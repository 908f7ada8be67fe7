"""Every tile, slopes, arcs, glitches and deaths by impact against checksums (physics 01, section 15.5)."""

from itertools import islice

import numpy as np
import pytest

from nclone_env.game import DEAD
from nclone_env.sim.trajectory import simulate

from ..sim.bases import motion_crc
from .synthetic import draws, synthetic_map
from .values import SYNTHETIC


def test_the_generator():
    assert list(islice(draws(1), 6)) == [15496, 24200, 33046, 46195, 3312, 24216]
    assert len(SYNTHETIC) == 26


@pytest.mark.parametrize("row", SYNTHETIC, ids=lambda row: f"density {row[0]} seed {row[1]}")
def test_checksum(row):
    density, seed, frames, state, x, y, crc = row
    run = simulate(*synthetic_map(density, seed))
    dead = np.flatnonzero(run.state == DEAD)
    assert (dead[0] + 1 if len(dead) else len(run)) == frames
    last = frames - 1
    assert (run.state[last], run.x[last], run.y[last]) == (state, x, y)
    assert motion_crc(run, frames) == crc


def test_another_input_gives_another_checksum():
    level, inputs = synthetic_map(40, 1)
    changed = bytes([inputs[0] ^ 2]) + inputs[1:]
    assert motion_crc(simulate(level, changed)) != motion_crc(simulate(level, inputs))
