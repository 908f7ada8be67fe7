"""Smooth solutions: fewer changes of input, the level still won within the slack, always the same result."""

import numpy as np
import pytest

from nclone_env.level.build import build_room
from nclone_env.level.load import load_level
from nclone_env.plan.solver import solve
from nclone_env.plan.task import smooth
from nclone_env.sim.session import Session

from .test_solve import wins

LEVEL = load_level("jumps/03-islands")


@pytest.fixture(scope="module")
def found():
    return {hold: solve(LEVEL, frames=400_000, hold=hold).inputs for hold in (1, 4)}


def changes(inputs):
    return np.flatnonzero(np.diff(inputs)) + 1


@pytest.mark.parametrize("hold", [1, 4])
def test_fewer_changes_and_not_much_longer(found, hold):
    smoothed = smooth(LEVEL, found[hold], hold=hold)
    assert wins(LEVEL, smoothed)
    assert len(smoothed) <= 1.05 * len(found[hold])
    assert len(changes(smoothed)) < 0.9 * len(changes(found[hold]))
    assert not (changes(smoothed) % hold).any()


def test_without_slack_it_is_not_longer(found):
    assert len(smooth(LEVEL, found[4], slack=0.0, hold=4)) <= len(found[4])


def test_it_is_done_when_it_is_done(found):
    once = smooth(LEVEL, found[4], hold=4)
    assert smooth(LEVEL, once, slack=0.0, hold=4).tobytes() == once.tobytes()


def test_of_equal_inputs_the_first_is_taken():
    level = build_room("exit 41 58", "exit_switch 40 58")  # won at the spawn, whatever the input
    frames = solve(level, frames=10_000).frames
    jumps = np.full(frames, 3, np.uint8)
    assert wins(level, jumps)
    assert smooth(level, jumps).tobytes() == bytes(frames)


def test_a_solution_from_another_world(found):
    session = Session(LEVEL)
    session.play(found[4][:40])
    rest = found[4][40:]
    smoothed = smooth(LEVEL, rest, hold=4, start=(session.worlds, 0))
    assert wins(LEVEL, np.append(found[4][:40], smoothed))


def test_inputs_that_are_no_solution(found):
    with pytest.raises(ValueError, match="inputs: expected a solution of 'jumps/03-islands', got 10 frames"):
        smooth(LEVEL, np.zeros(10, np.uint8))
    with pytest.raises(ValueError, match="inputs: expected changes in multiples of 4 frames, got one in frame"):
        smooth(LEVEL, found[1], hold=4)
