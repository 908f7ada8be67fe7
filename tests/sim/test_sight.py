"""Rays, sight and shots."""

import numpy as np
import pytest

from nclone_env.game import CELEBRATING, CELLS, DEAD, DYING
from nclone_env.jit import kernel
from nclone_env.level.build import build_level
from nclone_env.level.load import LevelSource
from nclone_env.sim.geometry import lesser
from nclone_env.sim.session import Session
from nclone_env.sim.sight import NOTHING, RAY_LENGTH, hides, ray, sees, shot, step_meets_wall, sweep_segment
from nclone_env.sim.state import world_at

from ..golden.synthetic import synthetic_map

LEFT, TOP, RIGHT, BOTTOM = 24.0, 24.0, 1032.0, 576.0  # the border of an empty level
DIAGONAL = 0.7071067811865476


class Beam:
    """A world to cast rays in."""

    def __init__(self, level: LevelSource):
        self.session = Session(level)
        self.states = self.session.worlds.entity_states
        self.ninja = self.session.ninja

    def ray(self, x, y, dx, dy):
        return ray(self.session.levels, self.states, 0, 0, float(x), float(y), float(dx), float(dy))[0]

    def sees(self, x, y):
        return sees(self.session.levels, self.session.worlds, 0, 0, float(x), float(y))

    def shot(self, x, y, dx, dy):
        return shot(self.session.levels, self.states, 0, self.ninja, float(x), float(y), float(dx), float(dy))

    def step(self, x, y, mx, my):
        return step_meets_wall(self.session.levels, self.states, 0, 0, float(x), float(y), float(mx), float(my))

    def place(self, x, y):
        self.ninja["x"], self.ninja["y"] = x, y


@pytest.mark.parametrize(
    ("direction", "length"),
    [((1, 0), RIGHT - 300), ((-1, 0), 300 - LEFT), ((0, 1), BOTTOM - 300), ((0, -1), 300 - TOP)],
)
def test_an_empty_level_ends_at_its_border(direction, length):
    assert Beam(build_level()).ray(300, 300, *direction) == length


def test_slanted_rays_meet_slopes_curves_and_corners():
    beam = Beam(build_level(tiles={(20, 10): 1, (10, 10): 8, (30, 10): 10}))
    assert beam.ray(480 - 50, 252, 1, 0) == 50.0  # the block spans 480 to 504
    assert beam.ray(470.5, 229.5, DIAGONAL, DIAGONAL) == pytest.approx(np.hypot(10.5, 10.5))
    middle = {beam.ray(x, 200, 0, 1) for x in (242, 252, 262)}
    assert len(middle) == 3  # a slope is met at different heights
    assert all(40 <= length <= 64 for length in middle)
    assert beam.ray(735, 300, 0, -1) == pytest.approx(60 - np.sqrt(24**2 - 15**2))  # an arc around (720, 240)


def test_a_ray_that_leaves_the_cells_meets_nothing():
    beam = Beam(build_level())
    assert beam.ray(1050, 300, 1, 0) == NOTHING
    assert beam.ray(-100, 300, -1, 0) == NOTHING
    assert beam.ray(5000, 300, 0, 1) == NOTHING
    assert beam.ray(300, 300, 0, 0) == NOTHING
    assert beam.ray(300, 300, np.nan, np.nan) == NOTHING
    assert not beam.sees(1050, 300)


def test_a_segment_on_which_the_ray_starts_does_not_stop_it_but_its_end_does():
    beam = Beam(build_level(tiles={(20, 10): 1}))
    assert beam.ray(480, 250, 1, 0) == 24.0  # through the block, to the inner side of its right face
    assert beam.ray(480, 252, 1, 0) == 0.0  # half-edges meet here


def test_open_doors_do_not_stop_rays():
    beam = Beam(build_level("regular_door 60 50"))
    assert beam.ray(300, 300, 1, 0) == 60.0
    beam.states[0] = 1
    assert beam.ray(300, 300, 1, 0) == RIGHT - 300
    trap = Beam(build_level("trap_door 60 50", "trap_door_switch 100 50"))
    assert trap.ray(300, 300, 1, 0) == RIGHT - 300
    trap.states[0] = 1
    assert trap.ray(300, 300, 1, 0) == 60.0
    assert trap.ray(500, 300, -1, 0) == 140.0  # from both sides


def test_line_of_sight():
    beam = Beam(build_level(tiles={(20, 10): 1}))
    beam.place(600.0, 252.0)
    assert not beam.sees(400, 252)
    assert beam.sees(400, 300)
    beam.place(489.5, 250.0)  # the wall is as far as the near side of the disc, less half a pixel
    assert beam.sees(400, 250)
    beam.place(490.0, 250.0)
    assert not beam.sees(400, 250)  # strict
    beam.place(484.0, 250.0)
    assert beam.sees(476, 250)  # nearer than the radius: no ray is cast
    beam.ninja["state"] = DYING
    assert beam.sees(476, 250)
    for state in (DEAD, CELEBRATING):
        beam.ninja["state"] = state
        assert not beam.sees(476, 250)
        assert not beam.shot(470, 250, 1, 0)


