"""Runs as moving pictures, several at once."""

import itertools

import numpy as np
import pytest

from nclone_env.level.catalog import basic_sets
from nclone_env.level.load import load_level
from nclone_env.render.figures import LOOKS
from nclone_env.render.text import bar_height
from nclone_env.replay.view import view_size
from nclone_env.replay.watch import WatchedRun, arranged, grid_pictures, run_pictures

from .bases import DEADLY, RIGHT, WINNABLE

SCALE = 0.4


def run(frames, level=DEADLY, label=""):
    return WatchedRun(level, [RIGHT] * frames, label)


def middle(place, shown):
    """Return the part of a place that a picture in its middle covers."""
    top, left = (len(place) - len(shown)) // 2, (place.shape[1] - shown.shape[1]) // 2
    return place[top : top + len(shown), left : left + shown.shape[1]]


def test_a_grid_shows_every_run_in_its_place():
    runs = [run(3), run(5, WINNABLE), run(9, label="another")]
    grid = arranged([[each.level] for each in runs], SCALE)
    alone = [list(run_pictures(each, grid.scale)) for each in runs]
    pictures = list(grid_pictures([iter([each]) for each in runs], grid))
    assert len(pictures) == 10
    assert all(picture.shape[1::-1] == grid.size for picture in pictures)
    for frame, picture in enumerate(pictures):
        for number, own in enumerate(alone):
            shown = own[min(frame, len(own) - 1)]
            np.testing.assert_array_equal(middle(grid.place(number, picture), shown), shown)


def test_a_run_that_has_ended_stays_for_a_moment_and_makes_room():
    runs = [run(3), run(9), run(2, WINNABLE)]
    grid = arranged([[DEADLY, WINNABLE]] * 2, SCALE)
    one_after_another = iter(runs)
    pictures = list(grid_pictures([one_after_another] * 2, grid, hold=4))
    first, _, third = (list(run_pictures(each, grid.scale)) for each in runs)
    assert len(pictures) == 15
    for frame in range(4, 8):
        np.testing.assert_array_equal(middle(grid.place(0, pictures[frame]), first[-1]), first[-1])
    np.testing.assert_array_equal(middle(grid.place(0, pictures[8]), third[0]), third[0])


def test_views_are_as_large_as_fit():
    flat = [DEADLY] * 4
    grid = arranged([[level] for level in flat])
    width, height = grid.size
    assert width <= 1056 + 3 * 4
    assert height <= 720
    assert all(arranged([[level] for level in flat[:count]]).scale >= grid.scale for count in (1, 2, 3))
    assert arranged([flat] * 6, step=2).columns % 2 == 0, "two sources have columns of their own"


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", [name for set_name in basic_sets() for name in basic_sets()[set_name]])
def test_the_open_area_covers_a_third_of_every_picture(name, theme):
    level = load_level(name)
    picture = next(run_pictures(WatchedRun(level, []), theme=theme))
    open_area = (picture == LOOKS[theme].paints["background"]).all(axis=2).mean()
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


def test_every_nth_frame_and_the_last():
    some, every = (list(run_pictures(run(7), SCALE, each)) for each in (3, 1))
    assert [any((one == other).all() for other in every) for one in some] == [True] * 4
    np.testing.assert_array_equal(some[-1], every[-1])
    assert len(list(run_pictures(run(6), SCALE, 3))) == 3


def test_the_label_is_written_instead_of_the_name():
    named, labelled = (next(run_pictures(run(1, label=label), SCALE)) for label in ("", "mine"))
    lines = bar_height(named.shape[1])
    np.testing.assert_array_equal(named[:-lines], labelled[:-lines])
    assert (named[-lines:] != labelled[-lines:]).any()


def test_odd_sizes_fit():
    for scale in (0.1875, 0.2125, 0.31, 1 / 3, 0.477):
        for level in (DEADLY, WINNABLE):
            assert next(run_pictures(WatchedRun(level, []), scale)).shape[1::-1] == view_size([level], scale)
