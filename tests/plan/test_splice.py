"""Splices: of two solutions that wait in different places, one that waits in neither."""

import numpy as np
import pytest

from nclone_env.constants import INPUT_RIGHT
from nclone_env.level.build import build_room
from nclone_env.plan.objective import replay
from nclone_env.plan.searches import make_task
from nclone_env.plan.splice import spliced

from .test_solve import wins

LEVEL = build_room("exit 90 57", "exit_switch 60 57")
TASK = make_task(LEVEL)
LONG, SHORT = 40, 4


def winning(inputs):
    """Return the solution that inputs begin with."""
    length = next(length for length in range(1, len(inputs)) if wins(LEVEL, inputs[:length]))
    return replay(TASK.level_set, TASK.origin, inputs[:length], 0)


def waiting(first, second):
    """Return the solution that waits so many frames after the fall from the spawn, and again half-way, both at rest."""
    return winning(np.repeat(np.array([0, INPUT_RIGHT, 0, INPUT_RIGHT], np.uint8), [60 + first, 20, 160 + second, 300]))


def joined(best, other, hold=1):
    return spliced(TASK.level_set, TASK.origin, best, other, 0, hold)


@pytest.mark.parametrize("hold", [1, 4])
def test_the_faster_parts_of_both_are_joined(hold):
    one, other = waiting(LONG, SHORT), waiting(SHORT, LONG)
    for best, rest in ((one, other), (other, one)):
        run = joined(best, rest, hold)
        assert len(run.inputs) == run.cost <= best.cost - (LONG - SHORT)
        assert wins(LEVEL, run.inputs)
        assert (np.flatnonzero(np.diff(run.inputs)) % hold == hold - 1).all()


def test_a_solution_stays_without_faster_parts():
    best, slower = winning(np.full(300, INPUT_RIGHT, np.uint8)), waiting(LONG, LONG)
    assert joined(best, best) is joined(best, slower) is best
    assert joined(slower, slower).cost < slower.cost  # it comes through the same state again and again
