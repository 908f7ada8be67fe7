"""Paths with gravity lead where the ninja can jump, and nowhere else."""

import numpy as np
import pytest

from nclone_env.game import FALLING, JUMPING
from nclone_env.level.build import build_level, build_room, hall_tiles
from nclone_env.level.level_set import pack
from nclone_env.level.routes.gravity import RISES, falling_lengths, footing_of, rise_of
from nclone_env.level.routes.guide import make_guide
from nclone_env.level.routes.lattice import FAR, LATTICE, path_lengths, seeds_of
from nclone_env.sim.session import Session

NO_ENTITIES = pack([build_room("exit 90 58", "exit_switch 20 58")]).entities_of(0)[:0]
NO_STEPS = np.zeros(LATTICE, np.uint8)


def lengths_of(costs, x, y, reach=6.0):
    """Return (path lengths without gravity, those with it)."""
    plain, seeds = path_lengths(costs, x, y, reach), seeds_of(costs, x, y, reach, 0.0)
    return plain, falling_lengths(plain, costs, footing_of(costs, NO_ENTITIES), seeds, NO_STEPS)


def cave(top=10, bottom=90, left=20, right=150):
    """Return the costs of an empty hall, whose walls are the blocked nodes around it."""
    costs = np.zeros(LATTICE, np.float32)
    costs[top:bottom, left:right] = 1.0
    return costs


@pytest.mark.parametrize("seed", range(5))
def test_gravity_shortens_no_path_and_height_lengthens_none(seed):
    rng = np.random.default_rng(seed)
    costs = cave()
    costs[10:90, 20:150] = np.repeat(np.repeat(rng.choice([0.0, 1.0, 1.0, 4.0], (20, 26)), 4, 0), 5, 1)
    costs[48:52, 80:85] = 1.0
    plain, falls = lengths_of(costs, 480.0 + 12.0, 300.0)
    assert falls.shape == (RISES, *LATTICE)
    assert (falls >= plain * 0.999).all()
    assert (np.diff(falls, axis=0) <= 0).all()
    assert (falls < FAR).any()
    assert (falls > plain + 1.0).any()  # control: gravity counts


def test_a_place_high_above_the_floor_is_out_of_reach():
    _, falls = lengths_of(cave(), 480.0, 120.0)  # 70 nodes above the floor, far from the walls
    assert (
        falls[-1, 89, 80] > path_lengths(cave(), 480.0, 120.0, 6.0)[89, 80] + 300.0
    )  # by a wall and the ceiling, at least
    low = 6.0 * (89 - 12)
    _, falls = lengths_of(cave(), 480.0, low)  # a jump of 12 nodes
    assert falls[-1, 89, 80] == pytest.approx(72.0, abs=7.0)
    assert falls[0, 85, 80] == pytest.approx(96.0, abs=7.0)  # a falling ninja must land first: 48 otherwise


def test_one_wall_is_a_way_up_unless_it_is_mined():
    shaft = cave(left=70, right=90)
    _, falls = lengths_of(shaft, 6.0 * 80, 6.0 * 12)
    assert falls[-1, 89, 80] < FAR
    mined = shaft.copy()
    mined[20:80, 70] = mined[20:80, 89] = 4.0  # nodes at a wall touch a mine
    _, falls = lengths_of(mined, 6.0 * 80, 6.0 * 12)
    assert falls[-1, 89, 80] >= FAR
    assert falls[-1, 15, 70] < FAR


def test_a_gap_as_wide_as_a_jump_is_crossed():
    def islands(gap):
        costs = cave()
        costs[60:, 20 : 85 - gap // 2] = 0.0
        costs[60:, 85 + gap // 2 : 150] = 0.0
        costs[62:90, 20:150] = np.where(costs[62:90, 20:150] > 0.0, 4.0, 0.0)  # what falls in meets mines
        return lengths_of(costs, 6.0 * 140, 6.0 * 59)[1][-1, 59, 30]

    near, far = islands(40), islands(120)
    assert near == pytest.approx(6.0 * 110, abs=60.0)
    assert far > near + 30.0


@pytest.mark.parametrize(
    ("changes", "least", "most"),
    [
        ({"airborne": 0}, 108, 108),
        ({"airborne": 1, "vy": -2.0, "state": JUMPING}, 77, 108),
        ({"airborne": 1, "vy": -2.0, "state": FALLING}, 24, 30),
        ({"airborne": 1, "vy": 1.0, "state": FALLING}, 0, 0),
        ({"airborne": 1, "vy": 1.0, "state": FALLING, "walled": 1}, 108, 108),
    ],
)
def test_the_height_that_is_left(changes, least, most):
    ninja = Session("first-steps/01-walk").worlds.ninjas[0]
    for name, value in changes.items():
        ninja[name] = value
    pixels = 108 / (RISES - 1)
    assert least - pixels < rise_of(ninja) * pixels <= most


def test_pads_and_bounce_blocks_are_footing():
    costs = cave()
    entities = pack([build_level("launch_pad 80 60 6", "bounce_block 120 40", tiles=hall_tiles((2, 40), (5, 20)))])
    footing = footing_of(costs, entities.entities_of(0))
    assert footing[60, 80] == footing[42, 120] == footing[89, 30] == footing[50, 20] > footing[50, 60] == 0


def test_a_careful_guide_has_the_landmarks_of_a_plain_one_and_longer_paths():
    levels = pack([build_room("exit 90 58", "exit_switch 20 58")])
    plain, careful = make_guide(levels), make_guide(levels, careful=True)
    assert (plain.landmarks == careful.landmarks).all()
    assert (plain.fields == careful.fields).all()
    assert plain.falls.shape[0] == 0
    assert careful.falls.shape == (2, RISES, *LATTICE)
    assert (careful.falls >= careful.fields[:, None] * 0.999).all()
