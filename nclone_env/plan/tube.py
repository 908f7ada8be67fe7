"""Search in a tube around the best solution: an archive of its states and of those that are hardly later.

The tube is laid along a window of the solution, all of it if it is short: all its states are put in, one for each
frame. From then on a state is kept only if it is at most some frames behind: later than the last frame in which the
solution has as long a remaining path. So cells can be much smaller than those of a search of the whole level, and
inputs change in any frame. The last frame is taken, not the first: where the solution leads away from the exit before
it leads there, because of gravity or on a detour, nothing is behind.

A state that reaches a cell of the solution earlier than the solution does is continued with the inputs of the solution
from there. It wins earlier if it comes to a state of the solution, since the rest is known then, or to the exit. What
wins becomes the solution, and the tube is laid along it. After some frames without success another window is chosen.
"""

from __future__ import annotations

from nclone_env.actions import INPUT_OF_ACTION
from nclone_env.constants import CELEBRATING, DEAD
from nclone_env.jit import kernel
from nclone_env.plan.archive import drop_nodes, gold_price, key_of, last_frame
from nclone_env.plan.remaining import path_remaining
from nclone_env.plan.table import EMPTY, find_place
from nclone_env.plan.window import ALONE, BIN, FOREVER, NO_FRAME, PATIENCE, choose_window, take_joined, take_run
from nclone_env.sim.copy import copy_world
from nclone_env.sim.keys import hash_future
from nclone_env.sim.random_numbers import draw
from nclone_env.sim.tick import tick

_DRAWN = 16  # cells to choose from
_LAG_WEIGHT = 0.05
"""Visits that a frame behind the solution counts for."""
_SHORTEST_RUN, _RUNS = 16, 3
"""Held inputs of the shortest run, and the number of lengths, each twice the one before."""
_HOLDS = 4
"""Number of limits of how often an input is held: 2, 4, ..."""
_KEPT = 2  # one state in so many is kept
_SLACK, _CHECKED = 90.0, 8
"""Pixels by which the remaining path may exceed that of the solution behind the window, and frames between checks."""
_INPUTS = tuple(INPUT_OF_ACTION)


@kernel
def search_tube(levels, tube, guide, parts, rules, until):
    """Search until so many frames are simulated, or a better solution is found, which becomes that of the tube.

    All frames are simulated here, as each kernel that contains ``tick`` takes many seconds to compile.

    Args:
        levels: ``LevelArrays``.
        tube: ``Tube``.
        guide: ``Guide``.
        parts: ``KeyParts``.
        rules: ``Rules``; size and speed of the cells.
        until: number of frames, counted from the beginning of the search.

    Returns:
        Whether a better solution was found.
    """
    search, state = tube.archive.search[0], tube.state[0]
    worlds, scratch = tube.archive.worlds, tube.archive.cells.shape[0]
    while state["running"] or search["frames"] < until:
        if not state["running"] and not begin_run(tube, parts, rules):
            search["frames"] = until
            return False
        state["code"] = next_input(tube)
        played = 0
        while played < search["hold"] and worlds.ninjas[scratch]["state"] < DEAD:
            tick(levels, worlds, scratch, state["code"])
            played += 1
        search["frames"] += played
        state["frame"] += played
        if judge(levels, tube, guide, parts, rules):
            if state["ends"] != FOREVER:
                state["ends"] = search["frames"] + PATIENCE
            return True
    return False


@kernel
def begin_run(tube, parts, rules):
    """Begin a run: along the solution if the tube is not laid, from a chosen cell otherwise; return whether it fits."""
    archive, search, state = tube.archive, tube.archive.search[0], tube.state[0]
    scratch, nodes = archive.cells.shape[0], archive.nodes.shape[0]
    needed = (_SHORTEST_RUN << _RUNS) + tube.inputs.shape[0]
    if search["nodes"] + needed > nodes:
        drop_nodes(archive)
        if 4 * (search["nodes"] + needed) > 3 * nodes:
            state["ends"] = 0  # nodes would have to be dropped again and again
    if search["frames"] >= state["ends"]:
        choose_window(tube)
        number = scratch + 1  # where the search began
        state["frame"] = state["node"] = 0
    else:
        number = choose(tube) if state["laid"] else 0
        state["frame"], state["node"] = archive.cells[number]["frame"], archive.cells[number]["node"]
    copy_world(archive.worlds, number, archive.worlds, scratch)
    keep_first(tube, parts, rules)
    state["ahead"], state["left"] = ALONE if state["laid"] else 0, 0
    state["used"], state["steps"] = search["nodes"], _SHORTEST_RUN << draw(search, _RUNS)
    state["running"] = search["nodes"] + needed <= nodes
    return state["running"] != 0


