"""Laser turrets (physics 03, sections 6 and 20): the kind, the places of surface lasers, beams that kill."""

import math

import numpy as np
import pytest

from nclone_env.game import DEAD
from nclone_env.level.build import build_level
from nclone_env.sim.entities.laser.motion import (
    _INSIDE,
    _OUTSIDE,
    BEAM_ANGLE,
    CLOCKWISE,
    COUNTERCLOCKWISE,
    FRAMES_LEFT,
    NORMAL_ANGLE,
    SPINNER,
)
from nclone_env.sim.entities.laser.turret import may_hit
from nclone_env.sim.sight import is_beside
from nclone_env.sim.state import NINJA_RECORD, world_at
from nclone_env.sim.trigonometry import coarse_sine

from ....naive.geometry import TileWorld
from ....naive.laser import NaiveSurfaceLaser
from ....shared import each_value
from ...shooting import ShootingRange

FAR_AWAY = (900.0, 500.0)
HALF_PI = np.pi / 2
BLOCK = {(21, 11): 1}  # spans 504 to 528 and 264 to 288


def laser(x, y, orientation=0, mode=0, *, tiles=None, entities=()):
    return ShootingRange(build_level(*entities, f"laser_turret {x // 6} {y // 6} {orientation} {mode}", tiles=tiles))


@pytest.mark.parametrize(
    ("frame", "x", "y", "angle"),
    [
        (1, 517.0, 258.1, -HALF_PI),
        (12, 528.0, 258.1, -HALF_PI),
        (13, 528.325798, 258.109002, -1.515548),
        (30, 532.946959, 260.784786, -0.576331),
        (41, 533.9, 264.724467, 0.0),
        (100, 520.483663, 293.9, HALF_PI),
        (200, 507.100073, 258.1, -HALF_PI),
    ],
)
def test_round_a_block(frame, x, y, angle):
    """The values of the specification have six decimals."""
    mover = laser(516, 264, 6, tiles=BLOCK).until(frame, FAR_AWAY)
    assert (mover["x"], mover["y"], mover[NORMAL_ANGLE]) == pytest.approx((x, y, angle), abs=5.1e-7)


def test_a_surface_laser_is_placed_above_its_surface():
    turret = laser(516, 264, 6, tiles=BLOCK)
    assert turret.state == CLOCKWISE
    assert (turret.mover["x"], turret.mover["y"]) == (516.0, 258.1)
    assert turret.mover[NORMAL_ANGLE] == turret.mover[BEAM_ANGLE] == -HALF_PI
    assert turret.mover["cell"] == -1


SHAPES = {
    "block": (BLOCK, (516, 264)),
    "two blocks": (BLOCK | {(22, 11): 1}, (516, 264)),
    "steps": (BLOCK | {(22, 11): 1, (22, 12): 1, (23, 12): 1}, (516, 264)),
    "slopes": ({(21, 11): 6, (22, 11): 7}, (516, 276)),
    "bump": (BLOCK | {(20, 11): 6, (22, 11): 7}, (516, 264)),
    "curves": ({(21, 11): 14, (22, 11): 15, (21, 12): 17, (22, 12): 16}, (528, 264)),
    "hollow": (BLOCK | {(20, 11): 10, (22, 11): 11}, (516, 264)),
    "halves": ({(21, 11): 4, (22, 11): 2}, (516, 276)),
    "tunnel": (BLOCK | {(21, 10): 2}, (516, 288)),
    "ball": ({(21, 11): 10, (22, 11): 11, (21, 12): 13, (22, 12): 12}, (528, 264)),
    "ball on a floor": ({(21, 11): 10, (22, 11): 11} | {(column, 12): 1 for column in range(18, 27)}, (480, 288)),
    "pocket": ({(4, 11): 5, (5, 11): 1} | {(column, 12): 1 for column in (4, 5)}, (114, 288)),
}


