"""Train and held-out levels never mix."""

import numpy as np
import pytest

from nclone_env.generate.candidate import HELD_OUT_SPLIT, TRAIN_SPLIT, split_of
from nclone_env.level.mirror import mirrored_tiles as mirrored
from nclone_env.level.tiles import SOLID_SAMPLES


def random_tiles(seed):
    return np.random.default_rng(seed).integers(0, 38, (23, 42)).astype(np.uint8)


def test_both_splits_are_as_large():
    splits = [split_of(random_tiles(seed)) for seed in range(200)]
    assert {*splits} == {TRAIN_SPLIT, HELD_OUT_SPLIT}
    assert 70 < splits.count(TRAIN_SPLIT) < 130


@pytest.mark.parametrize("seed", range(20))
def test_a_mirror_image_is_in_the_same_split(seed):
    tiles = random_tiles(seed)
    assert split_of(mirrored(tiles)) == split_of(tiles)
    assert not np.array_equal(mirrored(tiles), tiles)


def test_mirrored_tiles_are_mirror_images():
    for tile in range(34):
        row = np.full((1, 1), tile, np.uint8)
        assert np.array_equal(SOLID_SAMPLES[mirrored(row)[0, 0]], SOLID_SAMPLES[tile][:, ::-1]), tile
    assert mirrored(np.array([[34, 35, 36, 37]], np.uint8)).tolist() == [[35, 36, 37, 34]]


def test_mirroring_twice_changes_nothing():
    assert np.array_equal(mirrored(mirrored(random_tiles(0))), random_tiles(0))
