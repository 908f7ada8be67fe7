"""Beams: the drawing of bands, and that they begin, end and kill where the picture shows it."""

import math

import numpy as np
import pytest

from nclone_env.game import DYING
from nclone_env.level.build import build_level
from nclone_env.render.compose import BEAM_GREYS, draw_band, draw_beams, write_global_view, write_player_frame
from nclone_env.render.picture import world_picture
from nclone_env.render.shapes import PAINTS
from nclone_env.sim import NO_BEAM, Session, beam_of, world_at
from nclone_env.sim.entities.turrets import AIM_X
from nclone_env.sim.sight import AIM, BEAM, ROCKET_TRAIL, SHOT_FIRED, SHOT_SHOWN

from .bands import exact_band
from .scenes import pictures_of

WALL = {(21, row): 1 for row in range(1, 24)}  # from x = 504 to 528
SCALE_X, SCALE_Y = 4.125, 4.6875  # world pixels per pixel of the global view
BEAM_PAINT, SOLID, BACKGROUND = PAINTS["beam"], PAINTS["solid"], PAINTS["background"]


class Scene:
    """A world in which the ninja stands where the test puts it."""

    def __init__(self, *entities, tiles=None, spawn=(100, 50)):
        self.session = Session(build_level(*entities, tiles=tiles, spawn=spawn))
        self.levels, self.worlds, self.ninja = self.session.levels, self.session.worlds, self.session.ninja

    def frame(self, x, y, state=0):
        self.ninja["x"], self.ninja["y"], self.ninja["vx"], self.ninja["vy"], self.ninja["state"] = x, y, 0, 0, state
        self.session.tick(0)
        return self.ninja["state"]

    def beam(self, slot=0):
        return beam_of(
            self.levels, self.worlds, 0, self.levels.entities[slot], world_at(self.worlds, 0).entity_states[slot]
        )

    def pictures(self):
        """Return the player frame, the global view and the picture for people."""
        frame, view = np.zeros((128, 128, 1), np.uint8), np.zeros((128, 256, 1), np.uint8)
        pictures = pictures_of(self.levels)
        write_player_frame(self.levels, self.worlds, 0, pictures, frame)
        write_global_view(self.levels, self.worlds, 0, pictures, view)
        return frame[..., 0], view[..., 0], world_picture(self.levels, self.worlds, 0)


def drawn_band(x, y, angle, length, width, shape=(60, 80)):
    out = np.zeros((*shape, 1), np.uint8)
    view = (0.0, 0.0, 1.0, 1.0)
    draw_band(x, y, math.cos(angle), math.sin(angle), length, width, (255,), view, out)
    return out[..., 0] / 255


@pytest.mark.parametrize("angle", np.linspace(-math.pi, math.pi, 17) + 0.01)
def test_a_band_covers_what_a_rectangle_does(angle):
    covered = drawn_band(40.3, 30.2, angle, 24.0, 3.0)
    exact = exact_band((60, 80), (40.3, 30.2), (math.cos(angle), math.sin(angle)), 24.0, 3.0)
    ends = np.hypot(*np.meshgrid(np.arange(80) - 39.8, np.arange(60) - 29.7)) < 3  # the ends are cut upright
    tip = (40.3 + 24 * math.cos(angle), 30.2 + 24 * math.sin(angle))
    ends |= np.hypot(*np.meshgrid(np.arange(80) + 0.5 - tip[0], np.arange(60) + 0.5 - tip[1])) < 3
    assert abs(covered - exact)[~ends].max() < 0.2
    assert covered.sum() == pytest.approx(72.0, rel=0.02)


def test_an_axis_parallel_band_is_exact():
    covered = drawn_band(10.0, 20.5, 0.0, 30.25, 3.0)
    expected = np.zeros((60, 80))
    expected[19:22, 10:40], expected[19:22, 40] = 1.0, 64 / 255
    np.testing.assert_allclose(covered, expected, atol=1e-9)
    np.testing.assert_array_equal(drawn_band(20.5, 10.0, math.pi / 2, 30.25, 3.0, (80, 60))[:, :].T, covered)


@pytest.mark.parametrize("angle", np.linspace(0, 2 * math.pi, 9) + 0.3)
def test_a_band_that_leaves_the_picture_is_cut(angle):
    batch = np.full((3, 30, 40, 1), 9, np.uint8)
    for x, y in ((20.0, 15.0), (-50.0, 15.0), (20.0, 90.0)):
        draw_band(x, y, math.cos(angle), math.sin(angle), 2000.0, 3.0, (200,), (0.0, 0.0, 1.0, 1.0), batch[1])
    assert (batch[[0, 2]] == 9).all()
    assert set(np.unique(batch[1])) <= set(range(9, 201))
    assert (batch[1] == 200).any()


