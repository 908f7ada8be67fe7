"""The levels of ``profiling/pictures/clips``: each entity acts in the frames worked out here by hand from the rules."""

import math
from functools import lru_cache

import numpy as np
import pytest

from nclone_env.game import DEAD
from nclone_env.render.picture import PALETTES, world_picture
from nclone_env.render.shapes import PAINTS
from nclone_env.sim.entities import blocks, turrets
from nclone_env.sim.entities.laser.motion import BEAM_ANGLE
from nclone_env.sim.session import Session
from profiling.pictures.entity_clips import FOLDER, clips, play, surroundings

CLIPS = clips()


@lru_cache(maxsize=len(CLIPS))
def played(name):
    """Return the world after each frame; row 0 is frame 1."""
    return Session(CLIPS[name].level).record(CLIPS[name].inputs)


def ninja_at(name, frame):
    """Return the ninja's centre at the end of a frame."""
    ninja = played(name).ninjas[frame - 1]
    return np.array([ninja["x"], ninja["y"]])


def mover_at(name, frame, number=0):
    return played(name).movers[frame - 1, number]


def changes(name, what=lambda state: state):
    """Return {frame: new value} of the first entity, frame 1 included."""
    values = [what(int(state)) for state in played(name).entity_states[:, 0]]
    return {frame: now for frame, (was, now) in enumerate(zip([None, *values], values), 1) if was != now}


def beside(name, frame, x, y, dx, dy):
    """Return how far the ninja was from a line when a frame began."""
    to_x, to_y = ninja_at(name, frame - 1) - (x, y)
    return abs(dx * to_y - dy * to_x) / math.hypot(dx, dy)


def test_every_level_has_its_clip():
    assert {path.stem for path in FOLDER.glob("*.toml")} - {"clips"} == set(CLIPS)


@pytest.mark.parametrize("name", CLIPS)
def test_the_ninja_dies_in_the_last_frame(name):
    states = played(name).ninjas["state"]
    assert states[-1] == DEAD
    assert (states[:-1] < DEAD).all()
    assert len(CLIPS[name].frames) == 6
    assert max(CLIPS[name].frames) == len(states)


# Sum of the radii of ninja and entity, and the mover that kills.
CONTACTS = {"chaser_drone": (17.5, 0), "evil_ninja": (16, 0), "floor_guard": (16, 0), "zap_drone": (17.5, 0)}
CONTACTS |= {"mini_drone": (14, 0), "death_ball": (15, 0), "shove_thwump": (18, 0)}


@pytest.mark.parametrize("name", CONTACTS)
def test_death_by_touch_comes_with_the_first_overlap(name):
    reach, number = CONTACTS[name]
    places = played(name).movers[["x", "y"]][:, number]
    ninjas = played(name).ninjas
    distance = np.hypot(places["x"] - ninjas["x"], places["y"] - ninjas["y"])
    begin = 230 if name in ("evil_ninja", "shove_thwump") else 0  # an evil ninja in wait and an idle block are touched
    assert distance[-1] < reach <= distance[begin:-1].min()


def test_laser_drone_burns_along_the_line_it_locked():
    """Seen in frame 1, it warns for 45 frames; the beam tests from the next frame on."""
    assert changes("laser_drone") == {1: 4, 46: 8}
    line = (300.0 + 48 + 2 / 7, 252.0, 540 - 348 - 2 / 7, 372 - 252.0)
    assert all(beside("laser_drone", frame, *line) >= 10 for frame in range(47, 86))
    assert beside("laser_drone", 86, *line) < 10


