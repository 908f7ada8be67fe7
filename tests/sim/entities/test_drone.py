"""Chaser drones (physics 03, section 10), with the check values of section 20."""

import numpy as np
import pytest

from nclone_env.game import DEAD
from nclone_env.level.build import build_level, build_room
from nclone_env.sim.entities.drone import CHASING, HEADING
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
