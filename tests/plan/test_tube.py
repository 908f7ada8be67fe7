"""Tubes: each better solution wins, the tube lies along it, and its cells hold the worlds their ways lead to."""

import numpy as np

from nclone_env.level import known_solutions, load_level
from nclone_env.plan.archive import Rules, make_archive
from nclone_env.plan.searches import TubeSearch
from nclone_env.plan.task import make_task, replay
from nclone_env.plan.tube import _BIN, choose, clear
from nclone_env.sim import Session, hash_world

from .test_solve import wins

NAME = "jumps/04-chimney"
LEVEL = load_level(NAME)
KNOWN = np.frombuffer(known_solutions()[NAME], np.uint8)  # each input held for four frames
LAG = 20


def searched(inputs=KNOWN, seed=1, frames=150_000, level=LEVEL, **arguments):
    """Return a tube search after so many frames, and the solutions that it found."""
    task = make_task(level, **arguments)
    best, archive = (
        replay(task.level_set, task.origin, inputs, task.price),
        make_archive(task.level_set, 5000, task.origin),
    )
    search, found = TubeSearch(task, archive, Rules(12.0, 1.0), LAG, task.max_frames, seed, best), []
    while search.simulated < frames:
        search.advance(search.simulated + 1, lambda: False)
        inputs = search.found()
        if inputs is not None:
            found.append(inputs)
            search.learn(replay(task.level_set, task.origin, inputs, task.price))
    return search, found


def test_solutions_become_shorter_and_win():
    _, found = searched()
    lengths = [len(KNOWN), *map(len, found)]
    assert lengths == sorted(set(lengths), reverse=True)
    assert lengths[-1] < len(KNOWN) - 10
    assert all(wins(LEVEL, inputs) for inputs in found)


def test_the_tube_lies_along_the_solution():
    """The frames that are due fall as the remaining path grows; a cell that the solution visits is reached in time."""
    search, _ = searched()
    tube, count = search._tube, search._tube.archive.search[0]["cells"]
    cells = tube.archive.cells[:count]
    assert tube.state[0]["laid"] == 1
    assert (np.diff(tube.due) <= 0).all()
    assert tube.due[-1] == 0
    visited = cells["step"] >= 0
    assert visited.sum() > 50
    assert (cells["frame"][visited] <= cells["step"][visited]).all()
    assert (cells["frame"][visited] <= tube.due[cells["place"][visited]] + LAG).all()
    assert len(tube.due) > search._task.guide.longest.max() / _BIN


def test_cells_that_are_behind_are_not_chosen():
    """Cells of a time when the solution was longer stay, and cost nothing."""
    search, _ = searched()
    tube = search._tube
    cells = tube.archive.cells[: tube.archive.search[0]["cells"]]
    late = cells["frame"] - tube.due[cells["place"]]
    assert (late > LAG).sum() > 50
    assert all(late[choose(tube)] <= LAG for _ in range(500))


def test_each_cell_holds_the_world_its_way_leads_to():
    search, _ = searched()
    archive = search._tube.archive
    for number in range(1, archive.search[0]["cells"], 50):
        codes, node = [], archive.cells[number]["node"]
        while node:
            codes.append(archive.nodes[node]["input"])
            node = archive.nodes[node]["parent"]
        session = Session(LEVEL)
        session.play(np.array(codes[::-1], np.uint8)[:, None])
        assert len(codes) == archive.cells[number]["frame"]
        assert hash_world(session.worlds, 0) == hash_world(archive.worlds, number)


def test_a_cleared_tube_is_laid_again():
    search, found = searched(frames=30_000)
    tube, state = search._tube, search._tube.archive.search[0]
    clear(tube)
    assert (state["cells"], state["nodes"]) == (1, 1)
    search.advance(60_000, lambda: False)
    assert tube.state[0]["laid"] == 1
    assert (tube.archive.cells["step"][: state["cells"]] >= 0).sum() > 50
    assert tube.state[0]["length"] <= len(found[-1] if found else KNOWN)
