"""The archive: each cell holds the world its way leads to; its size is known beforehand and is enough."""

import numpy as np
import pytest

from nclone_env.level import build_level, build_room, hall_tiles, load_level, make_guide, pack
from nclone_env.plan.archive import (
    HOLD,
    Rules,
    archive_bytes,
    begin,
    best_inputs,
    cells_that_fit,
    explore,
    make_archive,
)
from nclone_env.plan.kernels import EMPTY, path_remaining, thin
from nclone_env.plan.searches import ArchiveSearch
from nclone_env.plan.solver import solve
from nclone_env.plan.task import make_task, origin_of
from nclone_env.sim import Session, cell_key, key_parts, mix, simulate, world_at

LEVEL = load_level("jumps/03-islands")
SIZE, SPEED = 24.0, 2.25
MAX_FRAMES = 2000


def searched(level=LEVEL, cells=20_000, frames=60_000, seed=1, limit=MAX_FRAMES, thins=False):
    """Return (archive, parts, solutions found) after a search of so many frames."""
    levels = pack([level])
    archive, guide, parts = make_archive(levels, cells, origin_of(levels)), make_guide(levels), key_parts(levels)
    rules = Rules(SIZE, SPEED, thins=thins)
    found = []
    archive.search["limit"], archive.search["longest"], archive.search["hold"] = limit, MAX_FRAMES, HOLD
    begin(levels.arrays, archive, guide, parts, rules, seed)
    while archive.search[0]["frames"] < frames:
        if explore(levels.arrays, archive, guide, parts, rules, frames):
            found.append(best_inputs(archive).tobytes())
    return archive, parts, found


def way(archive, node):
    """Return the inputs that lead to a node."""
    codes = []
    while node:
        codes.append(archive.nodes[node]["input"])
        node = archive.nodes[node]["parent"]
    return np.repeat(np.array(codes[::-1], np.uint8), HOLD)


def check_cells(archive, parts, level=LEVEL):
    """Check that every 20th cell is where its way leads, and under its key."""
    worlds, count = archive.worlds, archive.search[0]["cells"]
    for number in range(0, count, 20):
        inputs = way(archive, archive.cells[number]["node"])
        assert len(inputs) == archive.cells[number]["frame"]
        session = Session(level, max_frames=MAX_FRAMES)
        session.play(inputs)
        assert session.snapshot() == world_at(worlds, number).tobytes()
        place = np.flatnonzero(archive.table.numbers == number)
        key = mix(np.uint64(cell_key(worlds, number, parts, SIZE, SPEED)), np.uint64(0))
        assert [int(archive.table.keys[one]) for one in place] == [int(key)]


def trapped_cells(archive):
    """Return whether the trap door is closed in the world of each cell, and the ninja on this side of it."""
    count = archive.search[0]["cells"]
    ninjas = archive.worlds.ninjas[:count]
    states = np.array([world_at(archive.worlds, number).entity_states for number in range(count)])
    assert count > 20
    return (states[:, 2] != 0) & (ninjas["x"] < 585.0)


def test_no_cell_is_behind_a_trap_door_that_must_stay_open():
    """The switch of the door is on the way to it, but can be jumped over."""
    entities = ("exit 130 62", "exit_switch 120 62", "trap_door 100 60 0", "trap_door_switch 60 63")
    level = build_level(*entities, tiles=hall_tiles((2, 40), (14, 15)), spawn=(40, 62))
    task = make_task(level, max_frames=MAX_FRAMES)
    careful = make_guide(task.level_set, careful=True)
    plain, other = (
        ArchiveSearch(one, make_archive(task.level_set, 5000, task.origin), Rules(), 1)
        for one in (task, task._replace(guide=careful))
    )
    for search in (plain, other):
        search.advance(20_000, lambda: False)
    assert trapped_cells(plain._archive).any()
    assert not trapped_cells(other._archive).any()
    plain.follow(careful)
    cells = plain._archive.cells[: plain._archive.search[0]["cells"]]
    assert (cells["visits"][trapped_cells(plain._archive)] > 1_000_000).all()
    assert (cells["visits"][~trapped_cells(plain._archive)] < 1_000_000).all()
    ways = [path_remaining(careful, plain._archive.worlds, number) for number in range(len(cells))]
    assert cells["way"].tolist() == ways


def test_each_cell_holds_the_world_that_its_way_leads_to():
    archive, parts, found = searched()
    assert archive.search[0]["cells"] > 500
    check_cells(archive, parts)
    lengths = [len(inputs) for inputs in found]
    assert lengths == sorted(lengths, reverse=True)
    for inputs in found:
        states = simulate(LEVEL, inputs).state
        assert states[-1] == 8
        assert (states[:-1] < 6).all()


def test_a_search_depends_on_its_seed_alone():
    first, again, other = (searched(frames=20_000, seed=seed)[0] for seed in (1, 1, 2))
    assert first.search.tobytes() == again.search.tobytes()
    assert first.cells.tobytes() == again.cells.tobytes()
    assert first.cells.tobytes() != other.cells.tobytes()


def test_a_full_archive_keeps_earlier_visits_only():
    archive, parts, _ = searched(cells=100)
    assert archive.search[0]["cells"] == 100
    assert np.count_nonzero(archive.table.numbers != EMPTY) == 100
    check_cells(archive, parts)


