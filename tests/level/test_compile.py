"""What is computed from a level: segments, edge lattices, the table of entities and their cells."""

import hashlib

import numpy as np
import pytest

from nclone_env.game import EXIT, EXIT_SWITCH, GOLD, KINDS, LAUNCH_PAD, MINE, ONE_WAY, TOGGLE_MINE
from nclone_env.level.build import build_level, everything, mirrored, moving
from nclone_env.level.compile import (
    DOOR_CLOSED_AT_0,
    DOOR_CLOSED_AT_1,
    NO_OWNER,
    compile_level,
    grid_edge,
    level_room,
    signed_edge,
)
from nclone_env.level.formats.attract import read_attract
from nclone_env.level.level import Level, RawLevel
from nclone_env.level.level_set import pack
from nclone_env.level.load import load_level, load_levels
from nclone_env.level.tiles import SOLID_SAMPLES, STRAIGHT

from ..golden.tiles import SOLID
from ..golden.values import CONSTRUCTION
from ..shared import SHARED, needs_shared
from .level_bases import lattices

DOORS = {5: 1, 10: 14, 12: 2, 14: 2, 19: 2}  # physics 01, section 15.3


def cell_segments(level, column, row):
    cell = column * 25 + row
    stored = level.segments[level.segment_start[0, cell] : level.segment_start[0, cell + 1]]
    assert (stored["owner"] == NO_OWNER).all()
    return [segment[:5] for segment in stored.tolist()]


@pytest.mark.parametrize("column", [5, 12])
def test_order_of_the_segments_of_a_full_block(column):
    x, y = 24 * column, 24 * 8
    stored = cell_segments(compile_level(build_level(tiles={(column, 8): 1})), column, 8)
    assert stored == [
        (x + 12, y, x, y, 0),
        (x, y + 24, x + 12, y + 24, 0),
        (x + 24, y, x + 12, y, 0),
        (x + 12, y + 24, x + 24, y + 24, 0),
        (x, y, x, y + 12, 0),
        (x, y + 12, x, y + 24, 0),
        (x + 24, y + 12, x + 24, y, 0),
        (x + 24, y + 24, x + 24, y + 12, 0),
    ]


def test_order_of_the_segments_of_a_raised_steep_slope():
    x, y = 24 * 9, 24 * 8
    assert cell_segments(compile_level(build_level(tiles={(9, 8): 30})), 9, 8) == [
        (x + 12, y + 24, x + 24, y, 0),
        (x + 12, y, x, y, 0),
        (x, y + 24, x + 12, y + 24, 0),
        (x + 24, y, x + 12, y, 0),
        (x, y, x, y + 12, 0),
        (x, y + 12, x, y + 24, 0),
    ]


def test_touching_solid_sides_vanish_and_curves_stay():
    level = compile_level(build_level(tiles={(9, 8): 1, (10, 8): 10, (11, 8): 77}))
    assert len(cell_segments(level, 9, 8)) == 6  # the right side is inside the solid
    arc, *edges = cell_segments(level, 10, 8)
    assert arc == (240, 192, 1, 1, 1)
    assert len(edges) == 2
    assert cell_segments(level, 11, 8) == []  # an unknown tile is empty
    assert level.tiles[0, 8, 11] == 0


def test_an_empty_level_has_only_the_inside_of_its_border():
    level = compile_level(build_level())
    assert len(level.segments) == 2 * (2 * 42 + 2 * 23)
    for x1, y1, x2, y2, *_ in level.segments.tolist():
        assert {x1, x2} == {24} or {x1, x2} == {1032} or {y1, y2} == {24} or {y1, y2} == {576}


def middle_and_normal(x1, y1, x2, y2, kind):
    """Return the middle of a segment and its unit normal, which points to the free side."""
    if kind == 0:
        normal = np.array([-(y2 - y1), x2 - x1]) / np.hypot(x2 - x1, y2 - y1)
        return np.array([x1 + x2, y1 + y2]) / 2, normal
    outward = np.array([x2, y2]) / np.sqrt(2.0)
    return np.array([x1, y1]) + 24.0 * outward, outward if kind == 1 else -outward


