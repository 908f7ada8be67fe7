"""Gauss and rocket turrets (physics 03, sections 8, 9 and 20)."""

from itertools import pairwise

import numpy as np
import pytest

from nclone_env.game import CELEBRATING, DEAD
from nclone_env.level.build import build_level
from nclone_env.sim.entities.turrets import (
    AIM_X,
    AIM_Y,
    AIMING,
    DIRECTION_X,
    FLYING,
    IDLE,
    RECOVERING,
    ROCKET_IDLE,
    ROCKET_WARNING,
    SPEEDS,
    WARNING,
)
from nclone_env.sim.state import NO_CELL

from ..shooting import ShootingRange

NINJA = (500.0, 300.0)
BLOCK = {(16, 12): 1}  # between the turret and the ninja

FIRST, SECOND, BACK = (700.0, 300.0), (700.0, 500.0), (100.0, 420.0)


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


def rocket(*entities, tiles=None):
    return ShootingRange(build_level("rocket_turret 50 50", *entities, tiles=tiles))


def place(turret):
    return float(turret.mover["x"]), float(turret.mover["y"])


def test_speeds():
    assert (SPEEDS[1], SPEEDS[4], SPEEDS[23]) == (0.047360099411849356, 0.20891062534472057, 2.391091065417205)
    assert SPEEDS[24] == 2.2857142857142856
    assert len(SPEEDS) == 25


def test_notice_launch_and_flight():
    turret = rocket()
    turret.until(1, FIRST)
    assert turret.state == ROCKET_WARNING
    turret.until(15, FIRST)
    assert (turret.state, turret.mover["cell"]) == (ROCKET_WARNING + 14, NO_CELL)
    turret.until(16, FIRST)
    assert (turret.state, place(turret), turret.mover["cell"]) == (FLYING, (300.0, 300.0), 12 * 25 + 12)
    for frame, x in ((17, 300.04736009941183), (20, 300.50570275709157), (39, 322.2350604650589)):
        turret.until(frame, FIRST)
        assert (turret.state, *place(turret)) == (FLYING + frame - 16, x, 300.0)
    turret.until(40, FIRST)  # the ninja jumps to its second place in this frame, behind the rocket's thinking
    assert (turret.state, *place(turret)) == (FLYING + 24, 324.52077475077317, 300.0)
    for frame, x, y in (
        (45, 335.9190704003983, 300.68475271303856),
        (60, 368.8604283394082, 309.87636927405873),
        (79, 408.0725108427616, 328.4929537487519),
    ):
        turret.until(frame, SECOND)
        assert (turret.state, *place(turret)) == (FLYING + 24, x, y)


def test_it_flies_straight_on_when_the_ninja_is_behind_and_explodes_at_the_wall():
    turret = rocket()
    turret.until(40, FIRST)
    turret.until(349, BACK)
    assert turret.mover["x"] == pytest.approx(1033.09 - SPEEDS[24], abs=0.01)
    assert turret.mover["y"] == 300.0
    turret.until(350, BACK)
    assert (turret.state, place(turret), turret.mover["cell"]) == (ROCKET_IDLE, (300.0, 300.0), NO_CELL)
    turret.until(351, BACK)
    assert turret.state == ROCKET_WARNING


def test_it_kills_and_explodes():
    turret = rocket()
    turret.until(300, (300.0 + 60.0, 480.0))
    dead = rocket()
    frame = next(frame for frame in range(1, 400) if dead.frame(FIRST) == DEAD)
    flown = 10.0 + float(np.sum(SPEEDS)) + SPEEDS[24] * (frame - 16 - 24)
    assert 400.0 < flown < 400.0 + SPEEDS[24]
    assert (dead.state, dead.mover["cell"]) == (ROCKET_IDLE, NO_CELL)


def test_who_stands_on_the_turret_dies_at_the_launch():
    turret = rocket()
    assert next(frame for frame in range(1, 60) if turret.frame((305.0, 300.0)) == DEAD) == 16


def test_the_warning_does_not_need_sight_but_someone_to_aim_at():
    turret = rocket(tiles={(16, 15): 1})
    turret.until(1, FIRST)
    turret.until(16, (460.0, 427.0))
    assert turret.state == FLYING
    away = 160.0 / np.hypot(160.0, 127.0)
    assert float(turret.mover[DIRECTION_X]) == pytest.approx(away)
    won = rocket()
    won.until(3, FIRST)
    won.frame(FIRST, state=CELEBRATING)
    assert won.state == ROCKET_IDLE


@pytest.mark.parametrize(("closed", "explodes"), [(0, False), (1, True)])
def test_open_doors_let_it_through_and_closed_ones_do_not(closed, explodes):
    turret = rocket("trap_door 60 50", "trap_door_switch 20 80")
    states = turret.session[0].entity_states
    turret.until(40, FIRST)
    states[0] = closed
    while turret.mover["x"] < 358.0:
        turret.until(turret.frames + 1, FIRST)
    turret.until(turret.frames + 2, FIRST)
    assert states[1] == (ROCKET_IDLE if explodes else FLYING + 24)
    assert (turret.mover["x"] > 360.0) == (not explodes)
