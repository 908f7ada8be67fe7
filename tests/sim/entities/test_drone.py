"""Chaser drones, laser drones and chaingun drones (physics 03, sections 10, 11 and 20)."""

import math

import numpy as np
import pytest

from nclone_env.game import CHAINGUN_DRONE, DEAD, DYING, JUMPING, LASER_DRONE, kind_name
from nclone_env.level.build import build_level, build_room
from nclone_env.sim.entities.drone import (
    AIM_X,
    AIM_Y,
    CHASING,
    FIRING,
    HEADING,
    NODE_Y,
    PATROL,
    PHASE,
    RECOVERING,
    SHOT,
    WARNING,
    swept,
)
from nclone_env.sim.geometry import unit
from nclone_env.sim.state import NO_CELL, world_at
from nclone_env.sim.trajectory import simulate

from ..fixed import FixedNinja

RIGHT, DOWN, LEFT, UP = range(4)
CHECKS = [
    (1, 84.0, 85.14285714285714, DOWN, False),
    (42, 84.0, 131.99999999999983, DOWN, False),
    (43, 86.28571428571412, 132.0, RIGHT, True),
    (44, 88.57142857142841, 132.0, RIGHT, True),
    (120, 262.28571428571377, 132.0, RIGHT, True),
    (130, 276.0, 127.42857142857201, UP, False),
]

BOTH = pytest.mark.parametrize("kind", [CHAINGUN_DRONE, LASER_DRONE])
SPEED = {LASER_DRONE: 0.2857142857142857, CHAINGUN_DRONE: 0.4285714285714285}
WARNED = {LASER_DRONE: 45, CHAINGUN_DRONE: 52}
SHOT_FRAMES = [62, 71, 80, 89, 98, 107, 116]
SHOT_DEGREES = [-5.7106, -2.8624, 0.0, 2.8624, 5.7106, 8.5308, 11.3099]


def chase(ninja, frames, drone="chaser_drone 14 14 2 3", entities=()):
    """Return the world after some frames with a fixed ninja; one column of the level is full."""
    wall = {(12, row): "#" for row in range(1, 24)}
    world = FixedNinja(build_level(drone, *entities, tiles=wall, spawn=(60, 58)))
    world.place(*ninja)
    world.act(frames)
    return world


def test_check_values():
    world = chase((250.0, 138.0), 0)
    frame = 0
    for at, x, y, heading, chasing in CHECKS:
        world.act(at - frame)
        frame = at
        assert (world.mover["x"], world.mover["y"]) == (x, y), at
        assert (world.code & HEADING, world.code & CHASING != 0) == (heading, chasing), at


@pytest.mark.parametrize(("aside", "seen"), [(12.0, True), (12.001, False), (-12.0, True), (-12.001, False)])
def test_it_sees_twelve_pixels_to_each_side(aside, seen):
    world = chase((250.0, 132.0 + aside), 1, "chaser_drone 14 22 0 3")
    assert (world.code & CHASING != 0) == seen


def test_it_does_not_see_behind():
    world = chase((84.0, 60.0), 1)  # right behind it
    assert (world.code & CHASING, world.code & HEADING) == (0, DOWN)
    world = chase((84.0, 108.0), 1)  # ahead
    assert (world.code & CHASING, world.mover["y"]) == (CHASING, 84.0 + 16.0 / 7.0)


def test_it_does_not_see_the_dead():
    world = chase((84.0, 108.0), 0)
    world.ninja["state"] = DEAD
    world.act()
    assert world.code & CHASING == 0


@pytest.mark.parametrize(("door", "seen"), [("locked_door", False), ("trap_door", True)])
def test_closed_doors_block_the_view(door, seen):
    """Locked doors start closed, trap doors open."""
    world = chase((250.0, 132.0), 43, entities=(f"{door} 32 22", f"{door}_switch 100 100"))
    assert (world.code & CHASING != 0) == seen


