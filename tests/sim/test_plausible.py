"""Worlds that play can reach are plausible; numbers that kernels could not follow are not."""

import numpy as np
import pytest

from nclone_env.kinds import LASER_TURRET, MINE, SHOVE_THWUMP, ZAP_DRONE
from nclone_env.level.level_set import pack
from nclone_env.level.load import load_levels
from nclone_env.level.scenes import everything, mine_field, moving
from nclone_env.sim.entities.laser.record import MOTION
from nclone_env.sim.plausible import world_fault
from nclone_env.sim.session import Session

LEVELS = pack([everything(), moving(), mine_field(), *load_levels(["first-steps", "jumps", "hazards"])])


def rows_of(session, world):
    return {name: array[world : world + 1] for name, array in session.worlds._asdict().items()}


def test_what_play_reaches():
    session, random = Session(LEVELS, num_worlds=len(LEVELS.levels), max_frames=2000), np.random.default_rng(0)
    session.start(np.arange(len(session)))
    for _ in range(250):
        session.play(np.repeat(random.integers(0, 8, (1, len(session))), 8, axis=0))
        for world in range(len(session)):
            assert world_fault(rows_of(session, world), LEVELS) is None


def slot(kind):
    return int(np.flatnonzero(LEVELS.entities_of(0)["type"] == kind)[0])


def mover(kind):
    return int(np.flatnonzero(LEVELS.mover_slots_of(0) == slot(kind))[0])


CHANGES = {
    "ninjas.x": lambda rows: rows["ninjas"].__setitem__("x", np.nan),
    "ninjas.frame": lambda rows: rows["ninjas"].__setitem__("frame", -1),
    "ninjas.state": lambda rows: rows["ninjas"].__setitem__("state", 10),
    "movers.y": lambda rows: rows["movers"]["y"].__setitem__((0, 1), 1e10),
    "movers.cell": lambda rows: rows["movers"]["cell"].__setitem__((0, mover(SHOVE_THWUMP)), 1100),
    "movers": lambda rows: rows["movers"][MOTION].__setitem__((0, mover(LASER_TURRET)), 2**31 - 1),
    "trail": lambda rows: rows["trail"].__setitem__((0, 0, 0), np.inf),
}


@pytest.mark.parametrize("where", CHANGES)
def test_impossible_numbers(where):
    session = Session(LEVELS, max_frames=100)
    rows = {name: array.copy() for name, array in rows_of(session, 0).items()}
    assert world_fault(rows, LEVELS) is None
    CHANGES[where](rows)
    fault = world_fault(rows, LEVELS)
    assert fault is not None
    assert fault.where == where


@pytest.mark.parametrize(("kind", "most"), [(ZAP_DRONE, 3)])
def test_impossible_states(kind, most):
    session = Session(LEVELS, max_frames=100)
    session.worlds.entity_states[0, slot(kind)] = most
    assert world_fault(rows_of(session, 0), LEVELS) is None
    session.worlds.entity_states[0, slot(kind)] = most + 1
    assert world_fault(rows_of(session, 0), LEVELS).got == str(most + 1)


def test_a_mine_has_three_states():
    session = Session(LEVELS)
    session.start(2)
    first = int(np.flatnonzero(LEVELS.entities_of(2)["type"] == MINE)[0])
    session.worlds.entity_states[0, first] = 3
    assert world_fault(rows_of(session, 0), LEVELS).where == "entity_states"
