"""Worlds that play can reach are plausible; numbers that kernels could not follow are not."""

import numpy as np
import pytest

from nclone_env.game import LASER_DRONE, LASER_TURRET, MINE, ROCKET_TURRET, SHOVE_THWUMP, ZAP_DRONE
from nclone_env.level.build import everything, moving
from nclone_env.level.level_set import pack
from nclone_env.level.load import load_levels
from nclone_env.sim.entities.laser.motion import FRAMES_LEFT, MOTION
from nclone_env.sim.entities.turrets import LAST_STATE
from nclone_env.sim.plausible import world_fault
from nclone_env.sim.session import Session
from profiling.speed.observations import mine_field

LEVELS = pack([everything(), moving(), mine_field(), *load_levels(["first-steps", "jumps", "hazards"])])


def test_what_play_reaches():
    session, random = Session(LEVELS, num_worlds=len(LEVELS.levels), max_frames=2000), np.random.default_rng(0)
    session.start(np.arange(len(session)))
    for _ in range(250):
        session.play(np.repeat(random.integers(0, 8, (1, len(session))), 8, axis=0))
        for world in range(len(session)):
            assert world_fault(session[world], LEVELS) is None


def slot(kind):
    return int(np.flatnonzero(LEVELS.entities_of(0)["type"] == kind)[0])


def mover(kind):
    return int(np.flatnonzero(LEVELS.mover_slots_of(0) == slot(kind))[0])


CHANGES = {
    "ninjas": lambda world: world.ninja.__setitem__("x", np.nan),
    "ninjas.frame": lambda world: world.ninja.__setitem__("frame", -1),
    "ninjas.next_order": lambda world: world.ninja.__setitem__("next_order", -1),
    "ninjas.state": lambda world: world.ninja.__setitem__("state", 10),
    "movers.cell": lambda world: world.movers["cell"].__setitem__(mover(SHOVE_THWUMP), 1100),
    "movers": lambda world: world.movers[MOTION].__setitem__(mover(LASER_TURRET), 2**31 - 1),
    "trail": lambda world: world.trail.__setitem__((0, 0), np.inf),
}


@pytest.mark.parametrize("where", CHANGES)
def test_impossible_numbers(where):
    session = Session(LEVELS, max_frames=100)
    world = session[0].copy()._replace(trail=np.zeros((1, 2)))
    assert world_fault(world, LEVELS) is None
    CHANGES[where](world)
    fault = world_fault(world, LEVELS)
    assert fault is not None
    assert fault.where == where


def test_a_laser_that_would_turn_for_ever():
    session = Session(LEVELS, max_frames=100)
    laser = session[0].movers[mover(LASER_TURRET)]
    laser[MOTION], laser[FRAMES_LEFT] = 39, 3
    assert world_fault(session[0], LEVELS).where == "movers"


def test_a_rocket_that_flies_longer_than_any():
    session = Session(LEVELS, max_frames=100)
    states = session[0].entity_states
    states[slot(ROCKET_TURRET)] = LAST_STATE
    assert world_fault(session[0], LEVELS) is None
    states[slot(ROCKET_TURRET)] = LAST_STATE + 1
    assert world_fault(session[0], LEVELS).where == "entity_states"


def test_the_number_is_in_the_fault():
    session = Session(LEVELS, max_frames=100)
    session.worlds.ninjas["state"][0] = 77
    assert world_fault(session[0], LEVELS).got == "77"
    session.worlds.ninjas["state"][0] = 0
    session[0].movers["cell"][mover(SHOVE_THWUMP)] = 1100
    assert world_fault(session[0], LEVELS).got.endswith(" to 1100")


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e10])
def test_a_mover_that_is_nowhere(value):
    session = Session(LEVELS, max_frames=100)
    session[0].movers["y"][1] = value
    assert world_fault(session[0], LEVELS).where == "movers"


@pytest.mark.parametrize(("kind", "states"), [(ZAP_DRONE, range(4)), (LASER_DRONE, (0, 3, 4, 15, 255))])
def test_states_that_are_looked_up(kind, states):
    session = Session(LEVELS, max_frames=100)
    for state in states:
        session.worlds.entity_states[slot(kind)] = state
        assert world_fault(session[0], LEVELS) is None
    session.worlds.entity_states[slot(kind)] = 16  # of a drone that shoots: on patrol, with shots fired
    assert world_fault(session[0], LEVELS).where == "entity_states"


def test_a_mine_has_three_states():
    session = Session(LEVELS)
    session.start(2)
    first = int(np.flatnonzero(LEVELS.entities_of(2)["type"] == MINE)[0])
    session[0].entity_states[first] = 3
    assert world_fault(session[0], LEVELS).where == "entity_states"
