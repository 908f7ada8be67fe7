"""The picture kernels against a slow oracle that shares only the glyphs with them."""

from __future__ import annotations

import math
from functools import lru_cache

import cv2
import numpy as np
import pytest

from nclone_env.level.entities import MOVER_TYPES
from nclone_env.render.arrays import PHASES, SCALE_X, SCALE_Y
from nclone_env.render.compose import write_global_view, write_player_frame
from nclone_env.render.glyphs import glyphs, static_layers
from nclone_env.render.looks import appearance, layers_of
from nclone_env.render.raster import GREYS, stamp
from nclone_env.render.shapes import PAINTS

from .bands import put_beams
from .scenes import NO_TILES, make_levels, put_worlds, random_scene

SOLID = PAINTS["solid"].grey
MOVING = sorted(MOVER_TYPES)
SWITCH_OF = {6: 7, 8: 9}


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


@lru_cache(maxsize=1000)
def kind_number(entity_type, orientation, state):
    """Return the kind by its layers, not by the table that the kernels use; None if it is not drawn."""
    shown = appearance(entity_type, orientation, state)
    if shown is None:
        return None
    grey = stamp(layers_of(shown), GREYS)
    pixels = np.floor(np.stack([255 * grey[0], grey[1][..., 0]]) + 0.5).astype(np.uint8)
    return int(np.flatnonzero((glyphs().stamps[:, 0] == pixels).all((1, 2, 3)))[0])


def drawn(levels, worlds, index):
    """Return (kind, x, y) of everything drawn, in order: doors, entities, the ninja."""
    head = worlds.heads[index]
    header = levels.header[head["level"]]
    states = worlds.entity_states[index]
    found = []
    for number in range(header["door_count"]):
        door = levels.doors[header["first_door"] + number]
        found.append((door["type"], 0 if door["vertical"] else 6, states[door["owner"]], door))
    for number in range(header["entity_count"]):
        entity = levels.entities[header["first_entity"] + number]
        where = worlds.movers[index, entity["mover"]] if entity["type"] in MOVING else entity
        kind, orientation = int(entity["type"]), entity["orientation"]
        if kind == 18 and states[number] >= 16:
            found.append((18, 0, 0, entity))
        if kind == 23 and entity["mover"] >= 0:
            orientation = round(float(worlds.movers[index, entity["mover"]]["uy"]) / (math.pi / 4)) % 8
        if kind != 5:
            found.append((SWITCH_OF.get(kind, kind), orientation, states[number], where))
    found.append((0, 0 if head["facing"] > 0 else 4, head["state"], head))
    result = [(kind_number(int(a), int(b), int(c)), float(at["x"]), float(at["y"])) for a, b, c, at in found]
    return [item for item in result if item[0] is not None]


