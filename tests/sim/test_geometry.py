"""Check values of the collision primitives (physics 01, section 15.2)."""

import numpy as np
import pytest

from nclone_env.sim.geometry import (
    clamp_cell,
    closest_on_arc,
    closest_on_straight,
    discs_overlap,
    sweep_arc,
    sweep_curve,
    sweep_line,
    sweep_point,
    sweep_straight,
    unit,
    whole_24ths,
)

SWEEP_RADIUS = 5.0


@pytest.mark.parametrize(
    ("start", "move", "target", "expected"),
    [
        ((100.3, 50.7), (3.1, 2.2), (105.0, 57.0), 0.816115975742177),
        ((100.3, 50.7), (3.1, 2.2), (110.0, 60.0), 2.2879902910788092),
        ((100.3, 50.7), (3.1, 2.2), (103.0, 52.0), 0.0),
        ((100.3, 50.7), (-3.1, 2.2), (110.0, 60.0), 1.0),
        ((100.3, 50.7), (0.005, 0.008), (106.0, 52.0), 1.0),
    ],
)
def test_sweep_against_a_point(start, move, target, expected):
    assert sweep_point(*start, *move, *target, SWEEP_RADIUS) == expected


@pytest.mark.parametrize(
    ("start", "move", "segment", "expected"),
    [
        ((100.3, 50.7), (3.1, 9.2), (96.0, 60.0, 108.0, 60.0), 0.46739130434782583),
        ((100.3, 50.7), (3.1, 9.2), (108.0, 60.0, 96.0, 60.0), 0.46739130434782583),
        ((100.3, 56.7), (3.1, 9.2), (96.0, 60.0, 108.0, 60.0), 0.0),
        ((100.3, 50.7), (8.3, 3.1), (96.0, 72.0, 120.0, 48.0), 0.8709589638714494),
        ((100.3, 50.7), (8.3, -3.1), (96.0, 72.0, 120.0, 60.0), 1.0),
    ],
)
def test_sweep_against_a_straight_segment(start, move, segment, expected):
    assert sweep_line(*start, *move, *segment, SWEEP_RADIUS) == expected


@pytest.mark.parametrize(
    ("start", "move", "quadrant", "expected"),
    [
        ((119.3, 118.7), (-4.1, -5.2), (1, 1), 0.5381863391068871),
        ((104.3, 101.7), (7.1, 9.2), (1, 1), 0.7885563884028198),
        ((104.3, 101.7), (1.1, 0.2), (1, 1), 1.0),
        ((114.0, 110.5), (1.1, 6.2), (1, 1), 0.0),
        ((119.3, 118.7), (-4.1, -5.2), (-1, 1), 1.0),
    ],
)
def test_sweep_against_an_arc(start, move, quadrant, expected):
    assert sweep_curve(*start, *move, 96, 96, *quadrant, SWEEP_RADIUS) == expected


@pytest.mark.parametrize(
    ("segment", "query", "back_facing", "point"),
    [
        ((96, 120, 120, 96), (113.7, 112.9), False, (108.4, 107.6)),
        ((96, 120, 120, 96), (101.7, 104.9), True, (106.4, 109.6)),
        ((96, 108, 120, 96), (94.2, 101.1), True, (97.32000000000001, 107.34)),
        ((120, 96, 96, 108), (110.2, 99.3), False, (110.84, 100.58)),
        ((0, 0, 12, 24), (3.3, 20.1), False, (8.7, 17.4)),
    ],
)
def test_closest_point_on_a_straight_segment(segment, query, back_facing, point):
    assert closest_on_straight(*segment, *query) == (back_facing, *point)


@pytest.mark.parametrize(
    ("centre", "quadrant", "convex", "query", "back_facing", "point"),
    [
        ((96, 96), (1, 1), True, (116.3, 113.9), False, (114.00128323070936, 111.87305270097033)),
        ((96, 96), (1, 1), True, (104.3, 103.9), True, (113.38429051587349, 112.5464933825784)),
        ((96, 96), (1, 1), False, (104.3, 103.9), False, (113.38429051587349, 112.5464933825784)),
        ((96, 96), (1, 1), True, (123.4, 90.1), False, (120.0, 96.0)),
        ((120, 120), (-1, -1), False, (101.5, 104.25), True, (101.72564824024447, 104.44210593426219)),
    ],
)
def test_closest_point_on_an_arc(centre, quadrant, convex, query, back_facing, point):
    assert closest_on_arc(*centre, *quadrant, convex, *query) == (back_facing, *point)


def test_the_end_points_count_in_a_whole_sweep():
    past_the_end = (90.0, 50.0, 0.0, 20.0)
    assert sweep_line(*past_the_end, 93.0, 60.0, 105.0, 60.0, SWEEP_RADIUS) == 1.0
    assert sweep_straight(*past_the_end, 93.0, 60.0, 105.0, 60.0, SWEEP_RADIUS) == (10.0 - 4.0) / 20.0
    past_the_arc = (96.0 + 24.0, 80.0, 0.0, 20.0)
    assert sweep_curve(*past_the_arc, 96, 96, 1, 1, SWEEP_RADIUS) == 1.0
    assert sweep_arc(*past_the_arc, 96, 96, 1, 1, SWEEP_RADIUS) == (16.0 - 5.0) / 20.0


def test_touching_discs_do_not_overlap():
    assert not discs_overlap(0.0, 0.0, 6.0, 8.0, 10.0)
    assert discs_overlap(0.0, 0.0, 6.0, 7.999999, 10.0)


def test_the_zero_vector_has_a_default():
    assert unit(0.0, 0.0, 1.0, 0.0) == (1.0, 0.0)
    assert unit(0.0, 0.0, 0.0, -1.0) == (0.0, -1.0)
    assert unit(3.0, 4.0, 0.0, 1.0) == (0.6, 0.8)
    assert unit(3.0, -4.0, 1.0, 0.0) == (0.6, -0.8)


def test_whole_24ths():
    for number in [*range(5000), *np.random.default_rng(0).integers(0, 2**29, 2000).tolist(), 2**29]:
        assert whole_24ths(number) == number // 24


def test_a_cell_is_the_rounded_quotient_next_to_its_borders():
    """Two hundred floats to each side of a border."""
    for border in range(1, 45):
        value = 24.0 * border - 200 * np.spacing(24.0 * border)
        for _ in range(400):
            assert clamp_cell(value, 43) == min(int(value / 24.0), 43)
            value = np.nextafter(value, np.inf)
    assert [clamp_cell(value, 43) for value in (-1.0, -0.0, np.nan, 1e9, np.inf)] == [0, 0, 0, 43, 43]