def test_a_full_archive_that_is_thinned_finds_the_way_on():
    """With room for so few cells, the others fill it long before the exit."""
    without, _, none = searched(cells=600, frames=1_000_000)
    archive, parts, found = searched(cells=600, frames=1_000_000, thins=True)
    assert without.search[0]["thinned"] == 0
    assert not none
    assert archive.search[0]["thinned"] > 0
    assert found
    assert simulate(LEVEL, np.frombuffer(found[0], np.uint8)).state[-1] == 8
    check_cells(archive, parts)


def test_thinning_keeps_the_start_and_some_of_each_place():
    archive, parts, _ = searched(cells=400)
    cells = archive.cells.copy()
    places = set(cells["place"].tolist())
    thin(archive)
    kept = archive.cells[: archive.search[0]["cells"]]
    assert 0 < len(kept) <= 100
    assert kept[0] == cells[0]
    assert np.isin(kept["key"], cells["key"]).all()
    assert np.count_nonzero(archive.table.numbers != EMPTY) == len(kept)
    assert len(set(kept["place"].tolist())) >= min(len(places), 100) // 2
    before, after = (np.unique(one["place"], return_counts=True)[1].max() for one in (cells, kept))
    assert after < before / 4  # crowded places make more room than others
    check_cells(archive, parts)


def test_cells_before_the_newest_landmark_make_more_room():
    archive, _, _ = searched(cells=2000, frames=400_000)
    cells = archive.cells[: archive.search[0]["cells"]]
    cells["place"] = np.arange(len(cells)) % 16  # sixteen places, half of them behind
    cells["step"] = cells["place"] // 8
    thin(archive)
    kept = archive.cells[: archive.search[0]["cells"]]
    counts = np.bincount(kept["place"], minlength=16)
    assert counts[8:].min() > 1.5 * counts[:8].max()


def test_nodes_that_lead_nowhere_are_dropped():
    archive, parts, found = searched(cells=400, frames=400_000)
    used, ways = archive.search[0]["nodes"], set()
    for number in range(archive.search[0]["cells"]):
        node = archive.cells[number]["node"]
        while node and node not in ways:
            ways.add(int(node))
            node = archive.nodes[node]["parent"]
    assert used <= len(archive.nodes)
    assert archive.search[0]["frames"] >= 400_000
    check_cells(archive, parts)
    if found:
        assert best_inputs(archive).tobytes() == found[-1]


def test_an_archive_too_small_for_a_round_ends_the_search():
    archive, _, _ = searched(cells=1, frames=1000)
    assert archive.search[0]["frames"] == 1000


def test_solutions_are_shorter_than_the_limit():
    _, _, found = searched(frames=200_000)
    limit = len(found[0])
    _, _, shorter = searched(frames=200_000, limit=limit)
    assert all(len(inputs) < limit for inputs in shorter)


@pytest.mark.parametrize("level", [LEVEL, build_room("exit 60 58", "exit_switch 50 58", "evil_ninja 20 58")])
def test_the_memory_is_known_beforehand(level):
    levels = pack([level])
    archive = make_archive(levels, 1000, origin_of(levels))
    arrays = [*archive.worlds, *archive.table, *archive[2:]]
    assert sum(array.nbytes for array in arrays) == archive_bytes(levels, 1000)
    for memory in (10_000_000, 33_333_333):
        cells = cells_that_fit(levels, memory)
        assert archive_bytes(levels, cells) <= memory
        assert archive_bytes(levels, cells + 1) > memory


PADS = build_level(
    *(f"boost_pad {x} 82" for x in range(24, 150, 5)), "exit 158 82", "exit_switch 150 82",
    tiles=hall_tiles((2, 41), (18, 20)), spawn=(12, 82),
)  # fmt: skip
"""A level on which the ninja is faster than the searches for better solutions assume."""


def begun(level, slowness, limit):
    """Return an archive that has begun with these settings."""
    levels = pack([level])
    archive, guide, parts = make_archive(levels, 500, origin_of(levels)), make_guide(levels), key_parts(levels)
    rules = Rules(SIZE, SPEED, slowness=slowness)
    archive.search["limit"], archive.search["longest"], archive.search["hold"] = limit, MAX_FRAMES, HOLD
    begin(levels.arrays, archive, guide, parts, rules, 1)
    explore(levels.arrays, archive, guide, parts, rules, 2000)
    return archive


@pytest.mark.parametrize("level", [LEVEL, PADS], ids=["islands", "pads"])
def test_the_first_cell_is_never_left_out(level):
    """Where the estimate says at once that the limit cannot be kept, it is wrong, and is not asked any more."""
    slowness = 1 / 4.5
    archive = begun(level, slowness, 100)
    assert archive.search[0]["slowness"] == 0.0
    assert archive.search[0]["cells"] > 1
    assert archive.cells[0]["frame"] == 0
    check_cells(archive, key_parts(pack([level])), level)
    assert begun(level, slowness, MAX_FRAMES).search[0]["slowness"] == slowness


def test_a_search_beside_pads_finds_more_than_the_first_solution():
    found = solve(PADS, frames=400_000)
    assert 0 < found.frames < 100
    searches = make_guide(pack([PADS]))
    session = Session(PADS)
    assert path_remaining(searches, session.worlds, 0) / 4.5 > found.frames  # the estimate is wrong here
