"""What entities change on the lattice, compared with the rule at every node."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nclone_env.game import FACING_X, FACING_Y
from nclone_env.level.compile import ENTITY
from nclone_env.level.routes.lattice import (
    FAR,
    HALF_DOOR,
    LATTICE,
    SPACING,
    add_mine,
    node_lengths,
    nodes_at_door,
    seeds_of,
    step_bit,
)

from ..level_bases import one_way_steps

PLACES = st.tuples(st.integers(-60, 1120), st.integers(-60, 660))  # also beside the world


def entity(x, y, orientation=0):
    record = np.zeros(1, ENTITY)
    record["x"], record["y"], record["orientation"] = x, y, orientation
    return record


@given(PLACES, st.sampled_from([3.0, 13.9, 14.0, 40.0]))
def test_a_mine_makes_steps_longer_within_its_reach(place, reach):
    costs = np.ones(LATTICE, np.float32)
    add_mine(costs, *map(float, place), reach)
    assert np.array_equal(costs == 4.0, node_lengths(*place) < reach)
    assert np.array_equal(costs == 1.0, node_lengths(*place) >= reach)


@given(PLACES, st.booleans())
def test_a_door_blocks_the_nodes_beside_it(place, vertical):
    door = np.zeros((), [("x", "i2"), ("y", "i2"), ("vertical", "u1")])
    door["x"], door["y"], door["vertical"] = *place, vertical
    halves = (0.0, HALF_DOOR) if vertical else (HALF_DOOR, 0.0)
    assert np.array_equal(nodes_at_door(door), node_lengths(*place, *halves) < 9.0)


@given(PLACES, st.integers(0, 7))
def test_a_one_way_platform_bars_steps_against_its_side(place, orientation):
    barred = one_way_steps(entity(*place, orientation))
    rows, columns = np.ogrid[: LATTICE[0], : LATTICE[1]]
    fx, fy = FACING_X[orientation], FACING_Y[orientation]
    dx, dy = SPACING * columns - place[0], SPACING * rows - place[1]
    ahead, aside = dx * fx + dy * fy, np.abs(dy * fx - dx * fy)
    in_front = (ahead > 0.01) & (ahead < 12.0) & (aside < 17.0)
    for b in range(-1, 2):
        for a in range(-1, 2):
            if a or b:
                crosses = in_front & (ahead + SPACING * (a * fx + b * fy) <= 0.01)
                assert np.array_equal((barred >> step_bit(a, b)) & 1 == 1, crosses)


def some_costs(seed):
    """Return factors of steps of which one in three is blocked."""
    return np.random.default_rng(seed).choice(np.array([0.0, 1.0, 4.0], np.float32), LATTICE)


REACHES = st.sampled_from([6.0, 10.0, 16.0, 22.0])


@given(PLACES, REACHES, st.sampled_from([0.0, 123.456]), st.integers(0, 3), st.booleans())
def test_a_field_begins_at_the_nodes_in_reach_or_the_nearest(place, reach, onward, seed, is_walled):
    costs = some_costs(seed)
    if is_walled:
        costs[node_lengths(*place) < 2.0 * reach] = 0.0
    lengths = np.where(costs > 0, node_lengths(*place), np.inf)
    expected, nearest = np.full(LATTICE, FAR, np.float32), lengths.min()
    if nearest <= 3.0 * reach:
        begins = lengths <= max(reach, nearest)
        expected[begins] = onward + lengths[begins]
    assert np.array_equal(seeds_of(costs, *map(float, place), reach, onward), expected)