@pytest.mark.parametrize(("shape", "mode"), each_value([*SHAPES], [0, 1]))
def test_the_path_is_that_of_ten_single_steps(shape, mode):
    """Whole frames in closed form equal ten substeps but for rounding."""
    tiles, (x, y) = SHAPES[shape]
    turret = laser(x, y, 6, mode, tiles=tiles)
    assert turret.state != SPINNER
    level = turret.session.levels.tiles[0]
    mover = turret.mover
    place = float(mover["x"]), float(mover["y"]), float(mover[NORMAL_ANGLE])
    naive = NaiveSurfaceLaser(TileWorld(level[1:24, 1:43]), *place, 1 if turret.state == CLOCKWISE else -1)
    skipped = 0
    for frame in range(1, 500):
        mover = turret.until(frame, FAR_AWAY)
        skipped += int(mover[FRAMES_LEFT] > 0)
        x, y, angle = naive.frame()
        turn = (mover[NORMAL_ANGLE] - angle + np.pi) % (2 * np.pi) - np.pi
        assert (mover["x"], mover["y"], turn) == pytest.approx((x, y, 0.0), abs=1e-6), frame
    assert skipped > 150


def test_a_frames_turn_is_that_of_ten_steps():
    for (turn, sine, cosine), radius in ((_OUTSIDE, 24 + 5.9), (_INSIDE, 24 - 5.9)):
        angle = 10 * math.atan(0.1 / radius)
        assert (turn, sine, cosine) == pytest.approx((angle, math.sin(angle), math.cos(angle)), rel=1e-15)


def test_in_a_pocket_it_bounces():
    """Twelve pixels wide, the pocket leaves a tenth to each side; a turn takes a step, so all repeats in six steps."""
    tiles, (x, y) = SHAPES["pocket"]
    turret = laser(x, y, 6, tiles=tiles)
    places = [turret.until(frame, FAR_AWAY)["x"] for frame in range(1, 100)]
    assert places[3:] == pytest.approx(places[:-3], abs=1e-9)
    assert sorted(set(np.round(places, 6))) == [113.9, 114.0, 114.1]


def test_where_every_step_turns_no_motion_is_known():
    """As near to the wall as to floor and ceiling, it turns without a step on any of them."""
    turret = laser(984, 390, tiles={(40, 15): 1, (41, 15): 1, (40, 16): 4, (41, 16): 1})
    for frame in range(1, 20):
        mover = turret.until(frame, FAR_AWAY)
        assert (mover["x"], mover["y"], mover[FRAMES_LEFT]) == (978.1, 390.0, 0)


def test_the_other_sense():
    turret = laser(516, 264, 6, mode=1, tiles=BLOCK)
    assert turret.state == COUNTERCLOCKWISE
    assert turret.until(1, FAR_AWAY)["x"] == pytest.approx(515.0)  # ten steps of 0.1
    assert turret.until(41, FAR_AWAY)["x"] == pytest.approx(498.1)


def test_between_walls():
    """The step that would meet a wall does not take place: the laser turns round within the frame."""
    tiles = {(column, 12): 1 for column in (19, 20, 21)} | {(19, 11): 1, (21, 11): 1}
    turret = laser(492, 288, 6, tiles=tiles)
    places = [turret.until(frame, FAR_AWAY)["x"] for frame in range(1, 20)]
    expected = [493.0, 494, 495, 496, 497, 498, *(497.1 - k for k in range(12)), 486.8]
    assert places == pytest.approx(expected, abs=1e-9)
    assert turret.mover["y"] == 282.1
    assert turret.state == CLOCKWISE


@pytest.mark.parametrize(
    ("x", "tiles", "kind"),
    [
        (300, {}, SPINNER),
        (504, BLOCK, CLOCKWISE),  # on the face
        (510, BLOCK, CLOCKWISE),  # inside
        (498, BLOCK, CLOCKWISE),  # 6 in front
        (492, BLOCK, SPINNER),  # 12 in front
    ],
)
def test_the_kind_depends_on_the_surroundings(x, tiles, kind):
    assert laser(x, 276, 4, tiles=tiles).state == kind


def test_of_several_surfaces_the_one_it_faces_is_taken():
    above, beside = laser(504, 264, 6, tiles=BLOCK), laser(504, 264, 4, tiles=BLOCK)
    assert (above.mover["x"], above.mover["y"]) == (504.0, 258.1)
    assert (beside.mover["x"], beside.mover["y"]) == (498.1, 264.0)


