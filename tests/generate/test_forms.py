"""Shapes of quarter cells and the tiles that show them."""

import numpy as np
import pytest

from nclone_env.generate.forms import box, mirrored, swept, tiles_of, turned
from nclone_env.level.build import mirrored_tiles


def test_a_box_covers_its_cells():
    air = box(3, 4, 6, 5)
    assert air[4:6, 3:7].all()
    assert air.sum() == 4 * 8


@pytest.mark.parametrize("cut", [1, 2, 3])
def test_a_cut_corner_is_a_triangle(cut):
    air = box(3, 4, 12, 11, cut)
    assert 4 * 80 - air.sum() == 4 * 2 * cut * cut  # four triangles of half a square each
    tiles = tiles_of(air)
    assert [tiles[4 + cut - 1 - n, 3 + n] for n in range(cut)] == [6] * cut
    assert [tiles[4 + n, 13 - cut + n] for n in range(cut)] == [7] * cut
    assert [tiles[11 - cut + 1 + n, 3 + n] for n in range(cut)] == [9] * cut
    assert (tiles == 8).sum() == cut


def test_tiles_are_blocks_at_the_edge_and_empty_inside():
    tiles = tiles_of(np.ones((23, 42, 4), np.bool_))
    assert (tiles[[0, -1]] == 1).all()
    assert (tiles[:, [0, -1]] == 1).all()
    assert (tiles[1:-1, 1:-1] == 0).all()


@pytest.mark.parametrize(("right", "down"), [(1, 0), (0, -1), (1, 1), (-1, 1), (1, -1), (-1, -1)])
def test_a_sweep_covers_both_squares_and_the_way_between(right, down):
    air = swept(10, 10, 3, right, down)
    assert air[box(10, 10, 12, 12)].all()
    assert air[box(10 + right, 10 + down, 12 + right, 12 + down)].all()
    assert air.sum() == 4 * (9 + (5 if right and down else 3)) + (4 if right and down else 0)


def test_images_of_shapes_are_those_of_their_tiles():
    air = box(2, 3, 9, 8, 2) | swept(9, 5, 2, 1, 1)
    assert np.array_equal(tiles_of(mirrored(air)), mirrored_tiles(tiles_of(air)))
    assert np.array_equal(turned(turned(air)), air)
    assert np.array_equal(tiles_of(turned(air)) == 1, (tiles_of(air) == 1)[::-1, ::-1])
    assert not np.array_equal(turned(air), air)