@kernel
def choose(tube):
    """Return a cell: of some drawn at random the one with the fewest visits, counting frames behind as visits."""
    archive, search = tube.archive, tube.archive.search[0]
    best, least = 0, 1e30
    for _ in range(_DRAWN):
        number = draw(search, search["cells"])
        cell = archive.cells[number]
        score = cell["visits"] + _LAG_WEIGHT * max(cell["way"], 0.0)
        if score < least and cell["frame"] + search["hold"] < last_frame(search):
            best, least = number, score
    archive.cells[best]["visits"] += 1
    return best


@kernel
def judge(levels, tube, guide, parts, rules):
    """Keep the state of the run or end it; return whether it is a better solution, which becomes that of the tube."""
    search, state = tube.archive.search[0], tube.state[0]
    if state["laid"] == 0:
        lay(levels, tube, guide, parts, rules)
        return False
    if not goes_on(tube):
        return end_run(tube) and wins_earlier(levels, tube) and take_run(tube)
    add_node(tube)
    state["steps"] -= 1
    if state["ahead"] != ALONE and is_on_solution(levels, tube):
        return end_run(tube) and take_joined(tube)
    behind = False
    if state["ahead"] != ALONE and state["frame"] > state["last"]:
        behind = is_behind(tube, guide)
    elif state["steps"] % _KEPT == 0:
        lag = frames_behind(tube, guide)
        behind = lag > state["lag"]
        if not behind and keep(tube, parts, rules, lag):
            state["used"] = search["nodes"]
    if behind or (state["ahead"] == ALONE and state["steps"] <= 0):
        end_run(tube)
    return False


@kernel
def lay(levels, tube, guide, parts, rules):
    """Put the state of the solution into the archive if it is in the window, and mark it."""
    worlds, scratch, state = tube.archive.worlds, tube.archive.cells.shape[0], tube.state[0]
    lives = goes_on(tube)
    if lives and state["frame"] > state["first"]:
        add_node(tube)
        frame, way = state["frame"], path_remaining(guide, worlds, scratch)
        tube.places[frame], tube.ways[frame] = worlds.ninjas[scratch]["x"], way
        tube.hashes[frame] = hash_future(levels, worlds, scratch)
        if frame <= state["last"]:
            tube.due[min(int(way / BIN), tube.due.shape[0] - 1)] = frame
            if keep(tube, parts, rules, 0):
                state["used"] = tube.archive.search[0]["nodes"]
    keep_first(tube, parts, rules)
    if not lives or state["frame"] >= max(state["last"], state["known"]):
        for place in range(tube.due.shape[0] - 2, -1, -1):
            tube.due[place] = max(tube.due[place], tube.due[place + 1])
        state["laid"] = 1
        end_run(tube)


@kernel
def keep_first(tube, parts, rules):
    """Keep the state in which the window begins if the run has come to it."""
    if tube.archive.search[0]["cells"] == 0 and tube.state[0]["frame"] == tube.state[0]["first"]:
        keep(tube, parts, rules, 0)


@kernel
def goes_on(tube):
    """Return whether the run has not ended: by death, at the exit, or because it is too late."""
    search, state, scratch = tube.archive.search[0], tube.state[0], tube.archive.cells.shape[0]
    return tube.archive.worlds.ninjas[scratch]["state"] < DEAD and state["frame"] + 1 < last_frame(search)


@kernel
def add_node(tube):
    """Add a node for the input that the run has held."""
    search, state, nodes = tube.archive.search[0], tube.state[0], tube.archive.nodes
    number = search["nodes"]
    nodes[number]["parent"], nodes[number]["input"] = state["node"], state["code"]
    state["node"] = number
    search["nodes"] += 1


