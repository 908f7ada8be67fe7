"""Mines, gold, switches and exits (physics 02, sections 5.6 and 6.1 to 6.4), in small rooms."""

import numpy as np
import pytest

from nclone_env.constants import CELEBRATING, DEAD, DYING
from nclone_env.kinds import EXIT, EXIT_SWITCH
from nclone_env.level.build import build_room
from nclone_env.sim.session import Session
from nclone_env.sim.simulate import simulate

from .bases import RIGHT, SUICIDE

RUN = bytes([RIGHT]) * 120


def walk(*entities, inputs=RUN):
    return simulate(build_room(*entities), inputs, entities=True)


def test_gold_is_counted_once():
    run = walk("gold 50 58", "gold 60 58", "gold 60 20")
    assert run.gold[-1] == 2
    assert np.count_nonzero(np.diff(run.gold)) == 2
    taken = ~run.entity_active
    assert np.array_equal(taken.sum(axis=1), run.gold)
    assert not taken[:, 2].any()


@pytest.mark.parametrize("down", [-8.0, 0.0, 8.0])
@pytest.mark.parametrize("right", [-8.0, 0.0, 8.0])
@pytest.mark.parametrize("unit", [20, 23])
def test_the_cells_all_around_are_looked_at(unit, right, down):
    """Gold at the first and at the last units of a cell, the ninja on any side of it."""
    session = Session(build_room(f"gold {unit} {unit}", f"gold {unit + 8} {unit}"))
    session.ninja["x"], session.ninja["y"] = 6 * unit + right, 6 * unit + down
    ninjas, states, _ = session.record(bytes(1))
    assert ninjas["gold"][0] == 1
    assert states[0, :2].tolist() == [1, 0]


def test_a_mine_kills_and_stays():
    run = walk("mine 60 58")
    dead = np.flatnonzero(run.state == DEAD)
    assert len(dead)
    assert DYING not in run.state  # touched and dead in the same frame
    assert run.entity_active.all()
    assert np.hypot(run.x[dead[0]] - 360, run.y[dead[0]] - 348) < 14.0 <= 360 - run.x[dead[0] - 1] + 4
    assert (run.x[dead[0] :] == run.x[dead[0]]).all()
    assert len(run) == len(RUN)


def test_the_exit_opens_with_its_switch_and_wins():
    closed = walk("exit 60 58", "exit_switch 60 20")
    assert CELEBRATING not in closed.state
    run = walk("exit 60 58", "exit_switch 50 58")
    taken = np.flatnonzero(~run.entity_active[:, 1])[0]
    won = np.flatnonzero(run.state == CELEBRATING)[0]
    assert run.entity_type.tolist() == [EXIT, EXIT_SWITCH]
    assert taken < won
    assert run.entity_active[:, 0].all()
    assert (run.state[won:] == CELEBRATING).all()


def test_an_exit_cannot_be_entered_in_the_frame_of_its_switch():
    run = walk("exit 40 58", "exit_switch 40 58", inputs=bytes(3))
    assert not run.entity_active[0, 1]
    assert run.state[0] != CELEBRATING
    assert run.state[1] == CELEBRATING


def test_only_the_exit_of_the_taken_switch_opens():
    run = walk("exit 60 58", "exit 70 58", "exit_switch 90 20", "exit_switch 50 58", inputs=RUN + RUN)
    won = np.flatnonzero(run.state == CELEBRATING)[0]
    assert 420 - 22 <= run.x[won] <= 420


def test_the_finish_fraction_is_the_part_of_the_frame_before_the_touch():
    session = Session(build_room("exit 60 58", "exit_switch 41 58"))
    ninjas = session.record(RUN).ninjas
    won = np.flatnonzero(ninjas["state"] == CELEBRATING)[0]
    before, after = ninjas[won - 1], ninjas[won]
    at = before["x"] + after["finish_fraction"] * (after["x"] - before["x"])
    assert 0.0 < after["finish_fraction"] <= 1.0
    assert np.hypot(at - 360.0, before["y"] - 348.0) == pytest.approx(22.0, abs=0.05)


def test_a_dying_ninja_still_collects_but_does_not_win():
    run = walk("exit 46 58", "exit_switch 40 58", "gold 40 58", inputs=bytes([SUICIDE]) + bytes(3))
    assert run.state.tolist() == [DYING, DEAD, DEAD, DEAD]
    session = Session(build_room("gold 40 58"))
    session.ninja["state"] = DYING
    ninjas, states, _ = session.record(bytes(1))
    assert (ninjas["gold"][0], states[0, 0]) == (1, 1)


@pytest.mark.parametrize("name", ["mine", "gold"])
def test_a_celebrating_ninja_neither_collects_nor_sets_off_mines(name):
    session = Session(build_room(f"{name} 40 58"))
    session.ninja["state"] = CELEBRATING
    ninjas, states, _ = session.record(RUN)
    assert (ninjas["state"] == CELEBRATING).all()
    assert (ninjas["gold"] == 0).all()
    assert (states[:, 0] == 0).all()


def test_a_mine_that_kills_becomes_safe():
    session = Session(build_room("mine 40 58", "mine 41 58", "mine 60 58"))
    ninjas, states, _ = session.record(bytes(5))
    assert ninjas["state"].tolist() == [DEAD] * 5
    assert states[-1, :3].tolist() == [1, 1, 0]
