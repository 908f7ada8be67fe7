"""Coverage of shapes, glyphs, and the world at any scale."""

import hashlib
import math

import numpy as np
import pytest

from nclone_env.config import RenderConfig
from nclone_env.game import kind_name
from nclone_env.render.compose import write_global_view, write_player_frame
from nclone_env.render.raster import all_glyphs, area_average, cached_glyphs, static_layers
from nclone_env.sim.state import world_at

from .oracle import SOLID, blended, drawn, full_grey, full_size, oracle_global_view, oracle_player_frame, put_things
from .scenes import NO_TILES, frame_of, make_levels, pictures_of, put_worlds, random_scene, view_of

PRESETS = [RenderConfig(side) for side in (128, 84, 64)]
SIZES = [
    *PRESETS,
    RenderConfig(16, 16.0, (16, 16)),
    RenderConfig(101, 3.3, (97, 191)),
    RenderConfig(512, 4.125, (600, 1056)),
    RenderConfig(130, 1.01, (300, 1056)),
]


def test_glyphs_are_made_once_and_read_only():
    assert all_glyphs() is all_glyphs()
    assert not any(array.flags.writeable for array in all_glyphs())
    assert all(array.flags.c_contiguous for array in all_glyphs())


def test_kinds_are_numbers_of_planes():
    for table in (all_glyphs().appearances, all_glyphs().door_appearances):
        assert table.min() >= -1
        assert table.max() < len(cached_glyphs()["planes"])
    assert (all_glyphs().door_appearances[[5, 6, 8]] >= 0).all()


def shares(step, count, size):
    """Return (count, size): how much of each full-size pixel lies in each pixel of some width."""
    edges = np.arange(count + 1)[:, None] * step
    pixels = np.arange(size)
    return np.clip(np.minimum(edges[1:], pixels + 1) - np.maximum(edges[:-1], pixels), 0.0, None)


def averaged(picture, scale, shape):
    rows, columns = (shares(scale[1 - axis], shape[axis], picture.shape[axis]) for axis in (0, 1))
    return rows @ picture @ columns.T / (scale[0] * scale[1])


def test_the_pictures_of_the_default_sizes_are_these():
    """Both hashes were written down before there were other sizes."""
    frames, views = hashlib.sha256(), hashlib.sha256()
    for seed in (1, 2, 3):
        levels, worlds = random_scene(seed, count=8)
        pictures = pictures_of(levels)
        for index in range(8):
            frames.update(frame_of(levels, worlds, index, pictures, 128).tobytes())
            views.update(view_of(levels, worlds, index, pictures).tobytes())
    assert frames.hexdigest()[:16] == "8bfb5430e5e59609"
    assert views.hexdigest()[:16] == "a2e47d4b66361a76"


@pytest.mark.parametrize("sizes", [*SIZES, *(RenderConfig(side, 1.0) for side in (16, 101, 130))], ids=str)
def test_both_pictures_equal_the_oracle(sizes):
    """Movers and ninjas are at any place, inside and outside of the world."""
    levels, worlds = random_scene(seed=9, count=4)
    pictures = pictures_of(levels, sizes)
    for index in range(4):
        frame = frame_of(levels, worlds, index, pictures, sizes.player_frame_size)
        expected = oracle_player_frame(levels, worlds, index, sizes.player_frame_size, pictures)
        np.testing.assert_array_equal(frame, expected)
        view = view_of(levels, worlds, index, pictures)
        np.testing.assert_array_equal(view, oracle_global_view(levels, worlds, index, pictures))


@pytest.mark.parametrize("scale", [(4.125, 4.6875), (128 / 84, 128 / 84), (2.0, 3.0), (1.0, 1.0), (7.3, 1.9)])
def test_an_average_from_the_integral_is_exact(scale):
    picture = np.random.default_rng(0).integers(0, 256, (60, 91), dtype=np.uint8)
    shape = int(60 / scale[1]), int(91 / scale[0])
    found = area_average(picture, scale, shape)
    np.testing.assert_allclose(found, averaged(picture, scale, shape), atol=1e-9)
    np.testing.assert_array_equal(found, from_the_whole_integral(picture, scale, shape))