@pytest.mark.parametrize("tile", [tile for tile in SOLID if tile])
def test_every_segment_of_a_tile_separates_free_from_solid(tile):
    stored = cell_segments(compile_level(build_level(tiles={(9, 8): tile})), 9, 8)
    assert len(stored) >= 4

    def solid(point):
        u, v = point[0] - 24 * 9, point[1] - 24 * 8
        return 0 <= u <= 24 and 0 <= v <= 24 and SOLID[tile](u, v)

    for segment in stored:
        middle, normal = middle_and_normal(*segment)
        assert solid(middle - 0.4 * normal)
        assert not solid(middle + 0.4 * normal)


@pytest.mark.parametrize("tile", [tile for tile in SOLID if tile])
def test_solid_samples_agree_with_the_regions(tile):
    for row in range(12):
        for column in range(12):
            assert SOLID_SAMPLES[tile, row, column] == SOLID[tile](2 * column + 1, 2 * row + 1)


@pytest.mark.parametrize(
    ("above", "below", "value"), [(10, 1, 2), (1, 1, 0), (1, 0, 2), (10, 13, 1)], ids=lambda value: str(value)
)
def test_merging_of_grid_edges(above, below, value):
    horizontal, _ = lattices(grid_edge, compile_level(build_level(tiles={(9, 8): above, (9, 9): below})).tiles[0])
    assert horizontal[2 * 9, 2 * 9 : 2 * 9 + 2].tolist() == [value, value]


def test_the_outer_frame_of_the_lattices():
    tiles = compile_level(build_level()).tiles[0]
    for lattice in lattices(signed_edge, tiles):
        assert not lattice[[0, -1]].any()
        assert not lattice[:, [0, -1]].any()
    horizontal, vertical = lattices(grid_edge, tiles)
    assert (horizontal[[0, -1]] == 2).all()
    assert (vertical[:, [0, -1]] == 2).all()


@needs_shared
@pytest.mark.parametrize("number", CONSTRUCTION)
def test_counts_of_recorded_maps(number):
    path = SHARED / "attract" / str(number)
    if not path.exists():
        pytest.skip(f"attract file {number} is not here")
    raw = read_attract(path.read_bytes()).level
    compiled = compile_level(Level.of(raw))
    segments = compiled.segments
    assert np.isin(segments["kind"], (STRAIGHT, DOOR_CLOSED_AT_0, DOOR_CLOSED_AT_1)).all()
    doors = np.count_nonzero(segments["owner"] != NO_OWNER)
    segments = segments[segments["owner"] == NO_OWNER]
    flat, upright = segments["y1"] == segments["y2"], segments["x1"] == segments["x2"]
    horizontal, vertical = lattices(grid_edge, compiled.tiles[0])
    inner = (horizontal[1:-1], vertical[:, 1:-1])
    counts = [np.count_nonzero(lattice == value) for lattice in inner for value in (1, 2)]
    stored = (np.count_nonzero(~flat & ~upright), np.count_nonzero(flat), np.count_nonzero(upright))
    assert (*stored, *counts) == CONSTRUCTION[number]
    assert doors == DOORS.get(number, 0)


def test_entities_in_type_order_with_each_switch_after_its_exit():
    records = [(0, 40, 40, 0, 0), (4, 1, 1, 0, 0), (3, 10, 10, 0, 0), (2, 30, 30, 0, 0), (3, 20, 10, 0, 0)]
    records += [(1, 31, 30, 0, 0), (4, 22, 12, 0, 0), (1, 32, 30, 0, 0)]
    # The switch of an exit is the record as far behind it as there are exits; no level file has such an order.
    level = compile_level(load_level(RawLevel(np.zeros((23, 42)), np.array(records))))
    assert level.entities["type"].tolist() == [MINE, MINE, GOLD, EXIT, EXIT_SWITCH, EXIT, EXIT_SWITCH]
    assert level.entities["x"].tolist() == [186, 192, 180, 60, 120, 120, 132]
    assert level.entities["mover"].tolist() == [-1, -1, -1, 0, 0, 1, 1]
    assert level.entities["order"].tolist() == [4, 5, 2, 0, 1, 3, 4] or level.entities["order"][3:5].tolist() == [0, 1]


