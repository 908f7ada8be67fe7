"""Levels from words; mirror images: contents, geometry, and play."""

import numpy as np
import pytest

from nclone_env.errors import LevelFormatError
from nclone_env.game import INPUT_JUMP, INPUT_LEFT, INPUT_RIGHT, KINDS, MINE, UNKNOWN_27
from nclone_env.level.build import build_level, build_room, everything, hall_tiles, mirrored, moving
from nclone_env.level.compile import compile_level, grid_edge
from nclone_env.level.formats.text import format_text, parse_text
from nclone_env.level.load import load_levels
from nclone_env.level.routes.distance import solid_mask
from nclone_env.sim import Session, simulate
from profiling.measure import basic_sets

from .level_bases import lattices

PICTURE = ["#" * 42, *["." * 42] * 21, "#" * 42]

WIDTH = 1056
BUILT_IN = load_levels(basic_sets())
SWAPPED = np.array(
    [
        code & INPUT_JUMP | (code & INPUT_LEFT and INPUT_RIGHT) | (code & INPUT_RIGHT and INPUT_LEFT)
        for code in range(6)
    ],
    np.uint8,
)


def test_entities_follow_the_ninja_in_the_order_given():
    raw = build_level("zap_drone 50 34 2 1", "mine 14 50", spawn=(40, 58), title="a title").raw
    assert raw.records.tolist() == [[0, 40, 58, 0, 0], [14, 50, 34, 2, 1], [1, 14, 50, 0, 0]]
    assert raw.title == "a title"
    assert not raw.tiles.any()


def test_an_argument_may_hold_several_lines_and_comments():
    raw = build_level("mine 1 2  # first\n\n# nothing\ngold 3 4", "gold 5 6").raw
    assert raw.records[1:, :3].tolist() == [[1, 1, 2], [2, 3, 4], [2, 5, 6]]


def test_tiles_come_as_numbers_as_text_or_by_cell():
    numbers = np.zeros((23, 42), np.uint8)
    numbers[[0, 22]] = 1
    cells = {(column, row): "#" for column in range(1, 43) for row in (1, 23)}
    for tiles in (numbers, PICTURE, cells):
        assert np.array_equal(build_level(tiles=tiles).raw.tiles, numbers)
    numbers[0, 0] = 6
    assert np.array_equal(build_level(tiles=cells | {(1, 1): 6}).raw.tiles, numbers)


def test_a_built_level_is_what_its_text_says():
    raw = everything().raw
    again = parse_text(format_text(raw))
    assert np.array_equal(again.records, raw.records)
    assert np.array_equal(again.tiles, raw.tiles)


def test_a_room_has_a_floor_with_changes():
    raw = build_room(cells={(5, 15): 0, (6, 14): "a"}).raw
    assert raw.records.tolist() == [[0, 40, 58, 0, 0]]
    assert (raw.tiles[14] == 1).sum() == 41
    assert (raw.tiles[14, 4], raw.tiles[13, 5]) == (0, 6)
    assert np.count_nonzero(raw.tiles) == 42


def test_a_hall_is_an_empty_rectangle_in_full_blocks():
    tiles = hall_tiles((3, 40), (5, 16))
    assert tiles[4:16, 2:40].sum() == 0
    assert tiles.sum() == 23 * 42 - 12 * 38


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (("mien 4 5",), {}, r"entity 1: expected the name of an entity \(did you mean mine\?\), got 'mien'"),
        (("mine 4 5\n\ngold 4",), {}, "entity 2: expected name x y"),
        ((), {"spawn": (400, 3)}, "entity 0: expected a whole number of 0..255 for x, got '400'"),
        (("exit 4 5",), {}, "entity 1: expected the exit_switch of this exit in entity 2"),
        (("locked_door 4 5", "gold 1 1"), {}, "entity 2: expected locked_door_switch.* in entity 1, got gold"),
        ((), {"tiles": {(0, 3): 1}}, r"tiles: expected cells of columns 1..42 and rows 1..23, got \(0, 3\)"),
        ((), {"tiles": {(1, 3): "?"}}, r"tile of cell \(1, 3\): expected a tile number or character, got '\?'"),
        ((), {"tiles": PICTURE[1:]}, "tiles: line 23: expected 23 lines of tiles, got 22"),
        ((), {"tiles": np.zeros((3, 3))}, r"tiles: expected shape \(23, 42\), got \(3, 3\)"),
        ((), {"title": "x" * 129}, "title: expected at most 128 characters, got 129"),
    ],
)
def test_a_mistake_is_named(arguments, options, message):
    with pytest.raises(LevelFormatError, match=message):
        build_level(*arguments, **options)