def from_the_whole_integral(picture, scale, shape):
    """Return the averages by the same formula from the integral at every pixel: the bits that pictures have."""
    total = np.pad(picture.cumsum(0, dtype=np.int64).cumsum(1), ((1, 0), (1, 0)))
    for axis in (0, 1):
        edges = np.arange(shape[axis] + 1) * scale[1 - axis]
        before = np.minimum(edges.astype(np.int64), picture.shape[axis] - 1)
        after = np.expand_dims(np.minimum(edges - before, 1.0), 1 - axis)
        total = np.diff(total.take(before, axis) * (1.0 - after) + total.take(before + 1, axis) * after, axis=axis)
    return total / (scale[0] * scale[1])


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_layers_are_the_whole_world_averaged_and_beyond_it_solid(sizes):
    levels, _ = random_scene(3)
    padded = np.pad(full_grey(levels.tiles[1]), ((0, 32), (0, 32)), constant_values=SOLID)
    for resolution in pictures_of(levels, sizes)[1:]:
        layers, scale = resolution.layers, resolution.scale
        assert not layers.flags.writeable
        if len(layers):
            exact = averaged(padded, scale, layers.shape[1:])
            assert abs(layers[1] - exact).max() <= 0.5 + 1e-9
            assert 0 <= layers.shape[2] * scale[0] - 1056 < scale[0]
            assert 0 <= layers.shape[1] * scale[1] - 600 < scale[1]
    assert len(pictures_of(levels, sizes).player_frame.layers) == (0 if sizes.pixel_side == 1 else 2)


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_stamps_are_moved_averages_that_cannot_overflow_and_keep_within_their_boxes(sizes):
    levels, _ = random_scene(3)
    fine = full_size().stamps[:, 0].astype(np.float64)
    for resolution in pictures_of(levels, sizes)[1:]:
        stamps, (scale_x, scale_y) = resolution.stamps, resolution.scale
        assert not any(array.flags.writeable for array in resolution)
        assert all(array.flags.c_contiguous for array in resolution)
        alpha, ink = np.moveaxis(stamps, -3, 0).astype(int)
        assert (ink <= alpha).all()
        area, pixels = fine.sum((2, 3)) / (scale_x * scale_y), stamps.shape[3] * stamps.shape[4]
        assert (abs(stamps.sum((3, 4)) - area[:, None]) <= 0.5 * pixels).all()
        for (first_row, end_row, first_column, end_column), kind in zip(resolution.boxes, stamps, strict=True):
            visible = kind[:, 0].copy()
            visible[:, first_row:end_row, first_column:end_column] = 0
            assert not visible.any()


@pytest.mark.parametrize("sizes", [RenderConfig(), *PRESETS], ids=str)
def test_no_two_kinds_have_the_same_picture_but_mines_and_the_dead(sizes):
    """Toggle mines are mines (3); dead, dying and disabled ninjas lie alike, twice two of each facing."""
    levels = make_levels((NO_TILES, [])).arrays
    for resolution in pictures_of(levels, sizes)[1:]:
        stamps = resolution.stamps[:, 0]
        assert len({item.tobytes() for item in stamps}) == len(stamps) - 3 - 4


def spread_out(levels, step):
    """Return one world with an entity of each kind that moves, and a ninja, all at multiples of a step."""
    draw = np.random.default_rng(1)
    worlds = put_worlds(levels, [(403.0 + step, 301.0, 0, 4, 1)])
    for number in range(levels.arrays.header[0]["mover_count"]):
        mover, (aside, down) = world_at(worlds, 0).movers[number], draw.integers(0, 20, 2) * step
        mover["x"], mover["y"] = 130.0 + 60 * number + aside, 150.0 + down
    return worlds


def supersampled(levels, worlds):
    """Return the whole world at twice the full size, for everything at halves of a world pixel."""
    canvas = full_grey(levels.tiles[0]).repeat(2, 0).repeat(2, 1)
    for kind, x, y in drawn(levels, worlds, 0):
        row, column = round(2 * y) - 24, round(2 * x) - 24
        part = canvas[row : row + 48, column : column + 48]
        part[:] = blended(part, full_size().stamps[kind, 0].repeat(2, 1).repeat(2, 2))
    return canvas


