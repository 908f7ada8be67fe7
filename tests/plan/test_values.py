"""Frames to the exit from many states: near those of solutions, infinite where there is no way, the same every time."""

import numpy as np
import pytest

from nclone_env.errors import ConfigError, UnsupportedLevelError
from nclone_env.game import CELEBRATING, DEAD, INPUT_OF_ACTION
from nclone_env.level.build import build_room
from nclone_env.level.level_set import pack
from nclone_env.level.load import load_level
from nclone_env.level.solutions import known_solutions
from nclone_env.plan.solver import solve
from nclone_env.plan.values import state_values
from nclone_env.sim.session import Session
from nclone_env.sim.state import copy_world

NAME = "hazards/04-mine-pit"
LEVEL = load_level(NAME)


@pytest.fixture(scope="module")
def known():
    return state_values(LEVEL, frames=1_000_000)


def test_the_start_takes_as_long_as_a_solution(known):
    solution = len(known_solutions()[NAME])
    assert known.visited[0] == 0
    assert 0.9 * solution < known.frames[0] < 1.4 * solution
    assert len(known.frames) > 5000


def test_states_take_as_long_as_solutions_from_there(known):
    rows = np.flatnonzero(np.isfinite(known.frames))[::2000]
    found = [solve(LEVEL, frames=200_000, hold=4, start=(known.worlds, int(row))).frames for row in rows]
    assert len(rows) > 3
    assert all(found)
    ratios = known.frames[rows] / np.array(found)
    assert 0.8 < np.median(ratios) < 1.4
    shuffled = np.random.default_rng(0).permutation(known.frames[np.isfinite(known.frames)])[: len(rows)]
    assert np.abs(np.log(ratios)).mean() < np.abs(np.log(shuffled / np.array(found))).mean()


def test_actions_that_kill_and_actions_that_win(known):
    """Frames of an action are finite only if the ninja lives, and those until it wins if the action wins."""
    rows = np.arange(0, len(known.frames), 40)
    frames = known.of_actions(known.worlds, rows)
    assert frames.shape == (len(rows), 6)
    session, died, won = Session(LEVEL), 0, 0
    for row, values in zip(rows, frames, strict=True):
        for code, value in zip(INPUT_OF_ACTION, values, strict=True):
            copy_world(known.worlds, row, session.worlds, 0)
            states = session.record(bytes([code]) * known.hold, entities=False).ninjas["state"]
            state = states[-1]
            if state == CELEBRATING:
                assert value == 1 + np.flatnonzero(states == CELEBRATING)[0]
                won += 1
            elif state >= DEAD:
                assert np.isinf(value)
                died += 1
            else:
                assert value > known.hold
    assert died
    near = np.argsort(known.frames)[:20]
    assert (known.of_actions(known.worlds, near).min(axis=1) <= 40).all()


def test_the_best_action_leads_to_about_the_frames_of_the_state(known):
    rows = np.flatnonzero(np.isfinite(known.frames))[::100]
    best = known.of_actions(known.worlds, rows).min(axis=1)
    ratios = best / known.frames[rows]
    assert 0.8 < np.median(ratios) < 1.25


def test_without_a_way_all_are_infinite():
    walled = build_room("exit 160 20", "exit_switch 150 57")  # the exit is out of reach
    values = state_values(walled, frames=50_000, cells=2000)
    assert np.isinf(values.frames).all()
    assert np.isinf(values.of_actions(values.worlds, [0])).all()


def test_the_same_arguments_give_the_same_values():
    one, same, other = (state_values(LEVEL, frames=100_000, cells=3000, seed=seed) for seed in (1, 1, 2))
    assert one.frames.tobytes() == same.frames.tobytes()
    assert one.frames.tobytes() != other.frames.tobytes()


def test_faults():
    for name in ("frames", "hold", "cells", "max_frames"):
        with pytest.raises(ConfigError, match=f"{name}: expected a number of at least 1, got 0"):
            state_values(LEVEL, **{name: 0})
    for name in ("hold", "max_frames"):
        with pytest.raises(ConfigError, match=f"{name}: expected at most 999,999 frames, got 10,000,000,000"):
            state_values(LEVEL, **{name: 10**10})
    with pytest.raises(ConfigError, match="seed: expected"):
        state_values(LEVEL, seed=-1)
    with pytest.raises(UnsupportedLevelError, match="exit"):
        state_values(build_room())


def test_actions_from_worlds_of_other_level_sets(known):
    """The rows of their worlds are longer, which must change nothing."""
    larger = build_room("exit 60 57", "exit_switch 50 57", *(f"mine {20 + n} 30" for n in range(40)))
    session = Session(pack([larger, LEVEL]), num_worlds=2)
    session.start(np.array([1, 0]))
    session.play(bytes([2]) * 20)
    alone = Session(LEVEL)
    alone.play(bytes([2]) * 20)
    assert session.worlds.entity_states.shape[1] > alone.worlds.entity_states.shape[1]
    expected = known.of_actions(alone.worlds, [0])
    assert np.isfinite(expected).any()
    for worlds in (session.worlds, session):
        assert known.of_actions(worlds, [0]).tobytes() == expected.tobytes()
    assert known.of_actions(session, [0, 0]).tobytes() == expected.tobytes() * 2
    assert known.of_actions(session, []).shape == (0, 6)
    with pytest.raises(ConfigError, match=f"rows: expected a world of '{NAME}', got one of '{larger.name}'"):
        known.of_actions(session, [0, 1])
    for row in (-1, 2):
        with pytest.raises(ConfigError, match=f"rows: expected the index of a world from 0 to 1, got {row}"):
            known.of_actions(session, [0, row])


def test_worlds_too_small_for_the_level_are_refused(known):
    with pytest.raises(ConfigError, match=f"rows: expected a world of '{NAME}', which has"):
        known.of_actions(Session(build_room("exit 60 57", "exit_switch 50 57")).worlds, [0])
