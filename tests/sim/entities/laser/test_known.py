"""Play with and without the tables of known frames is the same to the bit."""

from itertools import pairwise

import numpy as np
import pytest

from nclone_env.game import REGULAR_DOOR
from nclone_env.level import DOOR_CLOSED_AT_0
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


def block_with_doors():
    """Levels of a laser that goes round a block: with closed doors there, and with open ones."""
    places = [(x, y) for x in (86, 88, 90, 92, 94) for y in (46, 48, 50, 52)]
    closed = [f"regular_door {x} {y} {o}" for x, y in places for o in (0, 2)]
    opened = [line for x, y in places for line in (f"trap_door {x} {y}", "trap_door_switch 20 80")]
    return [build_level("laser_turret 90 47 6 0", *more, tiles={(22, 12): 3}) for more in (closed, opened)]


@pytest.mark.parametrize("number", range(2))
def test_frames_beside_doors_hold_while_these_are_as_at_the_start(number):
    levels = pack([block_with_doors()[number]])
    session, bare = Session(levels), empty(levels)
    frames = session.levels.laser_frames[session.levels.laser_frames["sense"] > 0]
    assert frames["has_door"].any()
    doors = session.levels.segments["owner"][session.levels.segments["kind"] >= DOOR_CLOSED_AT_0]
    random, inputs, changed = np.random.default_rng(number), np.zeros(100, np.uint8), False
    for _ in range(8):
        assert hashes(session, inputs) == hashes(bare, inputs)
        flipped = random.choice(doors, 6, replace=False)
        for each in (session, bare):
            each.worlds.entity_states[each.worlds.rooms["entities"]["first"][0] + flipped] ^= 1
        changed |= session.hash() != Session(levels).hash()
    assert changed


def test_a_door_that_has_moved_is_noticed():
    """Negative control: whether doors are as at the start is looked at."""
    levels = pack([block_with_doors()[0]])
    session, blind = Session(levels), Session(levels)
    frames = session.levels.laser_frames.copy()
    frames["has_door"] = False
    blind.levels = blind.levels._replace(laser_frames=frozen(frames))
    for each in (session, blind):
        each.play(bytes(600))
        each.worlds.entity_states[: len(levels.arrays.entities)][levels.arrays.entities["type"] == REGULAR_DOOR] ^= 1
    assert session.hash() == blind.hash()
    assert hashes(session, np.zeros(400, np.uint8)) != hashes(blind, np.zeros(400, np.uint8))
