"""Thresholds of the collision that random play hardly ever meets (physics 01, sections 8.2 and 9)."""

import numpy as np
import pytest

from nclone_env.constants import CELEBRATING, DEAD, DYING, FALL_GRAVITY, JUMP_GRAVITY, JUMPING, SLIDING
from nclone_env.sim.ninja import CEILINGS, CONTACT_SLOTS, FLOORS, add_contact, kill
from nclone_env.sim.ninja_move import hit, mend_corner, unit_or
from nclone_env.sim.ninja_think import slide
from nclone_env.sim.state import NINJA_RECORD

NUDGE = 2.0**-47


@pytest.fixture
def ninja() -> np.record:
    return np.zeros(1, NINJA_RECORD)[0]


@pytest.mark.parametrize(
    ("dy", "kind"),
    [(-1.0, FLOORS), (-0.00011, FLOORS), (-0.0001, CEILINGS), (-1e-9, CEILINGS), (0.0, CEILINGS), (1.0, CEILINGS)],
)
def test_vertical_walls_count_as_ceilings(dy, kind):
    contacts = np.zeros(CONTACT_SLOTS)
    add_contact(contacts, 0.6, 0.8, dy)
    add_contact(contacts, 0.1, 0.2, dy)
    assert contacts[kind : kind + 3].tolist() == [2.0, 0.6 + 0.1, 0.8 + 0.2]
    assert np.count_nonzero(contacts) == 3


@pytest.mark.parametrize(
    ("x", "dx", "mended"),
    [
        (100.0, 0.00000010001, 0.00000010001),
        (100.0, 0.0000001, 0.0),
        (100.0, -0.0000001, 0.0),
        (100.0, -3.0, -3.0),
        (float.fromhex("0x1.941886676016dp+5"), 0.0, -NUDGE),
        (float.fromhex("0x1.89dbcb3e2387dp+5"), 1e-8, -NUDGE),
        (float.fromhex("0x1.893a7123a903bp+5"), -1e-8, NUDGE),
        (float.fromhex("0x1.893a7123a903bp+5"), 2e-7, 2e-7),
        (float.fromhex("0x1.893a7123a903cp+5"), 0.0, 0.0),
    ],
)
def test_tiny_offsets_vanish_except_at_three_places(x, dx, mended):
    assert mend_corner(x, dx) == mended


def test_a_vanishing_normal_falls_back():
    assert unit_or(0.0, 0.0, -1.0) == (0.0, -1.0)
    assert unit_or(3.0, 4.0, 1.0) == (0.6, 0.8)


@pytest.mark.parametrize(
    ("normal", "speed", "dies"),
    [
        ((0.0, -1.0), (0.0, 6.0 - 4.0 / 3.0), False),
        ((0.0, -1.0), (0.0, np.nextafter(6.0 - 4.0 / 3.0, 9.0)), True),
        ((1.0, 0.0), (-6.0, 0.0), False),
        ((1.0, 0.0), (np.nextafter(-6.0, -9.0), 0.0), True),
        ((1.0, 0.0), (9.0, 0.0), False),
        ((0.0, 1.0), (0.0, -4.7), True),
    ],
)
def test_the_deadly_impact(ninja, normal, speed, dies):
    hit(ninja, *normal, *speed)
    assert (ninja["state"] == DYING) == dies
    assert (ninja["vx"], ninja["vy"]) == (speed if dies else (0.0, 0.0))


def test_a_celebrating_ninja_survives_any_impact(ninja):
    ninja["state"] = CELEBRATING
    hit(ninja, 0.0, -1.0, 0.0, 99.0)
    assert (ninja["state"], ninja["vy"]) == (CELEBRATING, 0.0)


def test_the_impact_speed_comes_back_even_if_the_ninja_is_dying(ninja):
    ninja["state"] = DYING
    hit(ninja, 0.0, -1.0, 1.0, 9.0)
    assert (ninja["state"], ninja["vx"], ninja["vy"]) == (DYING, 1.0, 9.0)


@pytest.mark.parametrize("state", range(10))
def test_who_can_be_killed(ninja, state):
    ninja["state"], ninja["gravity"] = state, JUMP_GRAVITY
    kill(ninja)
    assert ninja["state"] == (DYING if state < DEAD else state)
    assert ninja["gravity"] == (FALL_GRAVITY if state == JUMPING else JUMP_GRAVITY)


@pytest.mark.parametrize(
    ("vx", "vy", "moves"),
    [(1e-163, -1e-163, False), (0.0, -5e-324, False), (1e-161, -1e-161, True), (0.5, -0.25, True)],
)
def test_uphill_a_speed_whose_square_vanishes_stays(ninja, vx, vy, moves):
    ninja["state"], ninja["floor_x"], ninja["floor_y"] = SLIDING, -0.6, -0.8
    ninja["vx"], ninja["vy"] = vx, vy
    slide(ninja, abs(vy * -0.6 - vx * -0.8), False)
    assert np.isfinite([ninja["vx"], ninja["vy"]]).all()
    assert ((ninja["vx"], ninja["vy"]) != (vx, vy)) is moves
