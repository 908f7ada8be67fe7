"""Mirror images: contents, geometry, and play."""

from __future__ import annotations

import numpy as np
import pytest

from nclone_env.game import INPUT_JUMP, INPUT_LEFT, INPUT_RIGHT, KINDS
from nclone_env.level.build import build_level, build_room, hall_tiles
from nclone_env.level.catalog import basic_sets
from nclone_env.level.compile import HORIZONTAL, VERTICAL, compile_level
from nclone_env.level.load import load_levels
from nclone_env.level.mirror import mirrored
from nclone_env.level.routes.distance import solid_mask
from nclone_env.sim.session import Session
from nclone_env.sim.trajectory import simulate

WIDTH = 1056
BUILT_IN = load_levels(basic_sets())
SWAPPED = np.array(
    [
        code & INPUT_JUMP | (code & INPUT_LEFT and INPUT_RIGHT) | (code & INPUT_RIGHT and INPUT_LEFT)
        for code in range(6)
    ],
    np.uint8,
)


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
    assert np.array_equal(solid_mask(plain.tiles)[:, ::-1], solid_mask(image.tiles))
    assert np.array_equal(plain.grid[HORIZONTAL, :, 87::-1], image.grid[HORIZONTAL, :, :88])
    assert np.array_equal(plain.grid[VERTICAL, :, ::-1], image.grid[VERTICAL])
    assert not np.array_equal(plain.grid, image.grid)


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