def test_near_a_cell_in_record_order_without_movers():
    level = compile_level(build_level("exit 40 40", "exit_switch 41 41", "gold 42 42", "mine 43 43"))
    assert level.entities["type"][near_of(level, 10 * 25 + 10)].tolist() == [EXIT_SWITCH, GOLD, MINE]
    assert level.entities["type"][level.mover_slots].tolist() == [EXIT]


def test_mines_are_those_that_can_kill_by_blocks_of_cells():
    random = np.random.default_rng(4)
    kinds = ("gold", "mine", "toggle_mine", "one_way", "zap_drone")
    places = random.integers(-4, 180, (300, 2)).clip(0, 255)
    level = compile_level(build_level(*(f"{kinds[k % 5]} {x} {y}" for k, (x, y) in enumerate(places.tolist()))))
    types, members = level.entities["type"], members_of(level)
    for block in range(44 * 5):
        cells = range(5 * block, 5 * block + 5)
        wanted = [slot for cell in cells for slot in members[cell] if types[slot] in (MINE, TOGGLE_MINE)]
        assert level.mines[level.mine_start[0, block] : level.mine_start[0, block + 1]].tolist() == wanted
    assert len(level.mines) == np.isin(types, (MINE, TOGGLE_MINE)).sum() == 120


def test_lists_of_a_crowd_begin_at_multiples_of_a_unit():
    """A launch pad lists all of the nine cells around each: more places than a start can count."""
    nine = [f"gold {x} {y}" for x in (58, 62, 66) for y in (46, 50, 54)]
    crowd, few = (compile_level(build_level(*nine * count, "launch_pad 62 50 0")) for count in (3600, 4))
    for level in (crowd, few):
        members = members_of(level)
        for cell in [15 * 25 + 12, 16 * 25 + 12, 16 * 25 + 13, 14 * 25 + 11, 30 * 25 + 12]:
            assert near_of(level, cell) == [slot for c in cells_around(cell) for slot in members[c]]
    assert len(near_of(crowd, 15 * 25 + 12)) == 9 * 3600 + 1
    assert (few.header["near_unit"][0], crowd.header["near_unit"][0]) == (1, 4)


def test_near_a_cell_is_what_can_act_on_a_ninja_in_it():
    """All fixed kinds at random places, some outside of the level; in the order of the nine cells."""
    random = np.random.default_rng(3)
    kinds = ("gold", "mine", "toggle_mine", "regular_door", "one_way", "boost_pad")
    places = random.integers(-4, 180, (300, 2)).clip(0, 255)
    objects = [f"{kinds[k % 6]} {x} {y}" for k, (x, y) in enumerate(places.tolist())]
    for pads in ([], ["launch_pad 60 50 0", "launch_pad 100 40 2"]):
        level = compile_level(build_level(*objects, *pads))
        members = members_of(level)
        for cell in range(44 * 25):
            near = near_of(level, cell)
            around = [slot for c in cells_around(cell) for slot in members[c]]
            assert near == [slot for slot in around if slot in near], "in the order in which they are visited"
            left = set(around) - set(near)
            types = level.entities["type"]
            assert not any(types[slot] == ONE_WAY for slot in left)
            if any(types[slot] == LAUNCH_PAD for slot in around):
                assert not left
            for x, y in ninjas_in(cell, random):
                for slot in left:
                    distance = np.hypot(x - level.entities["x"][slot], y - level.entities["y"][slot])
                    assert distance > 10 + max(KINDS[types[slot]].radii)
        total = sum(len(members[c]) for cell in range(44 * 25) for c in cells_around(cell))
        assert len(level.near) < 0.7 * total


def cells_around(cell):
    column, row = divmod(cell, 25)
    return [
        25 * c + r
        for c in range(column - 1, column + 2)
        for r in range(row - 1, row + 2)
        if 0 <= c < 44 and 0 <= r < 25
    ]


