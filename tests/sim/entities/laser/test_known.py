"""Play with and without the tables of known frames is the same to the bit."""

from itertools import pairwise

import numpy as np
import pytest

from nclone_env.level.build import build_level
from nclone_env.level.level_set import LASER_FRAME, pack
from nclone_env.level.load import load_level
from nclone_env.sim.entities.laser.known import find
from nclone_env.sim.session import Session

from ....golden.synthetic import synthetic_map

FRAMES = 600
NARROW = {(20 + k, row): 1 for k in range(6) for row in (10, 12)}  # a corridor of one cell: the laser turns round in it
LASERS = ("laser_turret 90 47 6 0", "laser_turret 85 47 6 1", "laser_turret 40 60 0 0")


def empty(levels):
    """Return the session of a level set whose tables are empty."""
    session = Session(levels)
    count = len(levels.levels)
    session.levels = session.levels._replace(
        laser_start=frozen(np.zeros(count + 1, np.int32)), laser_frames=frozen(np.zeros(1, LASER_FRAME))
    )
    return session


def frozen(array):
    array.flags.writeable = False
    return array


def hashes(session, inputs):
    found = []
    for code in inputs:
        session.play(bytes([code] * 3))
        found.append(session.hash())
    return found


def levels_with_lasers():
    yield build_level(*LASERS, tiles=NARROW)
    yield build_level(*LASERS, "regular_door 87 47 0", "regular_door 70 48", tiles=NARROW)
    for seed in range(4):
        level, _ = synthetic_map(30, seed)
        yield build_level(*(f"laser_turret {x} {y} {x % 4 * 2} {y % 2}" for x, y in places(seed)), tiles=level.tiles)


def places(seed):
    return np.random.default_rng(seed).integers((10, 10), (160, 90), (12, 2)).tolist()


@pytest.mark.parametrize("number", range(6))
def test_play_is_the_same_without_the_table(number):
    levels = pack([list(levels_with_lasers())[number]])
    session, bare = Session(levels), empty(levels)
    inputs = np.random.default_rng(number).integers(0, 8, FRAMES // 3)
    assert hashes(session, inputs) == hashes(bare, inputs)


def test_a_wrong_entry_is_noticed():
    """Negative control: the tables are used."""
    levels = pack([build_level(*LASERS, tiles=NARROW)])
    session, changed = Session(levels), Session(levels)
    frames = session.levels.laser_frames.copy()
    assert np.count_nonzero(frames["sense"]) > 2
    frames["next_x"] += 1e-9
    changed.levels = changed.levels._replace(laser_frames=frozen(frames))
    inputs = np.zeros(FRAMES // 3, np.uint8)
    assert hashes(session, inputs) != hashes(changed, inputs)


def test_every_frame_is_found_at_its_place():
    levels = pack(
        [build_level(*LASERS, tiles=NARROW), build_level(), load_level(synthetic_map(30, 1)[0]), build_level(*LASERS)]
    )
    Session(levels)
    frames, start = levels.arrays.laser_frames, levels.arrays.laser_start
    assert start[0] == 0 < start[1] == start[2]
    for first, stop in pairwise(start):
        size = stop - first
        assert size & (size - 1) == 0
        used = np.flatnonzero(frames["sense"][first:stop])
        assert 2 * len(used) <= size
        for place in used:
            known = frames[first + place]
            assert find(frames, first, stop, known["x"], known["y"], known["angle"], known["sense"]) == first + place


def test_near_doors_nothing_is_remembered():
    """The laser goes round one block, on which there may be doors; it turns round at corners of the block alone."""
    doors = [f"regular_door {x} {y} {o}" for x in (86, 88, 90, 92, 94) for y in (46, 48, 50, 52) for o in (0, 2)]
    free, closed = (
        Session(build_level("laser_turret 90 47 6 0", *more, tiles={(22, 12): 3})).levels.laser_frames["sense"]
        for more in ([], doors)
    )
    assert free.any()
    assert not closed.any()
