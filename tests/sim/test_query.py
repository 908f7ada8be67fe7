"""Cells, searches over segments, rays and shots."""

import numpy as np
import pytest

from nclone_env.game import CELEBRATING, CELLS, COLUMNS, DEAD, DYING, ROWS
from nclone_env.jit import kernel
from nclone_env.level.build import build_level
from nclone_env.level.load import LevelSource
from nclone_env.sim.geometry import lesser
from nclone_env.sim.query import (
    NOTHING,
    RAY_LENGTH,
    cell_of,
    is_within,
    ray,
    sees,
    shot,
    step_meets_wall,
    sweep_cell,
    whole_24ths,
)
from nclone_env.sim.session import Session

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
        return ray(self.session.levels, self.states, 0, 0, float(x), float(y), float(dx), float(dy))

    def sees(self, x, y):
        return sees(self.session.levels, self.states, 0, self.ninja, float(x), float(y))

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
    beam.states[0, 0] = 1
    assert beam.ray(300, 300, 1, 0) == RIGHT - 300
    trap = Beam(build_level("trap_door 60 50", "trap_door_switch 100 50"))
    assert trap.ray(300, 300, 1, 0) == RIGHT - 300
    trap.states[0, 0] = 1
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
def shortest(levels, states, x, y, dx, dy):
    """Return the length of a ray by looking at every segment of the level."""
    fraction = 1.0
    for cell in range(CELLS):
        fraction = lesser(fraction, sweep_cell(levels, states, 0, 0, cell, x, y, RAY_LENGTH * dx, RAY_LENGTH * dy))
    return fraction * RAY_LENGTH


def test_the_walk_through_the_cells_finds_the_nearest_segment_of_all():
    random = np.random.default_rng(8)
    for density, seed in ((40, 3), (8, 2)):
        beam = Beam(synthetic_map(density, seed)[0])
        for _ in range(200):
            x, y, angle = random.uniform(30, 1026), random.uniform(30, 570), random.uniform(0, 2 * np.pi)
            direction = (float(np.cos(angle)), float(np.sin(angle)))
            assert beam.ray(x, y, *direction) == shortest(beam.session.levels, beam.states, x, y, *direction)


def test_whole_24ths():
    for number in [*range(5000), *np.random.default_rng(0).integers(0, 2**29, 2000).tolist(), 2**29]:
        assert whole_24ths(number) == number // 24


@pytest.mark.parametrize("nudge", [-1, 0, 1])
def test_a_position_is_within_its_cell_and_no_other(nudge):
    """At the borders, one float to each side."""
    for column in range(COLUMNS):
        for row in range(ROWS):
            x, y = (float(np.nextafter(24.0 * k, np.inf * nudge)) if nudge else 24.0 * k for k in (column, row))
            expected = min(max(int(x // 24.0), 0), COLUMNS - 1) * ROWS + min(max(int(y // 24.0), 0), ROWS - 1)
            near = {cell for step in (-ROWS, -1, 0, 1, ROWS) if 0 <= (cell := expected + step) < COLUMNS * ROWS}
            assert {cell for cell in near if is_within(cell, x, y)} == {expected}


def test_outside_the_world_what_counts_is_the_cell_that_it_is_clamped_to():
    for x, y in [(-30.0, 50.0), (50.0, -30.0), (1100.0, 50.0), (50.0, 700.0), (24.0 * 3, 24.0 * 26), (-0.5, -0.5)]:
        cells = [cell for cell in range(COLUMNS * ROWS) if is_within(cell, x, y)]
        assert cells in ([], [cell_of(x, y)])
