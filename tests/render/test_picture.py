"""Pictures for people, and the parts of the world that they show."""

import cv2
import numpy as np
import pytest

from nclone_env.game import kind_name
from nclone_env.level import build_level, pack
from nclone_env.render import PALETTES, WORLD, Area, encoded, level_picture, union, world_picture, zoom_of
from nclone_env.render.picture import used_area
from nclone_env.render.shapes import PAINTS
from nclone_env.replay.text import BAD, GOLD, GOOD
from nclone_env.sim.state import world_at

from .scenes import NO_TILES, make_levels, put_worlds, random_entities, random_scene

EDGE = PALETTES["light"].edge
BARE = {PAINTS["background"].colour, PAINTS["solid"].colour, EDGE}

NOWHERE = np.empty((0, 2))


def colour_at(picture, x, y):
    return tuple(int(channel) for channel in picture[y, x])


def simple_level():
    tiles = np.zeros((23, 42), dtype=np.uint8)
    tiles[12:, :] = 1
    entities = ("gold 60 40", "toggle_mine 80 40", "exit 100 46", "exit_switch 120 46")
    return build_level(*entities, tiles=tiles, spawn=(20, 40))


def test_a_level_before_play():
    picture = level_picture(simple_level())
    assert picture.shape == (600, 1056, 3)
    assert picture.dtype == np.uint8
    assert colour_at(picture, 2, 2) == colour_at(picture, 500, 400) == PAINTS["solid"].colour
    assert colour_at(picture, 500, 100) == PAINTS["background"].colour
    assert colour_at(picture, 360, 240) == PAINTS["gold"].colour
    assert colour_at(picture, 600 - 3, 276 - 4) == PALETTES["light"].paints["door_panel"]
    assert colour_at(picture, 720, 276) == PALETTES["light"].paints["lamp"]
    assert colour_at(picture, 120, 238) == PAINTS["ninja"].colour


def test_a_level_is_drawn_as_its_raw_one():
    level = simple_level()
    np.testing.assert_array_equal(level_picture(level), level_picture(level.raw))


def test_a_world_equals_its_level_before_play():
    level = simple_level()
    levels = pack([level])
    worlds = put_worlds(levels, [(120.0, 240.0, 0, 0, 1)])
    np.testing.assert_array_equal(world_picture(levels.arrays, worlds, 0), level_picture(level))
    world_at(worlds, 0).entity_states[0] = 1
    rows, columns = np.nonzero((world_picture(levels.arrays, worlds, 0) != level_picture(level)).any(2))
    assert abs(rows - 239.5).max() < 6
    assert abs(columns - 359.5).max() < 6


def test_a_world_of_all_types_equals_its_level_before_play():
    """On a lattice, so that nothing lies on anything else; all but lasers, whose beams begin with play."""
    draw = np.random.default_rng(2)
    lines = [line.split() for line in random_entities(draw, 60) if not line.startswith("laser_turret")]
    entities = [
        f"{name} {10 + 5 * (number % 32)} {10 + 5 * (number // 32)} {orientation} {mode}"
        for number, (name, _, _, orientation, mode) in enumerate(lines)
    ]
    levels = make_levels((NO_TILES, entities))
    worlds = put_worlds(levels, [(120.0, 240.0, 0, 0, 1)])
    for slot, entity in enumerate(levels.arrays.entities):
        if entity["type"] in (12, 13, 14, 15, 26):  # as the simulator starts drones
            world_at(worlds, 0).entity_states[slot] = entity["orientation"] >> 1
    np.testing.assert_array_equal(world_picture(levels.arrays, worlds, 0), level_picture(levels.levels[0]))


def test_what_moves_is_drawn_where_it_is():
    levels = make_levels((NO_TILES, ["bounce_block 60 40"]))
    worlds = put_worlds(levels, [(120.0, 240.0, 0, 0, 1)])
    world_at(worlds, 0).movers[0]["x"] = 480.0
    expected = level_picture(make_levels((NO_TILES, ["bounce_block 80 40"])).levels[0])
    np.testing.assert_array_equal(world_picture(levels.arrays, worlds, 0), expected)


def test_shooters_look_different_before_play():
    kinds = (12, 13, 15, 18, 19, 22, 23)
    picture = level_picture(build_level(*(f"{kind_name(kind)} {5 * kind} 50" for kind in kinds), spawn=(20, 40)))
    stamps = {picture[288:312, 30 * kind - 12 : 30 * kind + 12].tobytes() for kind in kinds}
    assert len(stamps) == 7


