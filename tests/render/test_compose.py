"""The picture kernels against a slow oracle that shares only the glyphs with them."""

import math

import cv2
import numpy as np
import pytest

from nclone_env.game import GOLD, LASER_TURRET, MINE, kind_name
from nclone_env.render.shapes import PAINTS
from nclone_env.sim.entities.laser.motion import BEAM_ANGLE
from nclone_env.sim.state import world_at

from .oracle import blended, drawn, full_grey, full_size
from .scenes import NO_TILES, frame_of, make_levels, pictures_of, put_worlds, view_of

SOLID = PAINTS["solid"].grey
SCALE_X, SCALE_Y = 4.125, 4.6875


def player_frame(levels, worlds, index):
    return frame_of(levels, worlds, index, pictures_of(levels), 128)


def global_view(levels, worlds, index):
    return view_of(levels, worlds, index, pictures_of(levels))


def in_empty_level(ninja, *entities):
    levels = make_levels((NO_TILES, entities))
    return levels.arrays, put_worlds(levels, [ninja])


def one_entity(entity_type, state=0, orientation=0, ninja_state=0, facing=1):
    """Return a level with one entity, and a door far away so that its trigger can be shown alone."""
    ninja = (330.25, 300.75, 0, ninja_state, facing)
    entities = [f"{kind_name(max(entity_type, 1))} 60 51 {orientation}"]
    if entity_type in (3, 6, 8):
        entities.append(f"{kind_name(entity_type + 1)} 120 80")
    if entity_type in (4, 7, 9):
        entities = [f"{kind_name(entity_type - 1)} 120 80 {orientation}", f"{kind_name(entity_type)} 60 51"]
    levels, worlds = in_empty_level(ninja, *entities)
    world_at(worlds, 0).entity_states[1 if entity_type == 4 else 0] = state
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


def test_invisible_bits_of_a_state_change_nothing():
    for kind, state, bits in ((28, 2, 4), (14, 3, 4), (12, 10, 112), (18, 16, 8), (19, 8, 64)):
        np.testing.assert_array_equal(
            player_frame(*inactive(kind, state), 0), player_frame(*inactive(kind, state | bits), 0)
        )


@pytest.mark.parametrize("draw", [player_frame, global_view])
def test_phases_of_turrets_and_drones_are_distinct(draw):
    looks = [(kind, phase << 2 | heading) for kind in (12, 13) for phase in range(3) for heading in range(4)]
    looks += [(15, 0), (15, 4), (18, 0), (18, 1), (18, 20), (19, 0), (19, 1), (19, 185), (22, 0), (22, 3)]
    assert len({draw(*inactive(*look), 0).tobytes() for look in looks}) == len(looks)
    for kind, first, second in ((19, 0, 200), (12, 1, 13), (22, 2, 3), (18, 1, 15)):
        np.testing.assert_array_equal(draw(*inactive(kind, first), 0), draw(*inactive(kind, second), 0))


@pytest.mark.parametrize("draw", [player_frame, global_view])
def test_a_laser_points_where_its_beam_does(draw):
    levels, worlds = inactive(LASER_TURRET, 0)

    def pointing(angle):
        world_at(worlds, 0).movers[0][BEAM_ANGLE] = angle
        return draw(levels, worlds, 0)

    eighths = [(eighth if eighth < 4 else eighth - 8) * math.pi / 4 for eighth in range(8)]
    pictures = [pointing(angle) for angle in eighths]
    assert len({picture.tobytes() for picture in pictures}) == 8
    for angle, picture in zip(eighths, pictures, strict=True):
        np.testing.assert_array_equal(pointing(angle + 0.3), picture)
        np.testing.assert_array_equal(pointing(angle - 0.3), picture)


@pytest.mark.parametrize("draw", [player_frame, global_view])
def test_a_turret_stays_while_its_rocket_flies(draw):
    empty, idle, flying = (draw(*inactive(*look), 0).astype(int) for look in ((2, 1), (18, 0), (18, 20)))
    ring = idle != empty
    assert ring.sum() > 8
    assert ((flying != empty) >= ring).all()


def inactive(entity_type, state, orientation=0):
    """Return a level with one entity that does not act, so that no beam is drawn."""
    levels, worlds = one_entity(entity_type, state, orientation)
    header = levels.header.copy()
    header["run_count"] = 0
    return levels._replace(header=header), worlds


def test_unknown_states_and_tiles_draw_nothing():
    nothing = player_frame(*one_entity(2, 1), 0)
    for entity_type, state in ((MINE, 200), (MINE, 3), (GOLD, 255)):
        np.testing.assert_array_equal(player_frame(*inactive(entity_type, state), 0), nothing)
    levels, worlds = one_entity(2, 1)
    tiles = levels.tiles.copy()
    tiles[0, 12, 14] = 38
    np.testing.assert_array_equal(player_frame(levels._replace(tiles=tiles), worlds, 0), nothing)


def test_any_orientation_of_a_thwump_is_drawn():
    np.testing.assert_array_equal(player_frame(*one_entity(20, 0, 77), 0), player_frame(*one_entity(20, 0, 6), 0))


def test_the_global_view_averages_the_world():
    """A coarse pixel differs from the exact area average by the phase (an eighth of a pixel) and rounding."""
    levels, worlds = one_entity(3, 1)
    fine = full_grey(levels.tiles[0])
    for kind, x, y in drawn(levels, worlds, 0):
        part = fine[math.floor(y) - 12 : math.floor(y) + 12, math.floor(x) - 12 : math.floor(x) + 12]
        part[:] = blended(part, full_size().stamps[kind, 0])
    exact = cv2.resize(fine.astype(np.float64), (256, 128), interpolation=cv2.INTER_AREA)
    error = (global_view(levels, worlds, 0) - exact)[20:100, 20:200]  # without the level's frame
    assert abs(error.sum()) < 20
    assert abs(error).max() < 45


def test_an_open_exit_is_brighter_than_a_closed_one_in_the_global_view():
    levels = make_levels((NO_TILES, ["exit 100 46", "exit_switch 120 46"]))
    worlds = put_worlds(levels, [(120.0, 240.0, 0, 0, 1)] * 2)
    for index in range(2):
        world_at(worlds, index).entity_states[:2] = index
    closed, opened = (global_view(levels.arrays, worlds, index).astype(int) for index in (0, 1))
    leaf = slice(57, 61), slice(143, 148)
    assert (opened - closed)[leaf].min() >= 40
