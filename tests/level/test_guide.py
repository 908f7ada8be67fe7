"""Landmarks in order, and path lengths against a search with a heap."""

import numpy as np
import pytest

from nclone_env.game import KINDS, ONE_WAY
from nclone_env.level.build import build_level, build_room, hall_tiles
from nclone_env.level.level_set import pack
from nclone_env.level.load import load_levels
from nclone_env.level.routes.distance import solid_mask
from nclone_env.level.routes.guide import make_guide, paths_with_doors
from nclone_env.level.routes.lattice import FAR, LATTICE, clear_nodes, length_at, path_lengths
from nclone_env.plan.kernels import path_remaining
from nclone_env.sim.session import Session

from .level_bases import one_way_steps
from .routes.decoded import all_lengths
from .routes.test_distance import naive_distances

HALL = hall_tiles((2, 40), (5, 15))
CORRIDOR = hall_tiles((2, 40), (14, 15))  # y from 336 to 384


def test_lengths_are_those_of_a_search_with_a_heap():
    rng = np.random.default_rng(2)
    costs = np.zeros(LATTICE, np.float32)
    costs[2:-2, 2:-2] = rng.choice([0.0, 1.0, 1.0, 4.0], (LATTICE[0] - 4, LATTICE[1] - 4))
    costs[50, 80] = 1.0
    field = path_lengths(costs, 480.0, 300.0, 1.0, onward=7.0)
    free = set(zip(*np.nonzero(costs)))
    expected = naive_distances(free, {(50, 80): 7.0}, lambda node: 6.0 * float(costs[node]))
    assert set(zip(*np.nonzero(field < FAR))) == set(expected)
    for node, length in expected.items():
        assert field[node] == pytest.approx(length, rel=1e-5)  # float32 sums


def test_clear_nodes_keep_a_disc_free():
    solid = solid_mask(pack([build_level(tiles=HALL)]).arrays.tiles[0])
    free = clear_nodes(solid, 9.0)
    rows, columns = np.nonzero(free)  # the hall is 48..984 by 120..384 pixels
    assert (rows.min() * 6, rows.max() * 6) == (132, 372)
    assert (columns.min() * 6, columns.max() * 6) == (60, 972)
    assert clear_nodes(solid, 7.0).sum() > free.sum()


def test_a_target_without_free_nodes_is_out_of_reach():
    costs = np.zeros(LATTICE, np.float32)
    costs[20, 20] = 1.0
    assert (path_lengths(costs, 600.0, 300.0, 16.0) == FAR).all()


def test_lengths_outside_the_world_are_those_at_its_border():
    fields = np.arange(2 * 101 * 177, dtype=np.float32).reshape(2, *LATTICE)
    assert length_at(fields, 1, -500.0, 1e4) == fields[1, 99, 1]
    assert length_at(fields, 0, 1e4, -1e4) == fields[0, 1, 175]


def names_of(level):
    levels = pack([level])
    guide = make_guide(levels)
    return [KINDS[kind].name for kind in levels.entities_of(0)["type"][guide.landmarks]], guide


def left(level, guide, x=None, taken=()):
    """Return the remaining path from a place, with some entities touched."""
    session = Session(level)
    if x is not None:
        session.worlds.ninjas[0]["x"] = x
    session[0].entity_states[list(taken)] = 1
    return float(path_remaining(guide, session.worlds, 0))


def test_the_way_leads_by_the_switch_to_the_exit():
    level = build_room("exit 90 58", "exit_switch 20 58")
    names, guide = names_of(level)
    assert names == ["exit_switch"]
    assert left(level, guide) == pytest.approx(20 * 6 + 70 * 6, abs=12)
    assert left(level, guide, taken=(1,)) == pytest.approx(50 * 6, abs=12)


BEHIND_A_DOOR = ("exit 120 62", "exit_switch 110 62", "locked_door 100 60 0", "locked_door_switch 20 62")


def test_the_switch_of_a_door_in_the_way_comes_first():
    level = build_level(*BEHIND_A_DOOR, tiles=CORRIDOR, spawn=(40, 62))
    names, guide = names_of(level)
    assert names == ["locked_door", "exit_switch"]
    assert left(level, guide) == pytest.approx(120 + 540 + 60, abs=40)
    assert left(level, guide, taken=(2,)) == pytest.approx(420 + 60, abs=40)


@pytest.mark.parametrize(("more", "expected"), [(99, ["locked_door", "exit_switch"]), (100, ["exit_switch"])])
def test_more_than_a_hundred_doors_are_taken_as_open(more, expected):
    others = ("locked_door 150 60 0", "locked_door_switch 140 62") * more
    assert names_of(build_level(*BEHIND_A_DOOR, *others, tiles=CORRIDOR, spawn=(40, 62)))[0] == expected


def test_doors_that_are_not_in_the_way_are_ignored():
    level = build_level(
        "exit 90 62",
        "exit_switch 80 62",
        "locked_door 100 60 0",
        "locked_door_switch 20 62",
        tiles=CORRIDOR,
        spawn=(40, 62),
    )
    assert names_of(level)[0] == ["exit_switch"]