def test_chaingun_drone_fires_every_ninth_frame_and_sweeps():
    assert changes("chaingun_drone", lambda state: state & 12) == {1: 4, 53: 8}
    shots = changes("chaingun_drone", lambda state: state >> 5)
    assert shots == {1: 0, 62: 1, 71: 2, 80: 3, 89: 4}  # seen in 1: 1 + 61, then every 9
    x, y = 348 + 3 / 7, 252.0
    aim = ninja_at("chaingun_drone", 52) - (x, y)
    u = aim / np.linalg.norm(aim)
    ahead = np.array([u[1], -u[0]])  # the ninja runs to the right, which is on this side
    assert ahead @ (1.0, 0.0) > 0
    gaps = []
    for number, frame in enumerate((62, 71, 80, 89), 1):
        gaps.append(beside("chaingun_drone", frame, x, y, *(u + (number / 6 - 0.5) * 0.3 * ahead)))
    assert [gap < 10 for gap in gaps] == [False, False, False, True]


def test_gauss_turret_shoots_15_frames_after_its_aim_has_settled():
    phases = changes("gauss_turret", lambda state: (state >= 1) + (state >= 182) + (state >= 197))
    assert phases == {1: 1, 117: 2, 132: 3, 147: 1, 184: 2, 199: 3, 214: 1, 245: 2, 260: 3}
    gaps = []
    for frame in (132, 199, 260):
        aim = mover_at("gauss_turret", frame)
        gaps.append(beside("gauss_turret", frame, 360, 264, aim[turrets.AIM_X] - 360, aim[turrets.AIM_Y] - 264))
    assert [gap < 10 for gap in gaps] == [False, False, True]


def test_rocket_flies_straight_on_when_the_ninja_is_behind_and_bursts_at_the_ceiling():
    flying = changes("rocket_turret", lambda state: (state >= 1) + (state >= 16))
    assert flying == {1: 1, 16: 2, 228: 0, 229: 1, 244: 2, 315: 0}
    directions = played("rocket_turret").movers[turrets.DIRECTION_X][:, 0]
    assert len(set(directions[130:170])) > 30
    assert len(set(directions[179:227])) == 1
    rocket = mover_at("rocket_turret", 227)
    assert 216 < rocket["y"] < 216 + 16 / 7  # in its last frame before the ceiling
    last = mover_at("rocket_turret", 314)
    at_end = np.array([last["x"] + 16 / 7 * last[turrets.DIRECTION_X], last["y"] + 16 / 7 * last[turrets.DIRECTION_Y]])
    assert np.linalg.norm(ninja_at("rocket_turret", 315) - at_end) < 10
    assert np.linalg.norm(ninja_at("rocket_turret", 314) - (last["x"], last["y"])) >= 10


def test_spinner_kills_when_its_angle_comes_near():
    """At the test of a frame it has turned once less than there were frames."""
    for frame, kills in ((186, False), (187, True)):
        angle = -math.pi / 2 + 0.010471975 * (frame - 1)
        assert (beside("laser_spinner", frame, 528, 300, math.cos(angle), math.sin(angle)) < 10) == kills


def test_surface_laser_rounds_two_corners():
    """59 pixels to the first corner, a quarter turn, 48 down, and some way into the second quarter."""
    block_right, block_bottom = 576.0, 312.0
    corner = mover_at("laser_surface", 60)
    assert corner["x"] == pytest.approx(516 + 60)
    assert corner["y"] == 258.1
    side = mover_at("laser_surface", 100)
    assert side["x"] == block_right + 5.9
    assert side[blocks.PRESS_X] == 0.0
    end = mover_at("laser_surface", 147)
    assert math.hypot(end["x"] - block_right, end["y"] - block_bottom) == pytest.approx(5.9, abs=1e-9)
    for frame, kills in ((146, False), (147, True)):
        laser = mover_at("laser_surface", frame - 1)
        line = (laser["x"], laser["y"], math.cos(laser[BEAM_ANGLE]), math.sin(laser[BEAM_ANGLE]))
        assert (beside("laser_surface", frame, *line) < 10) == kills