def members_of(level):
    """Return, by cell, the entities that never change their cell, in the order of creation."""
    cells = [25 * (min(x // 24, 43)) + min(y // 24, 24) for x, y in level.entities[["x", "y"]].tolist()]
    fixed = ~np.array([kind.has_mover for kind in KINDS])[level.entities["type"]]
    members = [[] for _ in range(44 * 25)]
    for slot in np.argsort(level.entities["order"]).tolist():
        if fixed[slot]:
            members[cells[slot]].append(slot)
    return members


def near_of(level, cell):
    """Return the list of a cell."""
    first = int(level.near_start[0, cell]) * int(level.header["near_unit"][0])
    return level.near[first : first + level.near[first:].tolist().index(-1)].tolist()


def ninjas_in(cell, random):
    """Return places in a cell: its corners and one within; beyond the border for the outermost cells."""
    column, row = divmod(cell, 25)
    left, top = (-400 if column == 0 else 24 * column), (-400 if row == 0 else 24 * row)
    right, bottom = (1600 if column == 43 else 24 * column + 24), (1600 if row == 24 else 24 * row + 24)
    return [
        (left, top),
        (right, top),
        (left, bottom),
        (right, bottom),
        (random.uniform(left, right), random.uniform(top, bottom)),
    ]


def test_entities_outside_the_level_belong_to_the_nearest_cell():
    level = compile_level(build_level("gold 255 255"))
    assert (level.entities["x"][0], level.entities["y"][0]) == (1530, 1530)
    assert [cell for cell in range(44 * 25) if near_of(level, cell)] == [43 * 25 + 24]


def test_arrays_are_read_only_and_compiling_twice_gives_the_same():
    level = build_level("exit 30 30", "exit_switch 20 20", tiles={(9, 8): 1}, spawn=(40, 30))
    assert load_level(level) is level
    assert level.spawn == (240.0, 180.0)
    first, again = compile_level(level), compile_level(load_level(level.raw))
    for array, same in zip(first, again, strict=True):
        assert not array.flags.writeable
        assert array.tobytes() == same.tobytes()
    other = compile_level(build_level("exit 30 30", "exit_switch 20 20", spawn=(40, 30)))
    assert other.segments.tobytes() != first.segments.tobytes()


def test_packed_levels_keep_their_parts():
    levels = [
        build_level(*[f"gold {30 + tile} 30", f"mine {30 + tile} 36"] * tile, tiles={(9, 8): tile})
        for tile in (0, 3, 1)
    ]
    packed = pack(levels)
    for number, level in enumerate(map(compile_level, levels)):
        header = packed.arrays.header[number]
        for name, first in (("segments", "first_segment"), ("mines", "first_mine"), ("near", "first_near")):
            own = getattr(level, name)
            assert np.array_equal(getattr(packed.arrays, name)[header[first] : header[first] + len(own)], own)
        for name in ("segment_start", "mine_start", "near_start"):
            assert np.array_equal(getattr(packed.arrays, name)[number], getattr(level, name)[0])
        assert np.array_equal(packed.entities_of(number), level.entities)
        assert np.array_equal(packed.mover_slots_of(number), level.mover_slots)
        assert 2 * header["gold_count"] == header["entity_count"] == len(level.entities)
    assert packed.max_entities == 6
    assert packed.max_movers == 0


def test_arrays_are_those_on_record():
    """The digest changes with the layout alone: the contents were once those of array expressions."""
    levels = [*load_levels(["first-steps", "jumps", "hazards"]), everything(), mirrored(everything())]
    digest = hashlib.sha256()
    for name, array in pack([*levels, moving((70, 44), "other")]).arrays._asdict().items():
        digest.update(f"{name} {array.dtype} {array.shape}".encode() + array.tobytes())
    assert digest.hexdigest() == "c094a2e0923f1a36e42c03dd5c2e970232bb8fbd4d2f981755a930a7fb7d082a"


def test_a_level_has_room_for_all_that_its_records_can_bring():
    crowd = build_level(
        *(f"gold {x} {y}" for x in range(8, 90, 2) for y in range(8, 80, 2)), tiles=np.full((23, 42), 6)
    )
    for raw in (crowd.raw, everything().raw, RawLevel(crowd.raw.tiles, crowd.raw.records[:1])):
        room = level_room(len(raw.records))
        compiled = compile_level(Level.of(raw))
        for name in ("segments", "near", "mines", "entities", "doors", "runs", "mover_slots"):
            assert len(getattr(compiled, name)) < len(getattr(room, name)) or not len(getattr(room, name)), name
