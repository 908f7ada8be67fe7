"""Distance fields against a naive Dijkstra, and by hand."""

import heapq
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nclone_env.level.build import build_level
from nclone_env.level.compile import compile_level, level_distances
from nclone_env.level.level_set import pack
from nclone_env.level.routes.distance import objective_fields
from nclone_env.level.routes.fields import FIELD_SHAPE, direction_to, distance_at, follow, nearest_node
from nclone_env.level.tiles import SOLID_SAMPLES

from .decoded import all_lengths, lengths_of

Node = tuple[int, int]


def solid_at(tiles, x: float, y: float) -> bool:
    column, row = int(x // 24), int(y // 24)
    return bool(SOLID_SAMPLES[tiles[row, column], int(y - 24 * row) // 2, int(x - 24 * column) // 2])


CLEARANCE = 9.5  # pixels; a disc a little smaller than the ninja
AROUND = [(dx, dy) for dx in range(-11, 12, 2) for dy in range(-11, 12, 2) if dx * dx + dy * dy < CLEARANCE * CLEARANCE]


def naive_free(tiles) -> set[Node]:
    """Nodes (column, row) of the lattice with no solid sample within the clearance."""
    inner = [(column, row) for row in range(1, FIELD_SHAPE[0] - 1) for column in range(1, FIELD_SHAPE[1] - 1)]
    return {
        (column, row)
        for column, row in inner
        if not any(solid_at(tiles, 12 * column + dx, 12 * row + dy) for dx, dy in AROUND)
    }


def naive_distances(free: set[Node], seeds: dict[Node, float], step=lambda node: 12.0) -> dict[Node, float]:
    """Dijkstra over the eight neighbours; a straight step to a node is as long as ``step`` says."""
    best, queue = {}, [(value, node) for node, value in seeds.items()]
    heapq.heapify(queue)
    while queue:
        value, (column, row) = heapq.heappop(queue)
        if (column, row) in best:
            continue
        best[column, row] = value
        for a in (-1, 0, 1):
            for b in (-1, 0, 1):
                neighbour = column + a, row + b
                if neighbour in free and neighbour not in best:
                    heapq.heappush(queue, (value + step(neighbour) * math.hypot(a, b), neighbour))
    return best


def seeds_around(free: set[Node], x: float, y: float, onward: float = 0.0) -> dict[Node, float]:
    """Free nodes within two lattice lines of a point, else the nearest ones."""
    lengths = {node: math.hypot(12 * node[0] - x, 12 * node[1] - y) for node in free}
    reach = max(24.0, min(lengths.values(), default=0.0))
    return {node: onward + length for node, length in lengths.items() if length <= reach}


def check_field(field: np.ndarray, expected: dict[Node, float]) -> None:
    finite = {(column, row) for row, column in np.argwhere(np.isfinite(field)).tolist()}
    assert finite == set(expected)
    for (column, row), value in expected.items():
        assert field[row, column] == pytest.approx(value, rel=1e-5), (column, row)


def full_level(holes: dict[Node, int]) -> np.ndarray:
    """Return padded tiles that are solid except for some cells (column, row)."""
    tiles = np.ones((25, 44), np.uint8)
    for (column, row), tile in holes.items():
        tiles[row, column] = tile
    return tiles


@st.composite
def caves(draw):
    """Draw a cave of 8 x 6 random tiles in solid rock, mostly empty."""
    tile = st.one_of(st.just(0), st.just(0), st.integers(0, 37))
    return full_level({(c, r): draw(tile) for c in range(3, 11) for r in range(3, 9)})


places = st.tuples(st.integers(13, 43).map(lambda unit: 6 * unit), st.integers(13, 35).map(lambda unit: 6 * unit))


@settings(max_examples=25)
@given(caves(), places, places)
def test_fields_of_random_caves(tiles, exit_point, switch_point):
    fields = objective_fields(tiles, [exit_point], [switch_point])
    free = naive_free(tiles)
    to_exit = naive_distances(free, seeds_around(free, *exit_point))
    check_field(lengths_of(fields, 1), to_exit)
    onward = distance_at(fields, 1, *map(float, switch_point))
    if math.isinf(onward):
        assert np.isinf(lengths_of(fields, 0)).all()
    else:
        check_field(lengths_of(fields, 0), naive_distances(free, seeds_around(free, *switch_point, onward)))


def test_a_corridor_is_as_long_as_it_is():
    tiles = full_level({(column, 5): 0 for column in range(2, 42)})
    fields = objective_fields(tiles, [(60, 132)], [(780, 132)])
    for x in (60.0, 240.0, 241.5, 900.0, 978.0):
        assert distance_at(fields, 1, x, 132.0) == pytest.approx(abs(x - 60.0), abs=1e-3)
        assert distance_at(fields, 0, x, 132.0) == pytest.approx(abs(x - 780.0) + 720.0, abs=1e-3)
    assert np.isfinite(lengths_of(fields, 1)).sum() == 2 * 40 - 1


def ahead(fields, j: int, i: int) -> Node:
    """Return (row, column) of the node two steps along the path to the exit."""
    return follow(fields.codes, fields.fields["first"][1], fields.rows, 1, j, i, 2)


def test_the_way_round_a_bend_and_its_direction():
    holes = {(column, 5): 0 for column in range(2, 12)} | {(2, row): 0 for row in range(5, 15)}
    fields = objective_fields(full_level(holes), [(60, 348)], [(60, 348)])
    length, j, i = nearest_node(fields, 1, 252.0, 132.0)
    dx, dy = direction_to(*ahead(fields, j, i), 252.0, 132.0)
    cut = 24.0 - 12.0 * math.sqrt(2.0)  # one diagonal step at the bend
    assert length == pytest.approx((252 - 60) + (348 - 132) - cut, abs=1e-3)
    assert (dx, dy) == pytest.approx((-1.0, 0.0))
    _, j, i = nearest_node(fields, 1, 60.0, 240.0)
    assert direction_to(*ahead(fields, j, i), 60.0, 240.0) == pytest.approx((0.0, 1.0))
    assert nearest_node(fields, 1, 900.0, 500.0)[0] == math.inf


def test_what_cannot_be_reached_is_infinitely_far():
    rooms = {(c, r): 0 for c in range(2, 6) for r in range(2, 6)} | {
        (c, r): 0 for c in range(8, 12) for r in range(2, 6)
    }
    fields = objective_fields(full_level(rooms), [(96, 96)], [(240, 96)])
    assert np.isfinite(distance_at(fields, 1, 96.0, 96.0))
    assert math.isinf(distance_at(fields, 1, 240.0, 96.0))
    assert np.isinf(lengths_of(fields, 0)).all()  # the switch does not lead on to its exit


def test_the_ninja_does_not_fit_between_half_a_tile():
    holes = {(column, 5): 0 for column in range(2, 12)}
    assert math.isinf(distance_at(objective_fields(full_level(holes | {(7, 5): 2}), [(60, 132)], []), 1, 276.0, 132.0))
    assert math.isfinite(distance_at(objective_fields(full_level(holes), [(60, 132)], []), 1, 276.0, 132.0))


def test_no_exit_no_field_but_the_first():
    fields = objective_fields(np.pad(np.zeros((23, 42), np.uint8), 1, constant_values=1), [], [])
    assert np.isinf(all_lengths(fields)).all()
    assert len(fields.fields) == 1


def test_of_several_exits_the_best_pair_counts():
    tiles = np.pad(np.zeros((23, 42), np.uint8), 1, constant_values=1)
    near, far = ((240, 240), (480, 240)), ((900, 480), (960, 240))  # exit, switch
    both = objective_fields(tiles, [near[0], far[0]], [near[1], far[1]])
    single = [lengths_of(objective_fields(tiles, [exit_point], [switch]), 0) for exit_point, switch in (near, far)]
    assert np.array_equal(lengths_of(both, 0), np.minimum(*single))
    assert len(both.fields) == 3


def test_packed_fields_and_the_length_of_the_whole_way():
    exit_ahead = ("exit 100 20", "exit_switch 60 20")
    levels = [build_level(*exit_ahead), build_level(), build_level(*exit_ahead)]
    packed = pack(levels, with_distances=True)
    assert packed.arrays.header["first_field"].tolist() == [0, 2, 3]
    assert len(packed.fields.fields) == 5
    assert np.array_equal(all_lengths(packed.fields)[3:], all_lengths(level_distances(compile_level(levels[0]))))
    assert not any(array.flags.writeable for array in packed.fields)
    start = packed.arrays.header["start_distance"]
    assert start[0] == start[2] == pytest.approx(480.0, abs=1e-3)
    assert math.isinf(start[1])
    assert len(pack(levels).fields.fields) == 0
