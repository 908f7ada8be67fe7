"""The picture kernels against a slow oracle that shares only the glyphs with them."""

from __future__ import annotations

import math

import cv2
import numpy as np
import pytest

from nclone_env.render.arrays import PHASES, SCALE_X, SCALE_Y
from nclone_env.render.compose import write_global_view, write_player_frame
from nclone_env.render.glyphs import glyphs, static_layers
from nclone_env.render.shapes import PAINTS
from tests.render.fake import bordered, make_levels, make_worlds, random_scene

SOLID = PAINTS["solid"].grey


def player_frame(levels, worlds, index, size=128):
    out = np.full((size, size, 1), 7, dtype=np.uint8)
    write_player_frame(levels, worlds, index, glyphs(), out)
    return out[..., 0]


def global_view(levels, worlds, index):
    out = np.full((128, 256, 1), 7, dtype=np.uint8)
    write_global_view(levels, static_layers(levels), worlds, index, glyphs(), out)
    return out[..., 0]


def full_grey(tiles):
    return np.block([[glyphs().tiles[tile] for tile in row] for row in tiles])


def drawn(levels, worlds, index):
    """Return (kind, x, y) of everything drawn, in order, the ninja last."""
    head = worlds.heads[index]
    header = levels.header[head["level"]]
    result = []
    for number in range(header["entity_count"]):
        entity = levels.entities[header["first_entity"] + number]
        kind = glyphs().kinds[entity["type"], worlds.entity_states[index, number]]
        if kind >= 0:
            result.append((kind, float(entity["x"]), float(entity["y"])))
    column = head["state"] + (10 if head["facing"] > 0 else 0)
    return [*result, (glyphs().kinds[0, column], float(head["x"]), float(head["y"]))]


