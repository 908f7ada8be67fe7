"""Rocket turrets (physics 03, sections 8 and 20)."""

import numpy as np
import pytest

from nclone_env.game import CELEBRATING, DEAD
from nclone_env.level.build import build_level
from nclone_env.sim.entities.rocket_turret import DIRECTION_X, FLYING, IDLE, SPEEDS, WARNING
from nclone_env.sim.state import NO_CELL

from ..shooting import ShootingRange

FIRST, SECOND, BACK = (700.0, 300.0), (700.0, 500.0), (100.0, 420.0)


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
    assert turret.state == WARNING
    turret.until(15, FIRST)
    assert (turret.state, turret.mover["cell"]) == (WARNING + 14, NO_CELL)
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
    assert (turret.state, place(turret), turret.mover["cell"]) == (IDLE, (300.0, 300.0), NO_CELL)
    turret.until(351, BACK)
    assert turret.state == WARNING


def test_it_kills_and_explodes():
    turret = rocket()
    turret.until(300, (300.0 + 60.0, 480.0))
    dead = rocket()
    frame = next(frame for frame in range(1, 400) if dead.frame(FIRST) == DEAD)
    flown = 10.0 + float(np.sum(SPEEDS)) + SPEEDS[24] * (frame - 16 - 24)
    assert 400.0 < flown < 400.0 + SPEEDS[24]
    assert (dead.state, dead.mover["cell"]) == (IDLE, NO_CELL)


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
    assert won.state == IDLE


@pytest.mark.parametrize(("closed", "explodes"), [(0, False), (1, True)])
def test_open_doors_let_it_through_and_closed_ones_do_not(closed, explodes):
    turret = rocket("trap_door 60 50", "trap_door_switch 20 80")
    states = turret.session.worlds.entity_states
    turret.until(40, FIRST)
    states[0, 0] = closed
    while turret.mover["x"] < 358.0:
        turret.until(turret.frames + 1, FIRST)
    turret.until(turret.frames + 2, FIRST)
    assert states[0, 1] == (IDLE if explodes else FLYING + 24)
    assert (turret.mover["x"] > 360.0) == (not explodes)