def test_it_runs_on_when_the_ninja_is_gone_and_then_looks_around():
    world = chase((250.0, 138.0), 60)
    world.place(900.0, 500.0)
    world.act(60)
    assert (world.mover["x"], world.code) == (262.28571428571377, RIGHT | CHASING)
    world.place(276.0, 300.0)  # below the end of the run
    world.act(10)
    assert world.code == DOWN | CHASING
    assert world.mover["x"] == 276.0


@pytest.mark.parametrize("mode", [0, 1])
def test_a_wall_follower_turns_away_from_its_side_when_the_run_ends(mode):
    """After a run to the right that ends between walls it tries the headings of its mode from a quarter turn aside."""
    world = chase((250.0, 132.0), 0, f"chaser_drone 14 22 0 {mode}")
    world.act(84)
    assert world.code == RIGHT | CHASING
    world.place(900.0, 500.0)
    world.act(1)
    turned = (RIGHT - (1, 3)[mode]) % 4
    first = (turned + (1, 3)[mode]) % 4  # right again, blocked; then straight on along the turned heading
    assert first == RIGHT
    assert world.code == turned


def test_it_kills():
    run = simulate(build_room("chaser_drone 62 58 4"), bytes(200), entities=True)
    dead = np.flatnonzero(run.state == DEAD)
    assert len(dead)
    assert np.hypot(run.x - run.entity_x[:, 0], run.y - run.entity_y[:, 0])[dead[0]] < 17.5
    assert np.diff(run.entity_x[: dead[0], 0]).min() == pytest.approx(-16.0 / 7.0)


def world(kind, ninja=(500.0, 300.0), velocity=(0.0, 0.0), entities=(), orientation=0) -> FixedNinja:
    """Return an empty level with a drone at (300, 300), which points right by default, and a ninja."""
    made = FixedNinja(build_level(f"{kind_name(kind)} 50 50 {orientation} 2", *entities, spawn=(60, 58)))
    made.place(*ninja, *velocity)
    return made


def phases(made: FixedNinja, frames: int) -> list[int]:
    """Return the phase after each frame."""
    found = []
    for _ in range(frames):
        made.act()
        found.append(made.code & PHASE)
    return found


def changes(sequence: list[int]) -> list[tuple[int, int]]:
    """Return (frame, phase) for each change of a sequence that begins with frame 1."""
    return [(i + 1, now) for i, (was, now) in enumerate(zip([PATROL, *sequence], sequence)) if was != now]


def test_laser_check_values():
    made = world(LASER_DRONE)
    made.act()
    assert (made.mover["x"], made.mover["y"], made.code & PHASE) == (300.2857142857143, 300.0, WARNING)
    assert changes(phases(world(LASER_DRONE), 186)) == [(1, WARNING), (46, FIRING), (126, RECOVERING), (186, WARNING)]


def test_the_beam_is_lethal_from_47_to_126():
    lethal = []
    for last in (45, 46, 47, 126, 127):
        made = world(LASER_DRONE)
        made.act(last - 1)
        made.ninja["state"] = 0
        made.act()
        lethal.append(made.ninja["state"] == DYING)
    assert lethal == [False, False, True, True, False]


def test_the_direction_of_the_beam_is_locked():
    made = world(LASER_DRONE)
    made.act(10)
    made.place(500.0, 311.0)
    made.act(100)
    assert made.ninja["state"] == 0
    made.place(800.0, 309.0)
    made.act()
    assert made.ninja["state"] == DYING