def test_the_hall_of_everything_has_every_kind_but_the_mine():
    kinds = set(everything().raw.records[:, 0].tolist())
    assert set(range(len(KINDS))) - kinds == {MINE, UNKNOWN_27}
    assert set(moving().raw.records[:, 0].tolist()) < kinds


def sides(level):
    """Return the x and y of the ninja in a random play of a level and of its mirror image, the latter mirrored back."""
    inputs = np.repeat(np.random.default_rng(3).integers(0, 6, 30), 8).astype(np.uint8)
    plain, image = simulate(level, inputs), simulate(mirrored(level), SWAPPED[inputs])
    return np.stack([plain.x, plain.y]), np.stack([WIDTH - image.x, image.y])


@pytest.mark.parametrize("level", BUILT_IN, ids=lambda level: level.name)
def test_play_is_mirrored(level):
    plain, image = sides(level)
    assert plain.shape == image.shape
    assert np.abs(plain - image).max() < 1e-6


def test_other_inputs_are_not_mirrored_play():
    inputs = np.full(30, INPUT_RIGHT, np.uint8)
    plain, image = simulate(BUILT_IN[0], inputs), simulate(mirrored(BUILT_IN[0]), inputs)
    assert np.abs(plain.x - (WIDTH - image.x)).max() > 1.0


@pytest.mark.parametrize("level", BUILT_IN, ids=lambda level: level.name)
def test_the_mirror_image_of_a_mirror_image_is_the_level(level):
    twice = mirrored(mirrored(level)).raw
    assert twice.tiles.tobytes() == level.raw.tiles.tobytes()
    assert twice.records.tobytes() == level.raw.records.tobytes()


def test_every_tile_is_mirrored():
    tiles = np.zeros((23, 42), np.uint8)
    tiles[1:21:2, 1:41:10].flat[:38] = np.arange(38)
    level = build_level(tiles=tiles)
    plain, image = compile_level(level), compile_level(mirrored(level))
    assert np.array_equal(solid_mask(plain.tiles[0])[:, ::-1], solid_mask(image.tiles[0]))
    both = [lattices(grid_edge, compiled.tiles[0]) for compiled in (plain, image)]
    for lattice, mirrored_lattice in zip(*both):
        assert np.array_equal(lattice[:, ::-1], mirrored_lattice)
    assert not np.array_equal(plain.edges, image.edges)


@pytest.mark.parametrize("mode", range(4))
@pytest.mark.parametrize("orientation", range(0, 8, 2))
def test_drones_turn_the_other_way(orientation, mode):
    tiles = hall_tiles((2, 30), (5, 15))
    level = build_level(f"zap_drone 50 42 {orientation} {mode}", tiles=tiles, spawn=(100, 62))
    plain, image = (drone_path(each) for each in (level, mirrored(level)))
    assert np.abs(plain[:, 0] - (WIDTH - image[:, 0])).max() < 1e-6
    assert np.abs(plain[:, 1] - image[:, 1]).max() < 1e-6


def drone_path(level):
    """Return (300, 2): x and y of the only moving entity of a level while the ninja stands still."""
    movers = Session(level).record(bytes(300)).movers
    return np.column_stack([movers["x"][:, 0], movers["y"][:, 0]])


@pytest.mark.parametrize("name", [kind.name for kind in KINDS if kind.name in ("launch_pad", "one_way", "thwump")])
@pytest.mark.parametrize("orientation", range(8))
def test_what_faces_a_direction_faces_the_other_side(name, orientation):
    level = build_room(f"{name} 60 56 {orientation}", spawn=(56, 58))
    plain, image = sides(level)
    assert np.abs(plain - image).max() < 1e-6
