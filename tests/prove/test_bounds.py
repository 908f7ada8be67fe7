"""Lower bounds: never above a solution, tight in halls, and never exceeded by play."""

import numpy as np
import pytest

from nclone_env.level.build import build_level, hall_tiles
from nclone_env.level.catalog import basic_sets
from nclone_env.level.level_set import pack
from nclone_env.level.load import load_level
from nclone_env.level.solutions import known_solutions
from nclone_env.prove.bounds import LEAST, _Frontier, distances, falls, frames_to_fall, hall_of, lower_bound
from nclone_env.sim.session import Session

BUILT_IN = [name for names in basic_sets().values() for name in names]
TILES = hall_tiles((4, 38), (12, 16))


def hall(*entities, spawn=(40, 66), tiles=TILES):
    return pack([build_level("exit 80 66", "exit_switch 70 66", *entities, tiles=tiles, spawn=spawn)])


@pytest.mark.parametrize("name", BUILT_IN)
def test_no_known_solution_is_below_the_bound(name):
    bound = lower_bound(pack([load_level(name)]))
    assert LEAST <= bound.frames <= len(known_solutions()[name])


@pytest.mark.parametrize(("name", "share"), [("first-steps/01-walk", 0.99), ("hazards/02-minefield", 0.97)])
def test_the_bound_of_a_hall_is_tight(name, share):
    bound = lower_bound(pack([load_level(name)]))
    assert bound.rule == "hall"
    assert bound.frames >= share * len(known_solutions()[name])
    assert lower_bound(pack([load_level(name)]), 0.05).frames <= bound.frames


def test_what_is_a_hall():
    found = hall_of(hall())
    assert (found.left, found.right, found.floor) == (24 * 4 + 10, 24 * 39 - 10, 24 * 17 - 10)
    assert hall_of(hall("gold 50 66", "mine 60 60", "zap_drone 60 54 0 0")) is not None


@pytest.mark.parametrize(
    "entities",
    [
        "launch_pad 60 68 0",
        "bounce_block 60 60",
        "boost_pad 60 60",
        "one_way 60 60 0",
        "thwump 60 60 0",
        "regular_door 60 66 0",
    ],
)
def test_what_pushes_makes_no_hall(entities):
    assert hall_of(hall(entities)) is None
    assert lower_bound(hall(entities)).frames == LEAST


def test_other_tiles_make_no_hall():
    tiles = TILES.copy()
    tiles[15, 20] = 2
    assert hall_of(hall(tiles=tiles)) is None
    open_at_the_top = TILES.copy()
    open_at_the_top[10, 20] = 0
    assert hall_of(hall(tiles=open_at_the_top)) is None
    assert hall_of(hall(tiles=hall_tiles((1, 38), (12, 16)))) is None  # where the game has odd corners


def played(levels, seed, count=256, frames=160):
    """Yield the ninjas of many random runs after each frame; some hold inputs for long."""
    rng, session = np.random.default_rng(seed), Session(levels, count)
    holds = rng.integers(1, 40, count)
    codes = rng.integers(0, 6, count)
    for frame in range(frames):
        codes = np.where(frame % holds == 0, rng.integers(0, 6, count), codes)
        session.tick(codes)
        yield session.worlds.ninjas


@pytest.mark.parametrize("spawn", [(40, 66), (40, 52), (19, 66), (153, 66)])
def test_play_stays_within_the_frontier(spawn):
    levels = hall(spawn=spawn)
    found = hall_of(levels)
    right = _Frontier(found.spawn[0], found.left, found.right, 0.01)
    left = _Frontier(-found.spawn[0], -found.right, -found.left, 0.01)
    landing = frames_to_fall(found.floor - found.spawn[1])
    nearest = np.inf
    for frame, ninjas in enumerate(played(levels, 1), start=1):
        for frontier in (right, left):
            frontier.advance(frame >= landing)
        for sign, frontier in ((1.0, right), (-1.0, left)):
            places = (np.floor(sign * ninjas["vx"] / 0.01) + len(frontier.reached) // 2).astype(int)
            margins = frontier.reached[places] - sign * ninjas["x"]
            assert margins.min() >= 0.0
            nearest = min(nearest, margins.min())
        right.leave_wall(left.farthest)
        left.leave_wall(right.farthest)
    assert nearest < 1.0  # the frontier is close to what is played


def test_play_stays_within_distances_and_falls():
    levels, width, frames = hall(spawn=(120, 52)), 0.01, 40
    table, depths = distances(frames, width), falls(frames)
    steps = [ninjas.copy() for ninjas in played(levels, 2, frames=80)]
    for start in (0, 20, 40):
        for later in (1, 5, 39):
            before, after = steps[start], steps[start + later]
            places = (np.floor(before["vx"] / width) + table.shape[1] // 2).astype(int)
            assert (after["x"] - before["x"] <= table[later, places]).all()
            assert (after["y"] - before["y"] <= depths[later, 0] + depths[later, 1] * np.maximum(before["vy"], 0)).all()


def test_a_free_fall_takes_as_long_as_in_the_game():
    levels = pack(
        [build_level("exit 80 100", "exit_switch 40 100", tiles=hall_tiles((4, 38), (4, 22)), spawn=(40, 20))]
    )
    session, frames = Session(levels), 0
    while session.ninja["y"] - 120.0 < 200.0:
        session.tick(0)
        frames += 1
    assert frames_to_fall(200.0) == frames
