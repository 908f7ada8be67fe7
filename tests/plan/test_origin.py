"""Searches from any world: of a session, of an environment on other levels too, with inputs that are held."""

import numpy as np
import pytest

from nclone_env import NPlusPlusVectorEnv
from nclone_env.constants import CELEBRATING
from nclone_env.errors import ConfigError
from nclone_env.level.build import build_room
from nclone_env.level.level_set import pack
from nclone_env.level.load import load_level
from nclone_env.level.solutions import known_solutions
from nclone_env.plan.solver import solve
from nclone_env.plan.task import origin_of
from nclone_env.sim.session import Session
from nclone_env.sim.state import hash_world

NAME = "jumps/03-islands"
LEVEL = load_level(NAME)
KNOWN = known_solutions()[NAME]
BEGINNING = KNOWN[: len(KNOWN) // 2]
EVIL = build_room("exit 160 57", "exit_switch 150 57", "evil_ninja 60 57")


def after(inputs, level=LEVEL, **arguments):
    """Return a session in which these inputs were played."""
    session = Session(level, **arguments)
    session.play(inputs)
    return session


def wins_from(session, inputs):
    states = session.record(inputs, entities=False).ninjas["state"]
    return states[-1] == CELEBRATING and not (states[:-1] == CELEBRATING).any()


def test_a_solution_from_the_middle_goes_on_from_there():
    session = after(BEGINNING)
    found = solve(LEVEL, frames=300_000, start=(session.worlds, 0))
    assert 0 < found.frames <= len(KNOWN) - len(BEGINNING) + 4
    assert wins_from(session, found.inputs)
    assert not wins_from(Session(LEVEL), found.inputs)  # from the start it is none


def test_the_start_of_the_level_is_the_default():
    session = Session(LEVEL)
    assert hash_world(origin_of(session.level_set), 0) == session.hash(0)
    given = solve(LEVEL, frames=200_000, start=(session.worlds, 0))
    assert given.inputs.tobytes() == solve(LEVEL, frames=200_000).inputs.tobytes()


def test_worlds_of_a_vector_environment_on_several_levels():
    envs = NPlusPlusVectorEnv(levels=("hazards", NAME), num_envs=8, observations="game_state")
    number = envs.level_names.index(NAME)
    envs.reset(seed=0, options={"level": [number] * 8})
    for _ in range(20):
        envs.step(np.full(8, 2))
    assert envs.worlds.entity_states.shape[1] > pack([LEVEL]).max_entities  # rows of the other levels are longer
    found = solve(LEVEL, frames=300_000, start=(envs.worlds, 3))
    session = Session(LEVEL)
    session.play(bytes([2]) * 80)
    assert origin_of(session.level_set, (envs.worlds, 3)).ninjas.tobytes() == session.worlds.ninjas.tobytes()
    assert wins_from(session, found.inputs)


@pytest.mark.parametrize("limit", [None, 500])
def test_the_trail_that_an_evil_ninja_follows_is_part_of_the_world(limit):
    session = after(bytes([2]) * 90, EVIL, max_frames=limit)
    origin = origin_of(pack([EVIL]), (session.worlds, 0))
    played = Session(EVIL)
    played.play(bytes([2]) * 90)
    assert hash_world(origin, 0) == played.hash(0)
    assert origin.trail.any()


def test_the_trail_of_a_set_with_more_evil_ninjas_is_another_ring():
    many = build_room("exit 160 57", "exit_switch 150 57", "evil_ninja 60 57\nevil_ninja 62 57\nevil_ninja 64 57")
    session = Session(pack([many, EVIL]))
    session.start(1)
    alone = Session(EVIL)
    inputs = bytes([2]) * 190  # the smaller ring is full
    for played in (session, alone):
        played.play(inputs)
    assert session.worlds.trail.shape[1] != alone.worlds.trail.shape[1]
    origin = origin_of(alone.level_set, (session.worlds, 0))
    assert hash_world(origin, 0) == alone.hash(0)
    assert origin.trail.all()


def test_inputs_change_in_multiples_of_the_hold():
    held = solve(LEVEL, frames=2_000_000, hold=6)
    changes = np.flatnonzero(np.diff(held.inputs)) + 1
    assert held.won.get("polished", 0) > 0  # edits take part
    assert len(changes)
    assert not (changes % 6).any()
    free = solve(LEVEL, frames=2_000_000)
    assert ((np.flatnonzero(np.diff(free.inputs)) + 1) % 6).any()


def test_worlds_that_are_none_of_the_level():
    session = after(BEGINNING)
    with pytest.raises(ConfigError, match="start: expected the index of a world from 0 to 0, got 1"):
        solve(LEVEL, frames=1000, start=(session.worlds, 1))
    with pytest.raises(ConfigError, match="a world of 'hazards/05-slalom', which has"):
        solve("hazards/05-slalom", frames=1000, start=(session.worlds, 0))
    with pytest.raises(ConfigError, match="start: expected a world of 'hazards/05-slalom', got one of"):
        solve("hazards/05-slalom", frames=1000, start=(session, 0))
    other = build_room("exit 60 57", "exit_switch 50 57")  # no larger, so that only the level tells
    with pytest.raises(ConfigError, match=f"start: expected a world of '{other.name}', got one of '{NAME}'"):
        solve(other, frames=1000, start=(session, 0))
    assert solve(LEVEL, frames=1000, start=(session, 0)).simulated
    won = after(KNOWN)
    with pytest.raises(ConfigError, match="start: expected a world in which the ninja is alive"):
        solve(LEVEL, frames=1000, start=(won.worlds, 0))


def test_start_and_resume_exclude_each_other(tmp_path):
    with pytest.raises(ConfigError, match="start, resume: expected at most one"):
        solve(LEVEL, frames=1000, start=(Session(LEVEL).worlds, 0), resume=tmp_path / "file")
