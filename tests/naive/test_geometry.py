"""The primitives of the simulator against the naive ones, to the last bit."""

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from nclone_env.sim.geometry import closest_on_arc, closest_on_straight, sweep_arc, sweep_curve, sweep_line, sweep_point
from nclone_env.sim.geometry import sweep_straight as sweep_whole_straight

from .geometry import Arc, Straight
from .geometry import sweep_point as naive_sweep_point

# Positions around the segments on a fine grid (exact touches, ties, zeros) and anywhere. The segments lie where they
# do in levels, away from the origin: there a difference of coordinates cannot be so small that its square vanishes.
coordinates = st.one_of(st.integers(200, 680).map(lambda value: value / 4), st.floats(50, 170))
moves = st.one_of(st.integers(-40, 40).map(lambda value: value / 4), st.floats(-15, 15), st.just(0.0))
points = st.tuples(coordinates, coordinates)
displacements = st.tuples(moves, moves)
corners = st.sampled_from([96, 108, 120])
ends = st.tuples(corners, corners)
signs = st.sampled_from([-1, 1])
radii = st.sampled_from([0.0, 5.0, 10.0, 22.0])
many = settings(max_examples=200)


@many
@given(points, displacements, points, radii)
def test_sweep_against_points(start, move, target, radius):
    assert sweep_point(*start, *move, *target, radius) == naive_sweep_point(*start, *move, *target, radius)


@many
@given(points, displacements, ends, ends, radii)
def test_straight_segments(start, move, first, second, radius):
    assume(first != second)
    naive = Straight(*first, *second)
    assert closest_on_straight(*first, *second, *start) == naive.closest(*start)
    assert sweep_line(*start, *move, *first, *second, radius) == naive.sweep_inner(*start, *move, radius)
    assert sweep_whole_straight(*start, *move, *first, *second, radius) == naive.sweep(*start, *move, radius)


@many
@given(points, displacements, ends, signs, signs, st.booleans(), st.sampled_from([0.0, 5.0, 10.0]))
def test_arcs(start, move, centre, h, q, convex, radius):
    naive = Arc(*centre, h, q, convex)
    assert closest_on_arc(*centre, h, q, convex, *start) == naive.closest(*start)
    assert sweep_curve(*start, *move, *centre, h, q, radius) == naive.sweep_inner(*start, *move, radius)
    assert sweep_arc(*start, *move, *centre, h, q, radius) == naive.sweep(*start, *move, radius)