@kernel
def end_run(tube):
    """End the run, and give back the nodes after the last state that was kept; return True."""
    tube.archive.search[0]["nodes"], tube.state[0]["running"] = tube.state[0]["used"], 0
    return True


@kernel
def next_input(tube):
    """Return the next input of the run: that of the solution if the run has joined it, or a random one."""
    search, state = tube.archive.search[0], tube.state[0]
    if state["ahead"] != ALONE:
        return tube.inputs[min(state["frame"] + state["ahead"], state["length"] - 1)]
    if state["left"] == 0:
        state["code"] = _INPUTS[draw(search, len(_INPUTS))]
        state["left"] = 1 + draw(search, 2 << draw(search, _HOLDS))
    state["left"] -= 1
    return state["code"]


@kernel
def is_on_solution(levels, tube):
    """Return whether the run is in the state that the solution is in when it has played the same inputs.

    Never if gold counts, of which states with the same future may have collected different pieces.
    """
    search, state, scratch = tube.archive.search[0], tube.state[0], tube.archive.cells.shape[0]
    worlds, there = tube.archive.worlds, state["frame"] + state["ahead"]
    if search["price"] > 0 or there >= state["length"] - 1 or worlds.ninjas[scratch]["x"] != tube.places[there]:
        return False
    return hash_future(levels, worlds, scratch) == tube.hashes[there]


@kernel
def is_behind(tube, guide):
    """Return whether a run that plays the inputs of the solution behind the window has lost its way."""
    state, scratch = tube.state[0], tube.archive.cells.shape[0]
    if state["frame"] % _CHECKED != 0:
        return False
    there = min(state["frame"] + state["ahead"], state["length"] - 1)
    return path_remaining(guide, tube.archive.worlds, scratch) > tube.ways[there] + _SLACK


@kernel
def frames_behind(tube, guide):
    """Return the frames by which the run is behind the solution."""
    way = path_remaining(guide, tube.archive.worlds, tube.archive.cells.shape[0])
    return tube.state[0]["frame"] - tube.due[min(int(way / BIN), tube.due.shape[0] - 1)]


@kernel
def wins_earlier(levels, tube):
    """Return whether the run has won and costs less than the limit, which becomes its cost."""
    search, worlds, scratch = tube.archive.search[0], tube.archive.worlds, tube.archive.cells.shape[0]
    frame = tube.state[0]["frame"]
    cost = frame + gold_price(levels, worlds, scratch, search["price"])
    won = worlds.ninjas[scratch]["state"] == CELEBRATING
    if won and frame < last_frame(search) and cost < search["limit"]:
        search["limit"] = cost
        return True
    return False


@kernel
def keep(tube, parts, rules, lag):
    """Keep the state of the run if its cell is new or was reached later before; return whether it was kept.

    If the solution is in the cell later, the run goes on with its inputs; if the run lays the tube, the cell is noted.
    """
    archive, search, state = tube.archive, tube.archive.search[0], tube.state[0]
    worlds, scratch, frame = archive.worlds, archive.cells.shape[0], state["frame"]
    key = key_of(search, worlds, scratch, parts, rules, frame)
    place = find_place(archive.table, key)
    number = archive.table.numbers[place]
    if number == EMPTY:
        number = search["cells"]
        if number >= archive.cells.shape[0]:
            return False
        search["cells"] += 1
        archive.table.keys[place], archive.table.numbers[place] = key, number
        archive.cells[number]["key"], archive.cells[number]["step"] = key, NO_FRAME
        archive.cells[number]["frame"] = frame + 1
    cell = archive.cells[number]
    if state["laid"] == 0 and cell["step"] == NO_FRAME:
        cell["step"] = frame
    if cell["frame"] <= frame:
        return False
    copy_world(worlds, scratch, worlds, number)
    cell["frame"], cell["node"], cell["visits"], cell["way"] = frame, state["node"], 0, lag
    if state["ahead"] == ALONE and cell["step"] > frame:
        state["ahead"] = cell["step"] - frame
    return True
