"""Worlds in one store: each has room for what it needs, keeps its contents when it moves, and leaves others alone."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nclone_env.level.build import build_room
from nclone_env.level.level_set import pack
from nclone_env.sim.session import Session, play_worlds, start_worlds
from nclone_env.sim.state import World, make_growing_worlds, make_worlds, place_world, world_at
from nclone_env.sim.store import (
    PARTS,
    SETTLED,
    WorldArrays,
    fit_world,
    gains_space,
    lacks_space,
    recall,
    remember,
    trail_count,
    with_space,
)

EVIL = ("evil_ninja 41 58",) * 3
LEVELS = pack([build_room(), build_room(*("zap_drone 60 50",) * 9, "gold 40 40"), build_room(*EVIL)])
COUNT, STEP = 4, 5


def growing(count: int = COUNT) -> WorldArrays:
    return make_growing_worlds(count, LEVELS, max_frames=600, step=STEP)


def fitted(worlds: WorldArrays, index: int, *sizes: int) -> WorldArrays:
    """Return worlds in which one has room for so many elements."""
    fit_world(worlds, index, *sizes)
    while lacks_space(worlds):
        worlds = with_space(worlds)
        fit_world(worlds, index, *sizes)
    return worlds


def check_spans(worlds: WorldArrays) -> None:
    """Check that no spans overlap or are outside their array, and that the store counts them."""
    store, rooms = worlds.rooms[-1], worlds.rooms[:-1]
    for part, array in zip(PARTS, (worlds.entity_states, worlds.movers, worlds.trail), strict=True):
        spans = rooms[part][rooms[part]["size"] > 0]
        ends = spans["first"] + spans["size"]
        assert spans["size"].sum() == store[part]["size"]
        assert max(ends, default=0) <= store[part]["first"] < len(array)
        order = np.argsort(spans["first"])
        assert (spans["first"][order][1:] >= ends[order][:-1]).all()
    order, index = [], int(store["after"])
    while index != len(rooms):
        order.append(index)
        index = int(rooms[index]["after"])
    assert sorted(order) == list(range(len(rooms)))
    assert order[-1] == store["before"]
    for part in PARTS:
        assert (np.diff(rooms[part]["first"][[i for i in order if rooms[part]["size"][i]]]) >= 0).all()


def content(random: np.random.Generator, entities: int, movers: int, rows: int) -> World:
    """Return a world of a level, level 2, of other sizes than it has."""
    world = world_at(make_worlds(1, LEVELS), 0).copy()
    world.ninja["level"], world.ninja["frame"] = 2, rows
    drawn = np.zeros(movers, world.movers.dtype)
    drawn["x"], drawn["order"] = random.uniform(0, 1000, movers), random.integers(0, 99, movers)
    return World(world.ninja, random.integers(0, 255, entities).astype(np.uint8), drawn, random.uniform(size=(rows, 2)))


sizes = st.tuples(st.integers(0, LEVELS.max_entities), st.integers(0, LEVELS.max_movers), st.integers(0, 60))


@settings(max_examples=60)
@given(calls=st.lists(st.tuples(st.integers(0, COUNT - 1), sizes, st.booleans()), min_size=1, max_size=40))
def test_worlds_keep_what_they_have_wherever_they_are(calls):
    worlds, random, expected = growing(), np.random.default_rng(len(calls)), dict[int, bytes]()
    for index, wanted, is_new in calls:
        worlds = fitted(worlds, index, *wanted)
        if is_new:
            world = content(random, *wanted)
            place_world(LEVELS.arrays, worlds, index, world)
            expected[index] = world.tobytes()
        check_spans(worlds)
        assert {i: world_at(worlds, i).tobytes() for i in expected} == expected
    room = worlds.rooms[calls[-1][0]]
    assert all(room[part]["size"] >= size for part, size in zip(PARTS, calls[-1][1], strict=True))


def test_a_world_that_gets_smaller_takes_less_when_it_moves():
    worlds = fitted(growing(2), 0, 9, 1, 60)
    worlds = fitted(worlds, 1, 1, 1, 1)
    worlds = fitted(worlds, 0, 2, LEVELS.max_movers, 1)
    check_spans(worlds)
    assert [worlds.rooms[0][part]["size"] for part in PARTS] == [2, LEVELS.max_movers, 1]


def test_spans_move_together_before_the_arrays_grow():
    worlds = growing()
    arrays = worlds
    for number in range(400):
        index = number % COUNT
        fit_world(worlds, index, number % 5, number % 9, 0)
        if lacks_space(worlds):
            assert gains_space(worlds)
            fit_world(worlds, index, number % 5, number % 9, 0)
        assert not lacks_space(worlds)
    assert worlds is arrays
    fit_world(worlds, 0, 0, 0, 1000)
    assert lacks_space(worlds)
    assert not gains_space(worlds), "the trail has no room for so much"


def test_without_space_a_world_stays_as_it_is():
    worlds = fitted(growing(), 1, 5, 3, 7)
    before = worlds.rooms.copy()
    fit_world(worlds, 1, 5, 10**6, 7)
    assert lacks_space(worlds)
    assert worlds.rooms[:-1].tobytes() == before[:-1].tobytes()


@pytest.mark.parametrize("touched", [31, 200])
def test_the_trail_grows_with_the_positions_that_are_remembered(touched):
    """A world that gets rows as it needs them is one that had room for all from the start."""
    session, worlds = Session(LEVELS), growing(1)
    session.start(2)
    worlds = fitted(worlds, 0, *(int(LEVELS.arrays.header[2][name]) for name in ("entity_count", "mover_count")), STEP)
    start_worlds(LEVELS.arrays, worlds, np.array([2]))
    inputs = np.array([0] * touched + [2] * 60 + [1, 3, 5] * 80, np.uint8)
    sizes = set()
    for first in range(0, len(inputs), STEP):
        if worlds.rooms["settled"][-1] != SETTLED:
            rows = 2 * (trail_count(worlds, 0) + STEP)
            sizes.add(min(rows, int(worlds.rooms["trail"]["used"][0])))
            worlds = fitted(worlds, 0, 0, 0, max(sizes))
            worlds.rooms["settled"] = SETTLED
        session.play(inputs[first : first + STEP])
        play_worlds(LEVELS.arrays, worlds, inputs[first : first + STEP, None])
        assert world_at(worlds, 0).tobytes() == session[0].tobytes()
    assert len(world_at(worlds, 0).trail) > 200
    assert len(sizes) >= 4, "it grew step by step"


def test_a_row_outside_of_the_trail_is_not_read():
    """Numbers that were forged ask for frames that no trail has."""
    worlds = fitted(growing(1), 0, 8, 3, 6)
    worlds.rooms["trail"]["used"], worlds.trail[6:] = 359, np.nan
    for frame in range(3):
        worlds.ninjas["frame"], worlds.ninjas["x"] = frame + 1, frame
        remember(worlds, 0)
    for frame in (-(2**30), -1, 0, 5, 6, 358, 359, 2**30):
        assert np.isfinite(recall(worlds, 0, frame)).all()
    assert recall(worlds, 0, 2) == (2.0, 0.0)


def test_worlds_on_levels_alike_have_room_at_once():
    alike = pack([build_room("gold 40 40", "zap_drone 60 50"), build_room("mine 44 58", "zap_drone 60 50")])
    worlds = make_growing_worlds(1000, alike, 600, STEP)
    assert [len(worlds.entity_states), len(worlds.movers)] == [1000 * alike.max_entities, 1000]
    before = worlds.rooms.tobytes()
    fit_world(worlds, 3, 1, 1, 0)
    assert worlds.rooms.tobytes() == before
    fit_world(growing := make_growing_worlds(1000, LEVELS, 600, STEP), 3, 1, 1, 0)
    assert growing.rooms[3]["movers"]["size"] == 1, "negative control"


def test_more_worlds_than_spans_can_express():
    with pytest.raises(ValueError, match=r"4,000,000,000 worlds .* fewer of them"):
        make_worlds(4_000_000_000, pack([build_room("gold 40 40")]))


def test_arrays_are_as_large_as_worlds_hardly_ever_need():
    """Room for 2,000 worlds on two levels drawn at random each: within the arrays as they are made."""
    many = pack([build_room(*("zap_drone 60 50",) * drones) for drones in (0, 0, 0, 0, 0, 0, 0, 0, 0, 120)])
    header, random = many.arrays.header, np.random.default_rng(0)
    drawn = random.integers(0, 10, (50, 2000, 2))
    needed = header["mover_count"][drawn].max(axis=2).sum(axis=1)
    worlds = make_growing_worlds(2000, many, 600, STEP)
    assert needed.max() < len(worlds.movers) < 2 * needed.mean()
    assert len(worlds.movers) < 2000 * header["mover_count"].max() / 2
