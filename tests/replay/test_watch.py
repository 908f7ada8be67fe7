"""Runs as moving pictures, several at once."""

import itertools

import numpy as np

from nclone_env.render.bar import BAR_HEIGHT
from nclone_env.replay.view import view_size
from nclone_env.replay.watch import WatchedRun, grid_pictures, grid_size, run_pictures

from .bases import DEADLY, RIGHT, WINNABLE

SCALE = 0.2
WIDTH, HEIGHT = view_size(SCALE / 2)


def run(frames, level=DEADLY, label=""):
    return WatchedRun(level, [RIGHT] * frames, label)


def cell(picture, number):
    top, left = number // 2 * (HEIGHT + 4), number % 2 * (WIDTH + 4)
    return picture[top : top + HEIGHT, left : left + WIDTH]


def test_a_grid_shows_every_run_in_its_place():
    runs = [run(3), run(5, WINNABLE), run(9, label="another")]
    alone = [list(run_pictures(each, SCALE / 2)) for each in runs]
    pictures = list(grid_pictures(iter(runs), 3, SCALE))
    assert len(pictures) == 10
    assert all(picture.shape[1::-1] == grid_size(3, SCALE) for picture in pictures)
    for frame, picture in enumerate(pictures):
        for number, own in enumerate(alone):
            np.testing.assert_array_equal(cell(picture, number), own[min(frame, len(own) - 1)])
        assert len(np.unique(cell(picture, 3).reshape(-1, 3), axis=0)) == 1, "no run"


def test_a_run_that_has_ended_stays_for_a_moment_and_makes_room():
    runs = [run(3), run(9), run(2, WINNABLE)]
    pictures = list(grid_pictures(iter(runs), 2, SCALE, hold=4))
    first, _, third = (list(run_pictures(each, SCALE / 2)) for each in runs)
    assert len(pictures) == 15
    for frame in range(4, 8):
        np.testing.assert_array_equal(cell(pictures[frame], 0), first[-1])
    np.testing.assert_array_equal(cell(pictures[8], 0), third[0])


def test_endless_runs_are_taken_as_they_are_needed():
    taken = []

    def runs():
        for number in itertools.count():
            taken.append(number)
            yield run(2)

    shown = list(itertools.islice(grid_pictures(runs(), 4, SCALE), 7))
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
    np.testing.assert_array_equal(named[:-BAR_HEIGHT], labelled[:-BAR_HEIGHT])
    assert (named[-BAR_HEIGHT:] != labelled[-BAR_HEIGHT:]).any()


def test_odd_sizes_fit():
    for scale in (0.1875, 0.2125, 0.31, 1 / 3, 0.477):
        for level in (DEADLY, WINNABLE):
            assert next(run_pictures(WatchedRun(level, []), scale)).shape[1::-1] == view_size(scale)