def blended(below, stamp):
    """Return below (h, w) under a stamp (2, h, w), rounded half up in exact arithmetic."""
    alpha, ink = stamp.astype(np.int64)
    return ((2 * below.astype(np.int64) * (255 - alpha) + 255) // 510 + ink).astype(np.uint8)


def oracle_player_frame(levels, worlds, index, size):
    head = worlds.heads[index]
    margin = 2000
    canvas = np.pad(full_grey(levels.tiles[head["level"]]), margin, constant_values=SOLID)
    left, top = math.floor(head["x"]) - size // 2, math.floor(head["y"]) - size // 2
    frame = canvas[margin + top :, margin + left :][:size, :size]
    put_beams(frame, levels, worlds, index, float(left), float(top))
    for kind, x, y in drawn(levels, worlds, index):
        top, left = margin + math.floor(y) - 12, margin + math.floor(x) - 12
        part = canvas[top : top + 24, left : left + 24]
        part[:] = blended(part, glyphs().stamps[kind, 0])
    return frame


def oracle_global_view(levels, worlds, index):
    tiles = full_grey(levels.tiles[worlds.heads[index]["level"]])
    canvas = np.pad(cv2.resize(tiles, (256, 128), interpolation=cv2.INTER_AREA), 300)
    put_beams(canvas[300:428, 300:556], levels, worlds, index, 0.0, 0.0, 1.0 / SCALE_X, 1.0 / SCALE_Y)
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


def in_empty_level(ninja, *records):
    levels = make_levels((NO_TILES, records))
    return levels.arrays, put_worlds(levels, [ninja])


@pytest.mark.parametrize(("x", "y"), [(500.0, 10558.0), (-5000.5, 300.0), (1e6, -1e6)])
def test_far_outside_everything_is_solid_but_the_ninja(x, y):
    levels, worlds = in_empty_level((x, y, 0, 4, 1))
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


def one_entity(entity_type, state=0, orientation=0, ninja_state=0, facing=1):
    """Return a level with one entity, and a door far away so that its trigger can be shown alone."""
    ninja = (330.25, 300.75, 0, ninja_state, facing)
    records = [(max(entity_type, 1), 60, 51, orientation, 0)]
    if entity_type in (3, 6, 8):
        records.append((entity_type + 1, 120, 80, 0, 0))
    if entity_type in (4, 7, 9):
        records = [(entity_type - 1, 120, 80, orientation, 0), (entity_type, 60, 51, 0, 0)]
    levels, worlds = in_empty_level(ninja, *records)
    worlds.entity_states[0, 1 if entity_type == 4 else 0] = state
    return levels, worlds


LOOKS = [(kind, state, 0) for kind in (1, 3, 4, 20, 28) for state in range(2)]
LOOKS += [(1, 2, 0), (2, 0, 0), (2, 1, 0), (7, 0, 0), (9, 0, 0), (16, 0, 0), (16, 1, 0), (16, 2, 0), (17, 0, 0)]
LOOKS += [(kind, state, orientation) for kind in (5, 6, 8) for state in (0, 1) for orientation in (0, 2)]
LOOKS += [(kind, 0, orientation) for kind in (10, 11) for orientation in range(8)]
LOOKS += [(kind, heading, 0) for kind in (14, 26) for heading in range(4)]
LOOKS += [(20, state, orientation) for state in range(3) for orientation in (2, 4, 6)]
LOOKS += [(20, 2, 0), (24, 0, 0), (24, 1, 0), (25, 0, 0), (28, 2, 0), (28, 3, 0)]


@pytest.mark.parametrize(("draw", "least"), [(player_frame, 100), (global_view, 20)])
def test_kinds_and_states_are_distinct(draw, least):
    """Every two differ by many grey levels in sum."""
    pictures = np.array([draw(*one_entity(*look), 0)[40:100, :128].ravel() for look in LOOKS], dtype=np.int64)
    for number, picture in enumerate(pictures):
        differences = abs(pictures - picture).sum(1)
        differences[number] = least
        assert differences.min() >= least, (LOOKS[number], LOOKS[differences.argmin()], differences.min())


def test_ninja_states_and_facings_are_distinct():
    pictures = {
        player_frame(*one_entity(2, 1, 0, state, facing), 0).tobytes()
        for state in (0, 1, 2, 3, 4, 5, 6, 8)
        for facing in (-1, 1)
    }
    assert len(pictures) == 16


def test_toggle_mines_look_like_mines():
    np.testing.assert_array_equal(player_frame(*one_entity(21, 2), 0), player_frame(*one_entity(1, 2), 0))


def test_bits_of_a_state_that_nobody_sees_change_nothing():
    for kind, state, bits in ((28, 2, 4), (14, 3, 4), (12, 10, 112), (18, 16, 8), (19, 8, 64)):
        np.testing.assert_array_equal(
            player_frame(*substituted(kind, state), 0), player_frame(*substituted(kind, state | bits), 0)
        )


@pytest.mark.parametrize("draw", [player_frame, global_view])
def test_phases_of_turrets_and_drones_are_distinct(draw):
    looks = [(kind, phase << 2 | heading) for kind in (12, 13) for phase in range(3) for heading in range(4)]
    looks += [(15, 0), (15, 4), (18, 0), (18, 1), (18, 20), (19, 0), (19, 1), (19, 185), (22, 0), (22, 3)]
    assert len({draw(*substituted(*look), 0).tobytes() for look in looks}) == len(looks)
    for kind, first, second in ((19, 0, 200), (12, 1, 13), (22, 2, 3), (18, 1, 15)):
        np.testing.assert_array_equal(draw(*substituted(kind, first), 0), draw(*substituted(kind, second), 0))


@pytest.mark.parametrize("draw", [player_frame, global_view])
def test_a_laser_points_where_its_beam_does(draw):
    levels, worlds = one_entity(17)  # has a mover
    entities, header = levels.entities.copy(), levels.header.copy()
    entities["type"], header["run_count"] = 23, 0  # as if it did not act: no beam
    levels = levels._replace(header=header)
    for eighth in range(8):
        worlds.movers[0, 0]["uy"] = (eighth if eighth < 4 else eighth - 8) * math.pi / 4 + 0.3
        pointing = draw(levels._replace(entities=entities), worlds, 0)
        np.testing.assert_array_equal(pointing, draw(*substituted(23, 0, eighth), 0))


@pytest.mark.parametrize("draw", [player_frame, global_view])
def test_a_turret_stays_while_its_rocket_flies(draw):
    empty, idle, flying = (draw(*substituted(*look), 0).astype(int) for look in ((2, 1), (18, 0), (18, 20)))
    ring = idle != empty
    assert ring.sum() > 8
    assert ((flying != empty) >= ring).all()


def substituted(entity_type, state, orientation=0):
    """Return a level whose one entity is declared to be of any type, also one that is not modelled."""
    levels, worlds = one_entity(1, state, orientation)
    entities = levels.entities.copy()
    entities["type"] = entity_type
    return levels._replace(entities=entities), worlds


def test_types_that_are_not_modelled_yet_are_drawn():
    pictures = {player_frame(*substituted(kind, 0), 0).tobytes() for kind in (2, 12, 13, 15, 18, 19, 22, 23, 14)}
    assert len(pictures) == 9


def test_unknown_types_states_and_tiles_draw_nothing():
    nothing = player_frame(*one_entity(2, 1), 0)
    for entity_type, state in ((0, 0), (27, 0), (29, 0), (255, 255), (1, 200), (7, 1), (5, 0)):
        np.testing.assert_array_equal(player_frame(*substituted(entity_type, state), 0), nothing)
    levels, worlds = one_entity(2, 1)
    tiles = levels.tiles.copy()
    tiles[0, 12, 14] = 38
    np.testing.assert_array_equal(player_frame(levels._replace(tiles=tiles), worlds, 0), nothing)


def test_any_orientation_of_a_thwump_is_drawn():
    np.testing.assert_array_equal(player_frame(*one_entity(20, 0, 77), 0), player_frame(*one_entity(20, 0, 6), 0))


@pytest.mark.parametrize("draw", [player_frame, global_view])
def test_what_moves_is_drawn_where_it_is(draw):
    for entity_type in MOVING:
        levels, worlds = one_entity(entity_type)
        before = draw(levels, worlds, 0)
        worlds.movers[0, 0]["x"] += 30.0
        worlds.movers[0, 0]["y"] -= 18.0
        moved = one_entity(entity_type)
        entities = moved[0].entities.copy()
        entities[0]["x"] += 30
        entities[0]["y"] -= 18
        after = draw(levels, worlds, 0)
        assert (after != before).any()
        np.testing.assert_array_equal(after, draw(levels._replace(entities=entities), worlds, 0))


def test_a_mover_is_drawn_at_the_pixel_it_is_in():
    levels, worlds = one_entity(17)
    frames = []
    for x in (360.0, 360.99, 359.99):
        worlds.movers[0, 0]["x"] = x
        frames.append(player_frame(levels, worlds, 0))
    np.testing.assert_array_equal(frames[0], frames[1])
    np.testing.assert_array_equal(frames[0][64:, 85:115], frames[2][64:, 84:114])
    phases = set()
    for quarter in range(4):
        worlds.movers[0, 0]["x"] = 360.0 + quarter * SCALE_X / 4
        phases.add(global_view(levels, worlds, 0).tobytes())
    assert len(phases) == 4


def test_a_door_is_drawn_where_it_lies_and_its_switch_where_that_is():
    for kind in (6, 8):
        first, last = (player_frame(*one_entity(kind, state), 0) for state in (0, 1))
        rows, columns = np.nonzero(first != last)
        assert abs(rows - (64 + 306 - 300)).max() <= 12
        assert abs(columns - (64 + 360 - 330)).max() <= 5
        there, used = (player_frame(*one_entity(kind + 1, state), 0) for state in (0, 1))
        rows, columns = np.nonzero(there != used)
        assert abs(rows - (64 + 306 - 300)).max() <= 6
        assert abs(columns - (64 + 360 - 330)).max() <= 6
        np.testing.assert_array_equal(used, player_frame(*one_entity(2, 1), 0))


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