@pytest.mark.parametrize(("scale", "shape"), [(0.5, (300, 528, 3)), (1.5, (900, 1584, 3)), (2.0, (1200, 2112, 3))])
def test_the_scale_changes_the_size_and_keeps_the_picture(scale, shape):
    levels, worlds = random_scene(4)
    picture = world_picture(levels, worlds, 0, scale)
    assert picture.shape == shape
    assert abs(picture.mean() - world_picture(levels, worlds, 0).mean()) < 1


def colours(picture):
    """Return the colours of a picture; of numbers, as NumPy sorts rows ten times as slowly."""
    numbers = np.unique(picture.astype(np.int64) @ (1 << 16, 1 << 8, 1))
    return {(number >> 16, number >> 8 & 255, number & 255) for number in numbers.tolist()}


def test_a_ninja_outside_the_world_is_left_out():
    levels = make_levels((NO_TILES, []))
    worlds = put_worlds(levels, [(500.0, 9000.0, 0, 6, 1), (-4.0, 590.0, 0, 6, -1)])
    empty, partly = world_picture(levels.arrays, worlds, 0), world_picture(levels.arrays, worlds, 1)
    rows, columns = np.nonzero((empty != partly).any(2))
    assert len(rows) > 20
    assert columns.max() < 8
    assert colours(empty) <= BARE
    assert not colours(partly) <= BARE


def test_walls_have_an_edge_line_inside_of_them_and_only_towards_air():
    picture = level_picture(simple_level())
    wall, air = PAINTS["solid"].colour, PAINTS["background"].colour
    assert colour_at(picture, 500, 311) == air  # the floor begins at y = 312
    assert colour_at(picture, 500, 312) == colour_at(picture, 500, 313) == EDGE
    assert colour_at(picture, 500, 315) == wall
    assert (picture[316:, 4:-4] == wall).all()


def test_the_edge_of_a_slope_lies_inside_the_wall():
    tiles = np.zeros((23, 42), dtype=np.uint8)
    tiles[10, 10] = 6  # solid above the diagonal from lower left to upper right
    picture = level_picture(build_level(tiles=tiles, spawn=(20, 40)).raw)[264:288, 264:288]
    rows, columns = np.mgrid[:24, :24]
    beyond = rows + columns > 25
    assert (picture[beyond] == PAINTS["background"].colour).all()
    assert (picture[(rows + columns < 18) & (rows > 2) & (columns > 2)] == PAINTS["solid"].colour).all()


@pytest.mark.parametrize("below", [0, 1])
def test_a_light_rim_surrounds_the_ninja_on_walls_and_on_air(below):
    tiles = np.full((23, 42), below, dtype=np.uint8)
    levels = make_levels((tiles, []))
    around = world_picture(levels.arrays, put_worlds(levels, [(500.0, 300.0, 0, 0, 1)]), 0)[286:314, 486:514]
    dark = np.argwhere(around.max(axis=2) < 60)
    assert len(dark) > 80
    lightest = [around[max(y - 4, 0) : y + 5, max(x - 4, 0) : x + 5].min(axis=2).max() for y, x in dark]
    assert np.mean(np.array(lightest) > 235) > 0.9


def test_a_cropped_picture_shows_what_is_used_and_a_cell_of_wall():
    tiles = np.ones((23, 42), dtype=np.uint8)
    tiles[9:12, 4:20] = 0
    level = build_level("gold 60 46", "gold 150 46", tiles=tiles, spawn=(32, 44))
    whole, cropped = level_picture(level), level_picture(level, crop=True)
    assert cropped.shape == (5 * 24, 35 * 24, 3)  # the gold in the wall at x = 900 counts
    np.testing.assert_array_equal(cropped, whole[9 * 24 : 14 * 24, 4 * 24 : 39 * 24])
    assert (level_picture(level, 0.5, crop=True).shape) == (60, 420, 3)


def door(state, theme="light"):
    """Return the picture of an exit and its switch, closed or open, as grey levels (24, 24) each."""
    levels = make_levels((NO_TILES, ["exit 100 46", "exit_switch 120 46"]))
    worlds = put_worlds(levels, [(120.0, 240.0, 0, 0, 1)])
    world_at(worlds, 0).entity_states[:2] = state
    picture = world_picture(levels.arrays, worlds, 0, theme=theme)
    grey = picture @ (0.299, 0.587, 0.114)
    return grey[264:288, 588:612], grey[264:288, 708:732]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_open_and_closed_doors_differ_in_grey(theme):
    (closed, present), (opened, taken) = door(0, theme), door(1, theme)
    inside = slice(6, 24), slice(9, 20)
    assert abs(opened[inside].mean() - closed[inside].mean()) >= 40
    assert abs(opened.mean() - closed.mean()) >= 40
    assert abs(present[6:18, 6:18].mean() - taken[6:18, 6:18].mean()) >= 40