def test_chaser_looks_down_at_the_node_above_the_ninja():
    assert changes("chaser_drone") == {1: 0, 211: 5}
    assert mover_at("chaser_drone", 210)["x"] == pytest.approx(516 + 210 * 8 / 7)
    fall = np.diff(played("chaser_drone").movers["y"][211:, 0])
    np.testing.assert_allclose(fall, 16 / 7, atol=1e-9)


def test_evil_ninja_repeats_the_way_from_a_frame_after_the_touch():
    assert changes("evil_ninja") == {1: 0, 49: 1, 50: 2, 169: 3}  # touched in 49, active 120 frames later
    for frame in (169, 200, 271):
        mover = mover_at("evil_ninja", frame)
        assert (mover["x"], mover["y"]) == tuple(ninja_at("evil_ninja", frame - 119))


def test_floor_guard_starts_at_a_ninja_at_its_height():
    assert changes("floor_guard") == {1: 0, 45: 2, 184: 0, 206: 1}
    for frame, wakes in ((44, False), (45, True), (205, False), (206, True)):
        assert (ninja_at("floor_guard", frame - 1)[1] >= 378 + 6 - 24) == wakes
    assert mover_at("floor_guard", 184)["x"] == 240 + 6.01
    assert mover_at("floor_guard", 50)["x"] == pytest.approx(720 - 5 * 24 / 7)


def test_thwump_falls_when_the_ninja_is_within_38_pixels():
    assert changes("thwump") == {1: 0, 76: 1}
    assert 540 - ninja_at("thwump", 75)[0] < 38 <= 540 - ninja_at("thwump", 74)[0]
    for frame, kills in ((118, False), (119, True)):
        block, ninja = mover_at("thwump", frame), ninja_at("thwump", frame)
        assert abs(ninja[0] - block["x"]) < 7
        assert (ninja[1] - block["y"] < 19.1) == kills  # touched, and then within 12 of the face


def test_shove_thwump_goes_when_let_go_and_comes_back():
    assert changes("shove_thwump", lambda state: state & 3) == {1: 0, 46: 1, 72: 2, 155: 3}
    way = played("shove_thwump").movers["x"][:, 0]
    np.testing.assert_array_equal(np.diff(way[70:154]), 4.0)
    np.testing.assert_array_equal(np.diff(way[154:]), -1.0)
    assert way.max() == 812.0  # its middle stops in the last half cell before the wall at 816


@pytest.mark.parametrize(("name", "way", "speed"), [("zap_drone", 24, 8 / 7), ("mini_drone", 48, 1.3)])
def test_drones_follow_the_floor_up_and_over_the_block(name, way, speed):
    turns = changes(name)
    assert list(turns.values()) == [0, 3, 0, 1, 0]
    assert list(turns)[1] == math.ceil(way / speed - 1e-9)  # at the last node before the block


def test_death_balls_drift_no_faster_than_their_limit():
    movers = played("death_ball").movers
    speeds = np.hypot(np.diff(movers["x"][:-1], axis=0), np.diff(movers["y"][:-1], axis=0))
    assert 0.8 < speeds.max() < 1.35


def test_a_spinner_is_drawn_up_to_the_wall_it_points_at():
    """In frame 150 it has turned by 150 times 0.010471975, to the right: the wall begins at x = 816."""
    for frame, levels, worlds in play(CLIPS["laser_spinner"]):
        if frame == 150:
            picture = world_picture(levels, worlds, 0)
    assert (picture[299:301, 541:815] == PAINTS["beam"].colour).all()
    assert (picture[299:301, 816:818] == PALETTES["light"].edge).all()
    assert (picture[299:301, 818:837] == PAINTS["solid"].colour).all()


def test_the_window_of_a_clip_shows_the_room_and_some_wall():
    rows, columns = surroundings(CLIPS["laser_spinner"].level)
    assert (rows.start, rows.stop) == (1.5 * 204, 1.5 * 396)
    assert (columns.start, columns.stop) == (1.5 * 228, 1.5 * 828)
