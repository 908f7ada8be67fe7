"""A run in the making goes back, on, and along other branches, bit by bit as if it had been played so."""

import random

import numpy as np
import pytest

from nclone_env.replay.view import Take, View
from nclone_env.sim.session import Session

from .bases import DEADLY, RIGHT, WINNABLE

LEFT, JUMP = 4, 1


def state_after(inputs, level=WINNABLE):
    session = Session(level)
    session.play(bytes(inputs))
    return session.snapshot()


def taken(inputs, level=WINNABLE):
    take = Take(View(level, 0.1))
    for code in inputs:
        take.play(code)
    return take


def test_any_frame_is_reached_from_any_other():
    draw = np.random.default_rng(3)
    inputs = [int(code) for code in draw.choice([0, LEFT, RIGHT | JUMP, LEFT | JUMP], 100).repeat(1)]
    take = taken(inputs)
    for frame in (99, 100, 3, 0, 48, 47, 16, 17, 15, 80, 100):
        take.seek(frame)
        assert take.frame == take.view.frames == frame
        assert take.view.snapshot() == state_after(inputs[:frame])
    assert state_after(inputs[:10]) != state_after(inputs[:11])
    take.seek(-5)
    assert take.frame == 0
    take.seek(1000)
    assert take.frame == 100


def test_other_inputs_begin_a_branch_and_equal_ones_go_on():
    take = taken([RIGHT] * 40)
    take.seek(20)
    take.play(RIGHT)
    assert (take.rest, take.branches) == (19, [])
    take.play(LEFT)
    assert bytes(take.inputs) == bytes([RIGHT] * 21 + [LEFT])
    assert take.branches == [bytes([RIGHT] * 40)]
    assert take.view.snapshot() == state_after(take.inputs)


def test_branches_take_turns():
    take = taken([RIGHT] * 40)
    take.seek(10)
    take.play(LEFT)
    assert take.swap()
    assert bytes(take.inputs) == bytes([RIGHT] * 40)
    assert take.frame == 11
    assert take.view.snapshot() == state_after([RIGHT] * 11)
    assert take.swap()
    assert bytes(take.inputs) == bytes([RIGHT] * 10 + [LEFT])
    assert take.view.snapshot() == state_after(take.inputs)
    assert not taken([RIGHT]).swap()


def test_loaded_inputs_keep_those_before_as_a_branch():
    take = taken([RIGHT] * 40)
    take.load(bytes([RIGHT] * 30 + [LEFT] * 30), 50)
    assert (take.frame, take.rest) == (50, 10)
    assert take.branches == [bytes([RIGHT] * 40)]
    assert take.view.snapshot() == state_after([RIGHT] * 30 + [LEFT] * 20)
    longer = taken([RIGHT] * 40)
    longer.load(bytes([RIGHT] * 60), 40)
    assert longer.branches == [], "they go on"


@pytest.mark.parametrize("seed", range(8))
def test_the_view_shows_what_the_inputs_lead_to_whatever_was_done_before(seed):
    """Operations at random: a state that the saved inputs do not have would be a win on the screen alone."""
    draw, take, branched = random.Random(seed), Take(View(WINNABLE, 0.1)), 0
    for _ in range(60):
        match draw.choice(("play", "play", "seek", "load", "swap", "go on")):
            case "play":
                for code in [draw.randrange(6)] * draw.randrange(1, 40):
                    take.play(code)
            case "seek":
                take.seek(draw.randrange(-1, len(take.inputs) + 2))
            case "load":
                begun = take.inputs[: draw.randrange(len(take.inputs) + 1)]
                inputs = [*begun, *(draw.choice((0, 1, 2, 4)) for _ in range(draw.randrange(50)))]
                take.load(inputs, draw.randrange(len(inputs) + 1))
            case "swap":
                take.swap()
            case "go on":
                take.go_on()
        branched += bool(take.branches)
        assert take.view.snapshot() == state_after(take.inputs[: take.frame])
    assert branched > 20


def test_the_end_of_a_run_is_the_last_frame_and_can_be_left():
    take = taken([RIGHT] * 400, DEADLY)
    assert take.view.over
    assert take.frame == len(take.inputs) < 300
    take.seek(take.frame - 1)
    assert not take.view.over
    take.go_on()
    assert take.view.over
    take.seek(0)
    take.seek(400)
    assert take.frame == len(take.inputs)