@pytest.mark.parametrize(("scale", "size"), [(2.0, 512), (4.0, 256)])
def test_a_reduced_picture_is_the_average_of_the_full_one(scale, size):
    """Everything is at a whole phase, so that only rounding is left.

    Over plain ground, each of the stamp's alpha, its ink and the blended pixel is rounded once at either size: at most
    6 * 0.5 in all.
    """
    kinds = [f"{kind_name(kind)} {40 + 6 * number} 70" for number, kind in enumerate((14, 16, 17, 20, 25, 26, 28))]
    level_set = make_levels((NO_TILES, ["gold 60 80", "mine 90 80", "launch_pad 120 81 1", *kinds]))
    levels, worlds = level_set.arrays, spread_out(level_set, scale / 4)
    expected = averaged(supersampled(levels, worlds), (2 * scale, 2 * scale), (int(600 / scale), int(1056 / scale)))
    pictures = pictures_of(levels, RenderConfig(size, scale))
    frame = frame_of(levels, worlds, 0, pictures, size).astype(int)
    left, top = math.floor((403.0 + scale / 4) / scale) - size // 2, math.floor(301.0 / scale) - size // 2
    part = frame[max(-top, 0) :, max(-left, 0) :][: expected.shape[0], : expected.shape[1]]
    seen = expected[max(top, 0) :, max(left, 0) :][: part.shape[0], : part.shape[1]]
    assert seen.size > 100_000 / scale
    assert (abs(seen - 176) > 30).sum() > 500 / scale
    assert abs(part - seen).max() <= 3.0


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_far_outside_everything_is_solid_but_the_ninja(sizes):
    levels, views = make_levels((NO_TILES, ["gold 60 30"])), set()
    for x, y in ((500.0, 10558.0), (-5000.5, 300.0), (1e6, -1e6)):
        worlds = put_worlds(levels, [(x, y, 0, 4, 1)])
        size = sizes.player_frame_size
        pictures = pictures_of(levels.arrays, sizes)
        views.add(view_of(levels.arrays, worlds, 0, pictures).tobytes())
        frame = frame_of(levels.arrays, worlds, 0, pictures, size)
        reach = math.ceil(12 / sizes.pixel_side) + 1
        middle = slice(size // 2 - reach, size // 2 + reach)
        assert (frame[middle, middle] < SOLID).any()
        frame[middle, middle] = SOLID
        assert (frame == SOLID).all()
    assert len(views) == 1


def test_nothing_is_written_outside_the_output():
    levels, worlds = random_scene(seed=5, count=8)
    for sizes in SIZES[:5]:
        pictures, side = pictures_of(levels, sizes), sizes.player_frame_size
        for index in range(8):
            batch = np.full((3, side, side, 1), 7, dtype=np.uint8)
            write_player_frame(levels, worlds, index, pictures, batch[1])
            views = np.full((3, *sizes.view_shape, 1), 7, dtype=np.uint8)
            write_global_view(levels, worlds, index, pictures, views[1])
            assert (batch[[0, 2]] == 7).all()
            assert (views[[0, 2]] == 7).all()


def test_resolutions_share_their_stamps_and_report_their_bytes():
    levels, _ = random_scene(3)
    pictures = pictures_of(levels, PRESETS[2])
    assert pictures.player_frame.stamps is pictures_of(levels, PRESETS[2]).player_frame.stamps
    node = pictures.memory()
    assert node.bytes_where(shared=False) == 0
    assert node.total_bytes == sum(array.nbytes for part in pictures for array in part)
    leaves = {f"{group.name}/{leaf.name}": leaf.total_bytes for group in node.children for leaf in group.children}
    assert leaves["player_frame/static layers"] == 2 * 300 * 528
    assert leaves["global_view/static layers"] == 2 * 64 * 128
    assert static_layers(levels, (2.0, 2.0), (300, 528)).nbytes == leaves["player_frame/static layers"]


def test_the_oracle_draws_over_the_edges():
    """The slow one is right where stamps are cut: the picture of a part is a part of the picture."""
    levels, worlds = random_scene(seed=6, count=1)
    whole, part = np.full((320, 560), 100, np.uint8), np.full((40, 50), 100, np.uint8)
    resolution = pictures_of(levels, PRESETS[2]).player_frame
    put_things(whole, levels, worlds, 0, resolution, -10, -10)
    put_things(part, levels, worlds, 0, resolution, 90, 70)
    np.testing.assert_array_equal(part, whole[80:120, 100:150])
