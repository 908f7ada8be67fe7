"""Death balls whose centre lies on a segment (physics 02, section 6.20, step C): they steer and do not move."""

import pytest

from .levels import empty_level
from .shooting import ShootingRange

BALL, LOCKED_DOOR = 25, 6
BLOCK = {(21, 11): 1}  # spans 504 to 528 and 264 to 288
NINJA = (300.0, 276.0)


def ball(x, y, records=(), tiles=None) -> ShootingRange:
    return ShootingRange(empty_level([*records, (BALL, x // 6, y // 6, 0, 0)], BLOCK if tiles is None else tiles))


@pytest.mark.parametrize("place", [(504, 276), (516, 264), (504, 264), (528, 288)])
def test_a_ball_on_a_wall_is_stuck_for_good(place):
    known, fresh = ball(*place), ball(*place)
    for frame in range(60):
        known.frame(NINJA)
        fresh.mover["timer"] = 0  # it must find out again
        fresh.frame(NINJA)
        assert known.mover == fresh.mover, frame
    assert (known.mover["x"], known.mover["y"]) == place
    assert known.mover["timer"] == 1
    assert known.mover["ux"] < -0.8


def test_beside_a_wall_it_is_not():
    beside = ball(498, 276)
    beside.until(60, NINJA)
    assert beside.mover["timer"] == 0
    assert beside.mover["x"] < 480.0


def test_near_a_door_it_might_come_free():
    """The segment of the door, 24 pixels around (516, 264), lies on the face of the block."""
    door = [(LOCKED_DOOR, 86, 44, 2, 0), (7, 20, 20, 0, 0)]
    near = ball(516, 264, door)
    near.until(3, NINJA)
    mover = near.session.worlds.movers[0, 0]
    assert (mover["x"], mover["y"]) == (516.0, 264.0)
    assert mover["timer"] == 0