def test_a_mine_makes_the_way_longer():
    plain, mined = (
        build_level("exit 90 62", "exit_switch 80 62", *more, tiles=CORRIDOR, spawn=(40, 62))
        for more in ((), ("mine 60 60",))
    )
    assert left(mined, names_of(mined)[1]) > left(plain, names_of(plain)[1]) + 20


def test_nineteen_doors_on_one_spot():
    doors = [f"locked_door 100 60 0\nlocked_door_switch {20 + 3 * number} 62" for number in range(19)]
    level = build_level("exit 120 62", "exit_switch 110 62", *doors, tiles=CORRIDOR, spawn=(17, 62))
    names, guide = names_of(level)
    assert names == ["locked_door"] * 19 + ["exit_switch"]
    assert len(guide.fields) == 21
    assert left(level, guide) == pytest.approx(103 * 6, abs=60)


def test_without_a_path_lengths_are_straight():
    tiles = CORRIDOR.copy()
    tiles[:, 25] = 1
    level = build_level("exit 120 62", "exit_switch 110 62", tiles=tiles, spawn=(40, 62))
    _, guide = names_of(level)
    assert left(level, guide) == pytest.approx(420 + 60, abs=12)


def test_places_without_a_path_are_lost():
    level = build_level("exit 90 62", "exit_switch 80 62", tiles=CORRIDOR, spawn=(40, 62))
    session = Session(level)
    session.worlds.ninjas[0]["y"] = 100.0
    guide = names_of(level)[1]
    lengths = guide.fields[0][guide.fields[0] < FAR]
    assert path_remaining(guide, session.worlds, 0) == guide.longest[0] == lengths.max()


def test_a_one_way_platform_is_passed_from_behind_only():
    platform = "one_way 80 62 0"
    level = build_level(
        "exit 130 62", "exit_switch 120 62", platform, tiles=hall_tiles((2, 40), (15, 15)), spawn=(40, 62)
    )
    levels = pack([level])
    costs = np.where(clear_nodes(solid_mask(levels.arrays.tiles[0]), 9.0), np.float32(1.0), np.float32(0.0))
    entities = levels.entities_of(0)
    barred = one_way_steps(entities[entities["type"] == ONE_WAY])
    right, left, row = (600.0, 372.0), (300.0, 372.0), 62
    assert path_lengths(costs, *right, 10.0, barred=barred)[row, 50] == pytest.approx(300.0, abs=15.0)
    assert path_lengths(costs, *left, 10.0, barred=barred)[row, 100] >= FAR
    assert path_lengths(costs, *left, 10.0)[row, 100] < FAR
    forward = path_lengths(costs, *left, 10.0, barred=barred, towards=False)
    assert forward[row, 100] == pytest.approx(300.0, abs=15.0)


def test_a_switch_outside_the_world_is_out_of_reach():
    things = ("exit 60 60", "exit_switch 50 60")
    level = build_level(*things, "locked_door 40 60", "locked_door_switch 40 255", tiles=HALL)
    guides = [make_guide(pack([one])) for one in (level, build_level(*things, tiles=HALL))]
    assert len(guides[0].landmarks) == len(guides[1].landmarks)


def walled(*things):
    """Return a level whose exit no path leads to."""
    tiles = CORRIDOR.copy()
    tiles[:, 25] = 1
    return build_level("exit 120 62", "exit_switch 110 62", *things, tiles=tiles, spawn=(40, 62))


@pytest.mark.parametrize("more", [0, 1, 99, 100])
@pytest.mark.parametrize("make", ["corridor", "walled", "open"])
def test_paths_with_doors_are_those_of_the_guide(make, more):
    doors = ("locked_door 150 60 0", "locked_door_switch 140 62") * more
    if make == "corridor":
        level = build_level(*BEHIND_A_DOOR, *doors, tiles=CORRIDOR, spawn=(40, 62))
    else:
        level = walled(*doors) if make == "walled" else build_room("exit 90 58", "exit_switch 20 58", *doors)
    levels = pack([level])
    guide, paths = make_guide(levels), paths_with_doors(levels)
    assert paths.landmarks[:-1].tolist() == guide.landmarks.tolist()
    assert KINDS[levels.entities_of(0)["type"][paths.landmarks[-1]]].name == "exit"
    fields = guide.fields[:, ::2, ::2]
    lengths = all_lengths(paths)
    assert np.array_equal(lengths, np.where(fields < FAR, fields, np.inf))
    assert np.isfinite(lengths).any(axis=(1, 2)).all()


def test_paths_of_a_set_are_told_level_by_level_where_they_are_computed(monkeypatch):
    monkeypatch.setenv("NCLONE_ENV_LEVEL_CACHE_MB", "0")  # else another test may have left them
    levels, told = pack(load_levels("jumps")[:2], with_distances=True), list[tuple[str, int, int]]()
    first = paths_with_doors(levels, lambda *call: told.append(call))
    assert told == [("paths found", 1, 2), ("paths found", 2, 2)]
    assert all(map(np.array_equal, paths_with_doors(levels, lambda *call: told.append(call)), first))
    assert len(told) == 2, "they are kept"