def blended(below, stamp):
    """Return below (h, w) under a stamp (2, h, w), rounded half up in exact arithmetic."""
    alpha, ink = stamp.astype(np.int64)
    return ((2 * below.astype(np.int64) * (255 - alpha) + 255) // 510 + ink).astype(np.uint8)


def oracle_player_frame(levels, worlds, index, size):
    head = worlds.heads[index]
    margin = 2000
    canvas = np.pad(full_grey(levels.tiles[head["level"]]), margin, constant_values=SOLID)
    for kind, x, y in drawn(levels, worlds, index):
        top, left = margin + math.floor(y) - 12, margin + math.floor(x) - 12
        part = canvas[top : top + 24, left : left + 24]
        part[:] = blended(part, glyphs().stamps[kind, 0])
    top, left = margin + math.floor(head["y"]) - size // 2, margin + math.floor(head["x"]) - size // 2
    return canvas[top : top + size, left : left + size]


def oracle_global_view(levels, worlds, index):
    tiles = full_grey(levels.tiles[worlds.heads[index]["level"]])
    canvas = np.pad(cv2.resize(tiles, (256, 128), interpolation=cv2.INTER_AREA), 300)
    for kind, x, y in drawn(levels, worlds, index):
        quarter_x, quarter_y = math.floor(x * PHASES / SCALE_X + 0.5), math.floor(y * PHASES / SCALE_Y + 0.5)
        left, top = 300 + quarter_x // 4 - 3, 300 + quarter_y // 4 - 3
        part = canvas[top : top + 7, left : left + 7]
        part[:] = blended(part, glyphs().global_stamps[kind, quarter_y % 4 * 4 + quarter_x % 4])
    return canvas[300:428, 300:556]


@pytest.mark.parametrize("size", [16, 64, 101, 128, 130])
def test_player_frame_equals_the_oracle(size):
    levels, worlds = random_scene(seed=size, count=12)
    for index in range(12):
        expected = oracle_player_frame(levels, worlds, index, size)
        np.testing.assert_array_equal(player_frame(levels, worlds, index, size), expected)


@pytest.mark.parametrize("seed", [1, 2])
def test_global_view_equals_the_oracle(seed):
    levels, worlds = random_scene(seed, count=12)
    for index in range(12):
        np.testing.assert_array_equal(global_view(levels, worlds, index), oracle_global_view(levels, worlds, index))


def test_different_scenes_give_different_pictures():
    first, second = random_scene(1), random_scene(2)
    assert (player_frame(*first, 0) != player_frame(*second, 0)).any()
    assert (global_view(*first, 0) != global_view(*second, 0)).any()


@pytest.mark.parametrize(("x", "y"), [(500.0, 10558.0), (-5000.5, 300.0), (1e6, -1e6)])
def test_far_outside_everything_is_solid_but_the_ninja(x, y):
    levels = make_levels([bordered(np.zeros((23, 42)))], [[]])
    worlds = make_worlds([(x, y, 0, 4, 1)], [[]])
    frame = player_frame(levels, worlds, 0)
    assert (frame[:, :52] == SOLID).all()
    assert (frame[:52] == SOLID).all()
    assert (frame[52:76, 52:76] == 0).any()
    np.testing.assert_array_equal(global_view(levels, worlds, 0), static_layers(levels)[0])


def test_nothing_is_written_outside_the_output():
    levels, worlds = random_scene(seed=5, count=8)
    for index in range(8):
        batch = np.full((3, 101, 101, 1), 7, dtype=np.uint8)
        write_player_frame(levels, worlds, index, glyphs(), batch[1])
        assert (batch[[0, 2]] == 7).all()
        views = np.full((3, 128, 256, 1), 7, dtype=np.uint8)
        write_global_view(levels, static_layers(levels), worlds, index, glyphs(), views[1])
        assert (views[[0, 2]] == 7).all()


def one_entity(entity_type, state, ninja_state=0, facing=1):
    levels = make_levels([bordered(np.zeros((23, 42)))], [[(360.0, 306.0, entity_type)]])
    return levels, make_worlds([(330.25, 300.75, 0, ninja_state, facing)], [[state]])


@pytest.mark.parametrize("draw", [player_frame, global_view])
def test_states_and_kinds_are_distinct(draw):
    appearances = [(1, 0), (1, 1), (1, 2), (2, 0), (2, 1), (3, 0), (3, 1), (4, 0), (4, 1)]
    pictures = {draw(*one_entity(*appearance), 0).tobytes() for appearance in appearances}
    assert len(pictures) == len(appearances)


def test_ninja_states_and_facings_are_distinct():
    pictures = {
        player_frame(*one_entity(2, 1, state, facing), 0).tobytes()
        for state in (0, 1, 2, 3, 4, 5, 6, 8)
        for facing in (-1, 1)
    }
    assert len(pictures) == 16


def test_toggle_mines_look_like_mines():
    np.testing.assert_array_equal(player_frame(*one_entity(21, 2), 0), player_frame(*one_entity(1, 2), 0))


def test_unknown_types_states_and_tiles_draw_nothing():
    nothing = player_frame(*one_entity(2, 1), 0)
    for entity_type, state in ((0, 0), (17, 0), (28, 3), (29, 0), (255, 255), (1, 200)):
        np.testing.assert_array_equal(player_frame(*one_entity(entity_type, state), 0), nothing)
    levels, worlds = one_entity(2, 1)
    tiles = levels.tiles.copy()
    tiles[0, 12, 14] = 38
    np.testing.assert_array_equal(player_frame(levels._replace(tiles=tiles), worlds, 0), nothing)


def test_the_picture_changes_only_where_the_entity_is():
    present, taken = (player_frame(*one_entity(2, state), 0) for state in (0, 1))
    rows, columns = np.nonzero(present != taken)
    centre_x, centre_y = 64 + 360 - 330, 64 + 306 - 300
    assert (rows.min(), rows.max()) == (centre_y - 5, centre_y + 4)
    assert (columns.min(), columns.max()) == (centre_x - 5, centre_x + 4)
    present, taken = (global_view(*one_entity(2, state), 0) for state in (0, 1))
    rows, columns = np.nonzero(present != taken)
    assert abs(rows - 306 / SCALE_Y).max() < 3
    assert abs(columns - 360 / SCALE_X).max() < 3


def test_the_global_view_averages_the_world():
    """A coarse pixel differs from the exact area average by the phase (an eighth of a pixel) and rounding."""
    levels, worlds = one_entity(3, 1)
    fine = full_grey(levels.tiles[0])
    for kind, x, y in drawn(levels, worlds, 0):
        part = fine[math.floor(y) - 12 : math.floor(y) + 12, math.floor(x) - 12 : math.floor(x) + 12]
        part[:] = blended(part, glyphs().stamps[kind, 0])
    exact = cv2.resize(fine.astype(np.float64), (256, 128), interpolation=cv2.INTER_AREA)
    error = (global_view(levels, worlds, 0) - exact)[20:100, 20:200]  # without the level's frame
    assert abs(error.sum()) < 20
    assert abs(error).max() < 45


def test_static_layers_are_read_only_and_equal_an_exact_area_average():
    levels, _ = random_scene(3)
    layers = static_layers(levels)
    assert layers.shape == (2, 128, 256)
    assert not layers.flags.writeable
    fine = full_grey(levels.tiles[1]).astype(np.float64)
    across = fine.repeat(8, axis=1).reshape(600, 256, 33).mean(2)  # 1056 * 8 = 256 * 33
    exact = across.repeat(16, axis=0).reshape(128, 75, 256).mean(1)  # 600 * 16 = 128 * 75
    assert abs(layers[1] - exact).max() <= 0.51