def test_the_switch_is_18_pixels_wide():
    present, _ = door(0)[1], None
    background = PALETTES["light"].paints["background"] @ np.array((0.299, 0.587, 0.114))
    rows, columns = np.nonzero(abs(present - background) > 40)
    assert np.ptp(rows) + 1 == np.ptp(columns) + 1 == 18


def seen(colour, matrix):
    """Return a colour as people with a colour vision deficiency see it (Machado et al., 2009)."""
    linear = (np.array(colour) / 255) ** 2.2
    return 255 * (matrix @ linear).clip(0, 1) ** (1 / 2.2)


PROTANOPIA = np.array(
    [(0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)]
)
DEUTERANOPIA = np.array(
    [(0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.01182, 0.04294, 0.968881)]
)
OPPOSITES = [
    ("mine", "safe_mine"),
    ("mine", "stepped_mine"),
    ("locked_door", "trap_door"),
    ("lock", "trap_light"),
    ("door_leaf", "door_light"),
    ("gold", "mine"),
    ("headband", "ninja"),
]


@pytest.mark.parametrize("matrix", [PROTANOPIA, DEUTERANOPIA], ids=["protanopia", "deuteranopia"])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_opposites_differ_for_people_who_see_red_and_green_alike(theme, matrix):
    paints = PALETTES[theme].paints
    pairs = [(paints[one], paints[other]) for one, other in OPPOSITES] + [(GOOD, BAD), (GOOD, GOLD)]
    distances = [np.linalg.norm(seen(one, matrix) - seen(other, matrix)) for one, other in pairs]
    assert min(distances) > 40
    red, green = (seen(colour, DEUTERANOPIA) for colour in ((118, 66, 92), (38, 92, 92)))
    assert np.linalg.norm(red - green) < 40, "not so all pairs"


def test_a_part_of_the_world_is_cut_from_the_whole():
    levels, worlds = random_scene(7)
    whole, area = world_picture(levels, worlds, 0, 2.0), Area(96, 48, 480, 264)
    part = world_picture(levels, worlds, 0, 2.0, area)
    np.testing.assert_array_equal(part, whole[96:624, 192:1152])


def test_themes_show_the_same_with_other_colours():
    levels, worlds = random_scene(7)
    light, dark = (world_picture(levels, worlds, 0, theme=theme) for theme in ("light", "dark"))
    assert light.shape == dark.shape
    for theme, picture in (("light", light), ("dark", dark)):
        air = (picture == PALETTES[theme].paints["background"]).all(axis=2)
        assert air.mean() > 0.1
    assert (light != dark).any(axis=2).mean() > 0.5


def test_ghosts_are_translucent_and_below_the_ninja():
    levels = make_levels((NO_TILES, []))
    worlds = put_worlds(levels, [(500.0, 300.0, 0, 0, 1), (560.0, 320.0, 0, 0, 1)])
    bare = world_picture(levels.arrays, worlds, 0)
    ghostly = world_picture(levels.arrays, worlds, 0, ghosts=[worlds.ninjas[1]])
    rows, columns = np.nonzero((bare != ghostly).any(2))
    assert abs(rows - 320).max() <= 12
    assert abs(columns - 560).max() <= 12
    solid = world_picture(levels.arrays, worlds, 1)
    assert 60 < ghostly[308:332, 548:572].min() < bare[308:332, 548:572].min()
    assert solid[308:332, 548:572].min() < 30
    below = world_picture(levels.arrays, worlds, 0, ghosts=[worlds.ninjas[0]])
    dark = (bare < 30).all(2)
    np.testing.assert_array_equal(below[dark], bare[dark])


@pytest.mark.parametrize("suffix", [".png", ".webp"])
def test_files_have_the_same_pixels(suffix, tmp_path):
    picture = np.random.default_rng(0).integers(0, 256, (12, 20, 3), np.uint8)
    path = tmp_path / f"x{suffix}"
    path.write_bytes(encoded(picture, suffix))
    read = cv2.imread(str(path))
    assert (read[:, :, ::-1] == picture).all()
    assert not (read == picture).all()


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