def test_chaingun_check_values():
    made = world(CHAINGUN_DRONE, velocity=(0.0, 1.0))
    sequence, shots, degrees, hits = [], [], [], []
    for frame in range(1, 216):
        before = made.code // SHOT
        made.ninja["state"] = 0
        made.act()
        sequence.append(made.code & PHASE)
        if made.code // SHOT > before:
            shots.append(frame)
            mover = made.mover
            ux, uy = unit(mover[AIM_X] - mover["x"], mover[AIM_Y] - mover["y"], 1.0, 0.0)
            dx, dy = swept(mover, world_at(made.worlds, 0).entity_states[0], ux, uy)
            degrees.append(math.degrees(math.atan2(dy, dx)))
        if made.ninja["state"] == DYING:
            hits.append(frame)
    assert changes(sequence) == [(1, WARNING), (53, FIRING), (125, RECOVERING), (215, WARNING)]
    assert shots == SHOT_FRAMES
    assert degrees == pytest.approx(SHOT_DEGREES, abs=5e-5)  # given to four digits
    assert hits == [71, 80, 89]  # within 10 pixels at a distance of 200


def test_the_burst_ends_on_the_side_of_the_motion():
    made = world(CHAINGUN_DRONE, velocity=(0.0, -1.0))
    made.act(62)
    ux, uy = unit(made.mover[AIM_X] - made.mover["x"], made.mover[AIM_Y] - made.mover["y"], 1.0, 0.0)
    assert swept(made.mover, world_at(made.worlds, 0).entity_states[0], ux, uy)[1] > 0.0


def test_a_chaingun_drone_that_aims_at_itself_fires_straight_on():
    made = world(CHAINGUN_DRONE)
    made.act()
    made.place(float(made.mover["x"]), float(made.mover["y"]))
    made.act(61)
    assert made.ninja["state"] == DYING
    assert swept(made.mover, world_at(made.worlds, 0).entity_states[0], 1.0, 0.0) == (1.0, 0.0)


@BOTH
def test_it_stands_and_then_flies_on_to_its_node(kind):
    made, free = world(kind), world(kind, ninja=(500.0, 340.0))
    free.ninja["state"] = DEAD  # is not seen
    made.act(5)
    assert made.mover["x"] == 300.0 + SPEED[kind]
    made.ninja["state"] = DEAD
    assert set(phases(made, 1)) == {RECOVERING}
    waited = phases(made, 90).index(PATROL)
    assert waited == (59 if kind == LASER_DRONE else 89)
    made = world(kind)
    made.act(5)
    made.ninja["state"] = DEAD
    made.act(1 + waited + 1 + 200)
    free.act(201)
    assert made.mover.tobytes()[:32] == free.mover.tobytes()[:32]
    assert made.code == free.code
    assert free.mover["x"] > 324.0


@BOTH
def test_it_does_not_see_through_a_closed_door(kind):
    door = ("locked_door 64 50", "locked_door_switch 150 10")
    assert set(phases(world(kind, entities=door), 20)) == {PATROL}
    made = world(kind, entities=door)
    world_at(made.worlds, 0).entity_states[0] = 1  # the door comes first; it is open now
    assert phases(made, 2) == [WARNING, WARNING]


@BOTH
def test_vertical_flight_is_remembered_too(kind):
    made = world(kind, orientation=2)
    made.act()
    assert made.code == WARNING | 1
    made.ninja["state"] = DEAD
    made.act(95)
    made.act(100)
    assert made.code & HEADING == 1
    assert made.mover["x"] == 300.0
    assert made.mover["y"] > 324.0
    assert made.mover[NODE_Y] % 24.0 == 12.0


@BOTH
def test_touching_is_harmless_and_standing_in_view_is_not(kind):
    run = simulate(build_room(f"{kind_name(kind)} 42 58 0 2"), bytes(80), entities=True)
    dead = int(np.flatnonzero(run.state == DEAD)[0])
    assert WARNED[kind] < dead < WARNED[kind] + 30
    assert (np.hypot(run.x - run.entity_x[:, 0], run.y - run.entity_y[:, 0]) < 15.0).all()
    assert JUMPING not in run.state


def test_they_are_in_no_cell():
    made = world(LASER_DRONE)
    made.act(100)
    assert made.mover["cell"] == NO_CELL
