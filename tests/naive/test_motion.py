"""Whole frames of the simulator against the naive ninja, to the last bit.

The naive ninja always runs the four passes and looks at every segment: equality proves the early exit of the
simulator's passes and the boxes that spare it segments out of reach.
"""

from hypothesis import given, settings
from hypothesis import strategies as st

from nclone_env.game import RADIUS, SWEEP_RADIUS
from nclone_env.sim.query import closest_point, sweep_tiles

from .geometry import TileWorld
from .worlds import HEIGHT, WIDTH, corners, side_by_side

xs, ys = st.floats(24, 24 + 24 * WIDTH), st.floats(24, 24 + 24 * HEIGHT)
grid_xs = st.integers(4, 4 + 4 * WIDTH).map(lambda value: 6.0 * value)
grid_ys = st.integers(4, 4 + 4 * HEIGHT).map(lambda value: 6.0 * value)
speeds = st.one_of(st.just(0.0), st.floats(-4, 4), st.floats(-14, 14))
runs = st.lists(st.tuples(st.integers(0, 7), st.integers(1, 15)), min_size=4, max_size=10)
FRAMES = 60


@settings(max_examples=30)
@given(corners(), st.lists(st.tuples(xs, ys, speeds, speeds), min_size=10, max_size=10))
def test_searches(level, places):
    session, _ = side_by_side(level, 30.0, 30.0, 0.0, 0.0)
    naive, levels = TileWorld(level.raw.tiles), session.levels
    for x, y, mx, my in places:
        for px, py in ((x, y), (1056 - x, 600 - y)):
            arguments = (levels, 0, session.worlds.entity_states, 0, px, py)
            assert closest_point(*arguments, RADIUS) == naive.closest_point(px, py)
            assert sweep_tiles(*arguments, mx, my, SWEEP_RADIUS) == naive.sweep(px, py, mx, my)


@settings(max_examples=60)
@given(corners(), st.one_of(grid_xs, xs), st.one_of(grid_ys, ys), speeds, speeds, runs)
def test_frames(level, x, y, vx, vy, held):
    session, naive = side_by_side(level, x, y, vx, vy)
    inputs = b"".join(bytes([code]) * length for code, length in held)[:FRAMES]
    ninjas = session.record(inputs).ninjas
    for frame, code in enumerate(inputs):
        naive.frame(code)
        expected = naive.everything()
        assert {name: ninjas[frame][name] for name in expected} == expected, frame
