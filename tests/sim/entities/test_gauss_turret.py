"""Gauss turrets (physics 03, sections 9 and 20)."""

from itertools import pairwise

import pytest

from nclone_env.game import CELEBRATING, DEAD
from nclone_env.level.build import build_level
from nclone_env.sim.entities.gauss_turret import AIM_X, AIM_Y, AIMING, IDLE, RECOVERING, WARNING

from ..shooting import ShootingRange

NINJA = (500.0, 300.0)
BLOCK = {(16, 12): 1}  # between the turret and the ninja


def gauss(tiles=None):
    return ShootingRange(build_level("gauss_turret 50 50", tiles=tiles))


def test_the_zones_and_the_shot_at_a_ninja_that_stands_still():
    turret = gauss()
    states = []
    for _ in range(118):
        assert turret.frame(NINJA) != DEAD
        states.append(turret.state)
    assert states[0] == AIMING  # seen in frame 1, no aiming yet
    gained = [later - earlier for earlier, later in pairwise(states[:103])]
    # twice the time of zone 0 from frame 2, zone 1 from 39, zone 2 from 74, zone 3 from 91
    assert gained == [0] * 37 + [1] * 35 + [3] * 17 + [7] * 13
    assert states[103] == WARNING
    assert float(turret.mover[AIM_X]) == 485.5090575375572
    assert float(turret.mover[AIM_Y]) == 300.0
    assert states[117] == WARNING + 14
    assert turret.frame(NINJA) == DEAD
    assert turret.state == RECOVERING


def test_a_shot_misses_a_ninja_that_steps_aside_and_the_aim_is_kept():
    turret = gauss()
    turret.until(118, NINJA)
    aim = float(turret.mover[AIM_X])
    turret.frame((500.0, 310.0))
    assert turret.ninja["state"] != DEAD
    turret.until(133, NINJA)
    assert turret.state == RECOVERING + 14
    turret.until(134, NINJA)
    assert turret.state == AIMING
    assert turret.mover[AIM_X] == aim
    turret.until(135, NINJA)
    assert turret.state == AIMING + 7  # at once in the innermost zone
    assert turret.mover[AIM_X] > aim


def test_the_shot_goes_on_to_the_first_wall():
    near, far, hidden = gauss(), gauss(), gauss({(30, 12): 1})
    for turret in (near, far, hidden):
        turret.until(118, NINJA)
    assert near.frame((320.0, 300.0)) == DEAD
    assert far.frame((1000.0, 300.0)) == DEAD
    assert hidden.frame((1000.0, 300.0)) != DEAD


def test_it_loses_and_forgets_a_ninja_out_of_sight():
    turret = gauss(BLOCK)
    turret.until(50, NINJA)
    assert turret.state == IDLE
    turret.until(70, (500.0, 500.0))
    assert turret.state == AIMING
    assert turret.mover[AIM_Y] > 300.0
    turret.until(71, NINJA)
    assert turret.state == IDLE
    assert (turret.mover[AIM_X], turret.mover[AIM_Y]) == (300.0, 300.0)


def test_the_warning_does_not_need_sight_and_recovery_ends_without():
    turret = gauss({(16, 14): 1})
    turret.until(104, NINJA)
    assert turret.state == WARNING
    turret.until(119, (500.0, 480.0))
    assert turret.state == RECOVERING
    turret.until(134, (300.0, 400.0))
    assert turret.state == AIMING
    behind = gauss({(16, 15): 1})
    behind.until(119, NINJA)
    behind.until(134, (460.0, 427.0))
    assert behind.state == IDLE
    assert (behind.mover[AIM_X], behind.mover[AIM_Y]) == (300.0, 300.0)


def test_it_leads_by_a_frame_and_a_half():
    turret = gauss()
    turret.until(1, NINJA, (2.0, 0.0))
    turret.until(2, NINJA, (2.0, 0.0))
    assert float(turret.mover[AIM_X]) == 300.0 + 0.019999999999999997 * 203.0


@pytest.mark.parametrize("place", [(300.0, 300.0), (309.9, 300.0)])
def test_a_ninja_on_the_turret_is_aimed_at_and_shot(place):
    turret = gauss()
    frames = next(frame for frame in range(1, 60) if turret.frame(place) == DEAD)
    assert frames == 1 + 26 + 15


def test_who_has_won_is_neither_seen_nor_shot():
    turret = gauss()
    for _ in range(5):
        turret.frame(NINJA, state=CELEBRATING)
    assert turret.state == IDLE
