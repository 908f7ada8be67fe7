"""Death balls whose centre lies on a segment (physics 02, section 6.20, step C): they steer and do not move."""

import pytest

from nclone_env.level.build import build_level
from nclone_env.sim.entities.death_ball import STUCK, VELOCITY_X

from ..shooting import ShootingRange

BLOCK = {(21, 11): 1}  # spans 504 to 528 and 264 to 288
NINJA = (300.0, 276.0)


def ball(x, y, *entities) -> ShootingRange:
    return ShootingRange(build_level(*entities, f"death_ball {x // 6} {y // 6}", tiles=BLOCK))


@pytest.mark.parametrize("place", [(504, 276), (516, 264), (504, 264), (528, 288)])
def test_a_ball_on_a_wall_is_stuck_for_good(place):
    known, fresh = ball(*place), ball(*place)
    for frame in range(60):
        known.frame(NINJA)
        fresh.mover[STUCK] = 0  # it must find out again
        fresh.frame(NINJA)
        assert known.mover == fresh.mover, frame
    assert (known.mover["x"], known.mover["y"]) == place
    assert known.mover[STUCK] == 1
    assert known.mover[VELOCITY_X] < -0.8


def test_beside_a_wall_it_is_not():
    beside = ball(498, 276)
    beside.until(60, NINJA)
    assert beside.mover[STUCK] == 0
    assert beside.mover["x"] < 480.0


def test_near_a_door_it_might_come_free():
    """The segment of the door, 24 pixels around (516, 264), lies on the face of the block."""
    near = ball(516, 264, "locked_door 86 44 2", "locked_door_switch 20 20")
    near.until(3, NINJA)
    mover = near.session.worlds.movers[0, 0]
    assert (mover["x"], mover["y"]) == (516.0, 264.0)
    assert mover[STUCK] == 0