def test_a_beam_ends_at_the_wall_in_every_picture():
    scene = Scene("laser_turret 50 50", tiles=WALL)
    scene.ninja["x"], scene.ninja["y"] = 480.0, 340.0
    assert scene.beam() == (BEAM, 300.0, 300.0, 1.0, 0.0, pytest.approx(204.0, abs=1e-9))
    frame, view, picture = scene.pictures()
    left, top = 480 - 64, 340 - 64
    row = frame[300 - top]
    assert (row[: 504 - left] == BEAM_PAINT.grey).all()
    assert (row[504 - left :][:24] == SOLID.grey).all()
    assert (frame[[297 - top, 302 - top], : 504 - left] == BACKGROUND.grey).all()
    assert (picture[300, 312:504] == BEAM_PAINT.colour).all()
    assert (picture[300, 507:525] == SOLID.colour).all()  # within the edge lines of the wall
    beam_row, last = int(300 / SCALE_Y), int(504 / SCALE_X) - 1
    assert (view[beam_row - 1 : beam_row + 1, 80 : last + 1] <= 121).all()  # half of it in each row
    layer = pictures_of(scene.levels).global_view.layers[0]
    np.testing.assert_array_equal(view[beam_row, last + 2 :], layer[beam_row, last + 2 :])


def test_the_view_shows_as_much_of_a_beam_as_its_width():
    scene = Scene("laser_turret 50 50", tiles=WALL)
    with_beam = np.full((128, 256, 1), 200, np.uint8)
    draw_beams(scene.levels, scene.worlds, 0, BEAM_GREYS, (0.0, 0.0, 1 / SCALE_X, 1 / SCALE_Y), with_beam)
    darkened = (200.0 - with_beam).sum() / (200 - BEAM_PAINT.grey)
    assert darkened * SCALE_X * SCALE_Y == pytest.approx(204 * 3, rel=0.02)


def test_a_closed_door_stops_a_beam_and_an_open_one_does_not():
    scene = Scene("regular_door 70 50", "laser_turret 50 50", tiles=WALL)
    assert scene.beam(1)[5] == pytest.approx(120.0)
    world_at(scene.worlds, 0).entity_states[0] = 1
    assert scene.beam(1)[5] == pytest.approx(204.0)


def test_a_laser_drone_shows_its_line_and_then_its_beam():
    scene = Scene("laser_drone 50 50 0 2")
    kinds = [scene.beam()[0]]
    for _ in range(130):
        scene.frame(500.0, 300.0)
        kinds.append(scene.beam()[0])
    assert kinds == [NO_BEAM] + [AIM] * 45 + [BEAM] * 80 + [NO_BEAM] * 5


@pytest.mark.parametrize("entity", ["laser_drone 50 50 0 2", "laser_turret 50 50 1", "laser_turret 86 44 6"])
def test_a_beam_kills_in_the_next_frame_exactly_if_it_is_drawn(entity):
    """The ninja is put 9.9, then 10.1 pixels beside the middle of the line."""
    block = {(column, row): 1 for column in range(20, 24) for row in (11, 12)}
    scene = Scene(entity, tiles=block if entity == "laser_turret 86 44 6" else None)
    seen = set()
    for _ in range(150):
        what, x, y, dx, dy, length = scene.beam()
        middle = (x + dx * length / 2, y + dy * length / 2) if what != NO_BEAM else (500.0, 300.0)
        seen.add(what)
        before = tuple(array.copy() for array in scene.worlds)
        for aside, kills in ((9.9, what == BEAM), (10.1, False)):
            for array, kept in zip(scene.worlds, before, strict=True):
                array[:] = kept
            died = scene.frame(middle[0] - dy * aside, middle[1] + dx * aside) in (6, DYING)
            assert died == kills
    assert BEAM in seen


def test_a_chaingun_shot_is_shown_for_a_step_of_the_agent():
    scene = Scene("chaingun_drone 50 50 0 2")
    shown = []
    for frame in range(1, 130):
        scene.frame(500.0, 300.0)
        if scene.beam()[0] != NO_BEAM:
            assert scene.beam()[0] == SHOT_FIRED
            shown.append(frame)
    assert shown == [first + k for first in range(62, 117, 9) for k in range(SHOT_SHOWN)]


def test_a_gauss_turret_shows_its_aim_and_its_shot():
    scene = Scene("gauss_turret 50 50")
    found = []
    for frame in range(1, 140):
        scene.frame(500.0, 300.0)
        what, *_, length = scene.beam()
        found.append((what, round(length)))
        if frame == 103:
            mover = world_at(scene.worlds, 0).movers[0]
            assert length == mover[AIM_X] - 300.0  # still on its way
    assert [what for what, _ in found] == [AIM] * 118 + [SHOT_FIRED] * SHOT_SHOWN + [NO_BEAM] * 11 + [AIM] * 6
    assert {length for _, length in found[103:122]} == {732}


def test_a_rocket_draws_a_trail_no_longer_than_its_way():
    scene = Scene("rocket_turret 50 50")
    for _ in range(16):
        scene.frame(700.0, 300.0)
        assert scene.beam()[0] in (NO_BEAM, ROCKET_TRAIL)
    assert scene.beam()[5] == 0.0
    for _ in range(40):
        scene.frame(700.0, 300.0)
        what, x, _, dx, dy, length = scene.beam()
        assert (what, dx, dy) == (ROCKET_TRAIL, -1.0, 0.0)
        assert length == min(12.0, x - 300.0)


def test_an_aim_at_the_turret_itself_draws_nothing_strange():
    scene = Scene("gauss_turret 50 50")
    scene.frame(500.0, 300.0)
    assert scene.beam() == (AIM, 300.0, 300.0, 1.0, 0.0, 0.0)
    frame, *_ = scene.pictures()
    assert frame.dtype == np.uint8