def test_shots_hit_within_the_radius_and_not_behind_walls():
    beam = Beam(build_level(tiles={(20, 10): 1}))
    beam.place(450.0, 259.9)
    assert beam.shot(400, 250, 1, 0)
    beam.place(450.0, 260.0)
    assert not beam.shot(400, 250, 1, 0)
    beam.place(489.9, 250.0)
    assert beam.shot(400, 250, 1, 0)
    beam.place(490.0, 250.0)
    assert not beam.shot(400, 250, 1, 0)
    beam.place(380.0, 250.0)
    assert not beam.shot(400, 250, 1, 0)
    beam.place(471.0, 252.0)
    assert beam.shot(480, 252, 1, 0)  # no length: the point
    beam.place(470.0, 252.0)
    assert not beam.shot(480, 252, 1, 0)


def test_a_step_looks_no_further_than_its_cells():
    beam = Beam(build_level(tiles={(20, 10): 1}))
    assert beam.step(479, 250, 2, 0)
    assert not beam.step(477, 250, 2, 0)
    assert not beam.step(482, 250, -1, 0)
    assert beam.step(481, 250, -2, 0)


@kernel
def shortest(levels, x, y, dx, dy):
    """Return the length of a ray by looking at every segment of the level."""
    fraction = 1.0
    for number in range(levels.segment_start[0, CELLS]):
        fraction = lesser(fraction, sweep_segment(levels.segments[number], x, y, RAY_LENGTH * dx, RAY_LENGTH * dy))
    return fraction * RAY_LENGTH


def test_the_walk_through_the_cells_finds_the_nearest_segment_of_all():
    random = np.random.default_rng(8)
    for density, seed in ((40, 3), (8, 2)):
        beam = Beam(synthetic_map(density, seed)[0])
        for _ in range(200):
            x, y, angle = random.uniform(30, 1026), random.uniform(30, 570), random.uniform(0, 2 * np.pi)
            direction = (float(np.cos(angle)), float(np.sin(angle)))
            assert beam.ray(x, y, *direction) == shortest(beam.session.levels, x, y, *direction)


@kernel
def crosses(segment, x, y, dx, dy):
    """Return whether a straight segment crosses a view before the ninja's disc, without the margins of ``hides``."""
    ax, ay, bx, by = segment["x1"] - x, segment["y1"] - y, segment["x2"] - x, segment["y2"] - y
    whole = dx * (by - ay) - dy * (bx - ax)
    if segment["kind"] != 0 or whole == 0.0:
        return False
    share = (ax * (by - ay) - ay * (bx - ax)) / whole
    apart = (ax * dy - ay * dx) * (bx * dy - by * dx) <= 0.0
    return apart and share >= 0.0 and (1.0 - share) * np.sqrt(dx * dx + dy * dy) >= 10.0


@kernel
def wrong_answers(levels, worlds, eyes, targets, with_margins):
    """Return (views that some segment hides, views of these that the walk through the cells finds open)."""
    hidden = wrong = 0
    states = worlds.entity_states
    for number in range(eyes.shape[0]):
        x, y = eyes[number, 0], eyes[number, 1]
        dx, dy = targets[number, 0] - x, targets[number, 1] - y
        distance = np.sqrt(dx * dx + dy * dy)
        if distance < 10.0:
            continue
        length = ray(levels, states, 0, 0, x, y, dx / distance, dy / distance)[0]
        for segment in range(levels.segment_start[0, CELLS]):
            if with_margins:
                hit = hides(levels, states, 0, 0, segment, x, y, dx, dy)
            else:
                hit = crosses(levels.segments[segment], x, y, dx, dy)
            hidden += hit
            wrong += hit and length != NOTHING and length > distance - 10.0
    return hidden, wrong


def views(random, count):
    """Return eyes and targets: half of them at random, half at multiples of 6 pixels, as entities of levels."""
    points = random.uniform((30, 30), (1026, 570), (2, count, 2))
    points[:, ::2] = 6.0 * np.round(points[:, ::2] / 6.0)
    return points


def test_what_plainly_hides_is_never_in_the_way_of_a_free_view():
    random, hidden, wrong, without = np.random.default_rng(5), 0, 0, 0
    for density, seed in ((40, 3), (20, 4), (8, 2)):
        session = Session(synthetic_map(density, seed)[0])
        eyes, targets = views(random, 3000)
        found = wrong_answers(session.levels, session.worlds, eyes, targets, True)
        hidden, wrong = hidden + found[0], wrong + found[1]
        without += wrong_answers(session.levels, session.worlds, eyes, targets, False)[1]
    assert hidden > 10_000
    assert wrong == 0
    assert without > 0, "negative control: rays along the borders of cells and through ends of segments"


def test_looks_with_and_without_hints_agree():
    """The hint of one look serves the next, from another place."""
    session = Session(build_level("laser_drone 60 50 0 2", "regular_door 80 40", tiles={(20, 10): 1, (25, 9): 10}))
    worlds, random = session.worlds, np.random.default_rng(7)
    for (x, y), target in zip(*views(random, 2000), strict=True):
        session.ninja["x"], session.ninja["y"] = target
        world_at(worlds, 0).entity_states[-1] = random.integers(2)
        hinted = sees(session.levels, worlds, 0, 0, x, y)
        worlds.hints[:] = 65535  # no segment
        assert sees(session.levels, worlds, 0, 0, x, y) == hinted
        if random.integers(2):
            worlds.hints[:] = random.integers(0, 1000)


def test_a_level_whose_doors_stick_out_of_their_cells_has_no_hints():
    inside, outside = (Session(build_level(f"regular_door {x} 50")).level_set.arrays.header for x in (60, 61))
    assert inside["has_plain_walls"][0] == 1
    assert outside["has_plain_walls"][0] == 0
