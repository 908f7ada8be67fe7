"""Runs as moving pictures, several at once."""

import itertools
from collections import Counter

import numpy as np
import pytest

from nclone_env.level.load import load_level
from nclone_env.render.picture import PALETTES
from nclone_env.replay import WatchedRun, arranged, grid_pictures, run_pictures
from nclone_env.replay.text import bar_height, fitting
from nclone_env.replay.view import view_size
from profiling.measure import basic_sets

from ..shared import each_value
from .bases import DEADLY, RIGHT, WINNABLE

SCALE = 0.4


def run(frames, level=DEADLY, label=""):
    return WatchedRun(level, [RIGHT] * frames, label)


def alone(each, place):
    """Return the pictures of a run in a place."""
    return list(run_pictures(each, place.scale_of(each.level), width=place.width))


def middle(place, picture, shown):
    """Return the part of a place that a picture in its middle covers."""
    room = place.of(picture)
    top = (len(room) - len(shown)) // 2
    return room[top : top + len(shown)]


def test_a_grid_shows_every_run_in_its_place():
    runs = [run(3), run(5, WINNABLE), run(9, label="another")]
    grid = arranged([[each.level] for each in runs], SCALE)
    apart = [alone(each, place) for each, place in zip(runs, grid.places)]
    pictures = list(grid_pictures([iter([each]) for each in runs], grid))
    assert len(pictures) == 10
    assert all(picture.shape[1::-1] == grid.size for picture in pictures)
    for frame, picture in enumerate(pictures):
        for place, own in zip(grid.places, apart):
            shown = own[min(frame, len(own) - 1)]
            np.testing.assert_array_equal(middle(place, picture, shown), shown)


def test_a_run_that_has_ended_stays_for_a_moment_and_makes_room():
    runs = [run(3), run(9), run(2, WINNABLE)]
    grid = arranged([[DEADLY, WINNABLE]] * 2, SCALE)
    one_after_another = iter(runs)
    pictures = list(grid_pictures([one_after_another] * 2, grid, hold=4))
    place = grid.places[0]
    first, _, third = (alone(each, place) for each in runs)
    assert len(pictures) == 15
    for frame in range(4, 8):
        np.testing.assert_array_equal(middle(place, pictures[frame], first[-1]), first[-1])
    np.testing.assert_array_equal(middle(place, pictures[8], third[0]), third[0])


def test_views_are_as_large_as_fit():
    flat = [DEADLY] * 4
    grid = arranged([[level] for level in flat])
    width, height = grid.size
    assert width <= 1056 + 4
    assert height <= 720
    for count in (1, 2, 3):
        assert arranged([[level] for level in flat[:count]]).places[0].scale_of(DEADLY) >= grid.places[0].scale_of(
            DEADLY
        )
    rows = Counter(place.top for place in arranged([flat] * 6, step=2).places)
    assert all(count % 2 == 0 for count in rows.values()), "two sources have columns of their own"


MIXED = [name for names in basic_sets().values() for name in names]


@pytest.mark.parametrize(("count", "seed"), each_value([2, 3, 4, 5, 7, 9, 12, 16], range(3)))
def test_views_of_other_levels_cover_the_grid(count, seed):
    """Levels are as flat as 6:1 and as high as wide, in any order; views neither overlap nor leave the picture."""
    names = np.random.default_rng(seed).permutation(MIXED)[:count]
    levels = [load_level(name) for name in names]
    grid = arranged([[level] for level in levels])
    picture = next(grid_pictures([iter([WatchedRun(level, [])]) for level in levels], grid))
    assert picture.shape[1::-1] == grid.size
    assert grid.size[0] <= 1060
    assert grid.size[1] <= 760
    covered = np.zeros(picture.shape[:2], int)
    for place in grid.places:
        place.of(covered)[:] += 1
        assert place.of(covered).shape == (place.height, place.width)
    assert covered.max() == 1
    open_area = (picture == PALETTES["light"].paints["background"]).all(axis=2).mean()
    assert open_area >= 0.35


