"""The part of the world that a level uses, and close-ups of it."""

import numpy as np
import pytest

from nclone_env.render.area import WORLD, Area, union, used_area, zoom_of

NOWHERE = np.empty((0, 2))


def tiles_with(rows, columns):
    tiles = np.ones((25, 44), np.uint8)
    tiles[rows, columns] = 0
    return tiles


def test_all_that_is_not_solid_is_used():
    assert used_area(tiles_with(slice(4, 6), slice(10, 13)), NOWHERE) == Area(216, 72, 120, 96)


def test_places_in_walls_are_used_and_places_outside_the_world_are_not():
    tiles = tiles_with(slice(4, 6), slice(10, 13))
    assert used_area(tiles, np.array([(20 * 24 + 23.0, 100.0)])) == Area(216, 72, 312, 96)
    assert used_area(tiles, np.array([(20.0, 700.0), (-6.0, 100.0)])) == used_area(tiles, NOWHERE)


def test_a_world_of_walls_is_shown_whole():
    assert used_area(np.ones((25, 44), np.uint8), NOWHERE) == WORLD


def test_the_margin_ends_at_the_world():
    assert used_area(np.zeros((25, 44), np.uint8), NOWHERE) == WORLD


@pytest.mark.parametrize(
    ("used", "zoom"),
    [
        (Area(480, 240, 240, 96), 2.0),
        (Area(0, 24, 528, 72), 2.0),
        (Area(240, 48, 600, 312), 1.76),
        (Area(24, 24, 96, 504), 600 / 504),
        (WORLD, 1.0),
    ],
)
def test_what_is_used_is_enlarged_at_most_twice_and_to_the_size_of_the_world(used, zoom):
    assert zoom_of(used) == pytest.approx(zoom)
    assert used.width * zoom <= 1056
    assert used.height * zoom <= 600


def test_the_union_contains_every_area():
    assert union([Area(48, 72, 24, 24), Area(24, 96, 240, 48)]) == Area(24, 72, 240, 72)
    assert union([WORLD]) == WORLD