def test_inside_a_wall_it_comes_out():
    turret = laser(510, 276, 4, tiles=BLOCK)
    assert (turret.mover["x"], turret.mover["y"]) == (498.1, 276.0)


def test_on_a_closed_door_it_takes_its_facing_and_stays():
    turret = laser(300, 300, 4, entities=["regular_door 50 50"])
    mover = world_at(turret.session.worlds, 0).movers[0]
    assert (mover["x"], mover["y"]) == (294.1, 300.0)
    turret.until(4, FAR_AWAY)
    assert (mover["x"], mover["y"]) == pytest.approx((294.1, 300.0))


def test_an_open_door_is_no_surface():
    turret = laser(300, 300, 4, entities=["trap_door 50 50", "trap_door_switch 20 80"])
    assert world_at(turret.session.worlds, 0).entity_states[1] == SPINNER


def test_on_a_curve_the_beam_follows():
    turret = laser(504, 276, 4, tiles={(21, 11): 12})  # a quarter moon, solid at the bottom right
    seen = set()
    for frame in range(1, 40):
        mover = turret.until(frame, FAR_AWAY)
        seen.add(round(float(mover[NORMAL_ANGLE]), 2))
        turn = float(mover[BEAM_ANGLE] - mover[NORMAL_ANGLE])
        assert abs(np.arctan2(np.sin(turn), np.cos(turn))) < 0.2
    assert len(seen) > 10


def test_a_spinner_turns_with_its_sense_after_it_shot():
    angle = 0.010471975
    for mode, sense in ((0, 1), (1, -1), (2, 1)):
        turret = laser(300, 300, 0, mode)
        assert turret.mover[BEAM_ANGLE] == 0.0
        assert turret.until(1, FAR_AWAY)[BEAM_ANGLE] == sense * angle
        assert turret.until(300, FAR_AWAY)[BEAM_ANGLE] == pytest.approx(sense * 300 * angle, abs=1e-11)


def test_a_spinner_kills_in_the_frame_that_begins_in_its_beam():
    turret = laser(300, 300)
    assert turret.frame((400.0, 310.0)) != DEAD  # the edge of the beam is not in it
    inside = laser(300, 300)
    assert inside.frame((400.0, 309.99)) == DEAD
    behind = laser(300, 300)
    assert behind.frame((289.9, 300.0)) != DEAD
    late = laser(300, 300, 2)
    # pointing down, it turns away from the right: the angle before the turn counts
    assert late.frame((309.99, 500.0)) == DEAD


def test_no_beam_that_hits_is_left_out():
    random, missed = np.random.default_rng(0), 0
    for angle in random.uniform(-np.pi, np.pi, 4000).tolist():
        ninja = np.zeros(1, NINJA_RECORD)[0]
        along, aside = random.uniform(0.0, 1200.0), random.uniform(-10.0, 10.0)
        ninja["x"] = along * math.cos(angle) - aside * math.sin(angle)
        ninja["y"] = along * math.sin(angle) + aside * math.cos(angle)
        assert may_hit(ninja, 0.0, 0.0, angle)
        missed += not is_beside(ninja, 0.0, 0.0, coarse_sine(HALF_PI - abs(angle)), coarse_sine(angle), 0.0)
    assert missed > 10, "negative control: coarse directions without their error"
    assert may_hit(ninja, 0.0, 0.0, 4.0 * np.pi)


def test_a_beam_that_passes_far_away_is():
    ninja = np.zeros(1, NINJA_RECORD)[0]
    ninja["x"], ninja["y"] = 300.0, 12.0
    assert not may_hit(ninja, 0.0, 0.0, 0.0)
    assert not may_hit(ninja, 400.0, 0.0, -HALF_PI)


def test_beams_end_at_walls():
    assert laser(480, 276, tiles=BLOCK).frame((560.0, 276.0)) != DEAD
    assert laser(480, 276).frame((560.0, 276.0)) == DEAD


def test_a_surface_laser_kills():
    assert laser(516, 264, 6, tiles=BLOCK).frame((516.0, 100.0)) == DEAD