def test_a_tall_level_and_a_flat_one_cover_the_grid():
    for names in (("first-steps/06-hop", "jumps/04-chimney"), ("jumps/04-chimney", "first-steps/04-turn-back")):
        levels = [load_level(name) for name in names]
        grid = arranged([[level] for level in levels])
        picture = next(grid_pictures([iter([WatchedRun(level, [])]) for level in levels], grid))
        assert (picture == PALETTES["light"].paints["background"]).all(axis=2).mean() >= 0.4
        assert {place.width for place in grid.places} == {grid.size[0]}


def test_views_of_the_same_levels_are_equally_large():
    levels = [load_level(name) for name in MIXED[:6]]
    places = arranged([levels] * 9, step=2).places
    assert {(place.width, place.height) for place in places} == {(509, 141)}
    assert [place.left for place in places] == [0, 513] * 4 + [256]


def test_names_are_complete_in_every_view():
    """Of two sources, whose letters come before the names."""
    for count in (9, 16):
        levels = [load_level(name) for name in np.random.default_rng(count).permutation(MIXED)[:count]]
        grid = arranged([[level] for level in levels], step=2)
        for level, place in zip(levels, grid.places, strict=True):
            name, letter = f"A  {level.name}", 6.0
            assert fitting(name, letter, place.width - 20) == name


def test_a_view_of_several_levels_shows_each_as_large_as_fits():
    levels = [load_level(name) for name in MIXED]
    grid = arranged([levels] * 9)
    for place in grid.places:
        for level in levels:
            width, height = view_size([level], place.scale_of(level))
            assert width == place.width or abs(height - place.height) <= 16, "one side is full, but for a higher bar"
            shown = next(run_pictures(WatchedRun(level, []), place.scale_of(level), width=place.width))
            assert shown.shape[1] == place.width
            assert len(shown) <= place.height


@pytest.mark.parametrize(("name", "theme"), each_value(MIXED, ["light", "dark"]))
def test_the_open_area_covers_a_third_of_every_picture(name, theme):
    level = load_level(name)
    picture = next(run_pictures(WatchedRun(level, []), theme=theme))
    open_area = (picture == PALETTES[theme].paints["background"]).all(axis=2).mean()
    assert open_area >= 0.35
    grid = arranged([[level]])
    shown = next(grid_pictures([iter([WatchedRun(level, [])])], grid, theme=theme))
    assert (shown == picture).all()


def test_endless_runs_are_taken_as_they_are_needed():
    taken = []

    def runs():
        for number in itertools.count():
            taken.append(number)
            yield run(2)

    endless = runs()
    shown = list(itertools.islice(grid_pictures([endless] * 4, arranged([[DEADLY]] * 4, SCALE)), 7))
    assert len(shown) == 7
    assert len(taken) == 12


def test_inputs_are_taken_as_frames_are_shown():
    taken = []

    def inputs():
        for number in range(9):
            taken.append(number)
            yield RIGHT

    pictures = run_pictures(WatchedRun(DEADLY, inputs()), SCALE)
    next(pictures)
    assert not taken
    next(pictures)
    assert taken == [0]


def test_the_label_is_written_instead_of_the_name():
    named, labelled = (next(run_pictures(run(1, label=label), SCALE)) for label in ("", "mine"))
    lines = bar_height(named.shape[1])
    np.testing.assert_array_equal(named[:-lines], labelled[:-lines])
    assert (named[-lines:] != labelled[-lines:]).any()


def test_odd_sizes_fit():
    for scale in (0.1875, 0.2125, 0.31, 1 / 3, 0.477):
        for level in (DEADLY, WINNABLE):
            assert next(run_pictures(WatchedRun(level, []), scale)).shape[1::-1] == view_size([level], scale)
