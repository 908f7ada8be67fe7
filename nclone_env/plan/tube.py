"""Search in a tube around the best solution: an archive of its states and of those that are hardly later.

The archive is laid along the solution: all its states are put in, one for each frame. From then on a state is kept only
if it is at most some frames behind: later than the last frame in which the solution has as long a remaining path. So
cells can be much smaller than those of a search of the whole level, and inputs change in any frame. The last frame is
taken, not the first: where the solution leads away from the exit before it leads there, because of gravity or on a
detour, nothing is behind. Half of the held inputs are those of the solution: random ones alone seldom pass what is
difficult. A state that reaches a cell of the solution earlier than the solution does is continued with the inputs of
the solution from there; what wins earlier becomes the solution, and the tube is laid along it.
"""

from typing import NamedTuple

import numpy as np

from nclone_env.jit import kernel
from nclone_env.plan.archive import Archive, add_node, cell_number, drop_nodes, is_better, key_of, last_frame
from nclone_env.plan.kernels import EMPTY, INPUTS, find_place, is_over, path_remaining, play
from nclone_env.sim import copy_world, draw

_BIN = 4.0
"""Pixels of the remaining path that are not told apart."""
_DRAWN = 16  # cells to choose from
_LAG_WEIGHT = 0.05
"""Visits that a frame behind the solution counts for."""
_SHORTEST_RUN, _RUNS = 16, 3
"""Held inputs of the shortest run, and the number of lengths, each twice the one before."""
_HOLDS = 4
"""Number of limits of how often an input is held: 2, 4, ..."""
_KEPT = 2  # one state in so many is kept
_COPIED = -1  # in place of an input: those of the solution
_NO_FRAME = -1
_TO_THE_END = 1 << 30

TUBE = np.dtype([(name, "i4") for name in ("length", "laid", "lag", "joined", "ahead", "code", "left")], align=True)
"""State of a tube: frames of the solution, whether the tube is laid along it, frames that a state may be behind it; of
the run that is played whether it follows the solution to its end, the frames that it is ahead of the solution, the
input that is held, and how often it is held still."""


class Tube(NamedTuple):
    """The memory of a search around a solution of at most T frames.

    Attributes:
        archive: ``Archive``; ``place`` of a cell is that of its remaining path in ``due``, ``step`` the first frame in
            which the solution is in it, -1 if it is not.
        due: (B,) int32; for each length of the remaining path the last frame of the solution in which it is as long.
        inputs: (T,) uint8; the solution.
        state: (1,) ``TUBE``.
    """

    archive: Archive
    due: np.ndarray
    inputs: np.ndarray
    state: np.ndarray


def make_tube(archive: Archive, longest: int, way: float, lag: int) -> Tube:
    """Return a tube in an archive that has begun.

    ``longest`` is in frames of a solution, ``way`` in pixels of the remaining path, ``lag`` in frames behind the
    solution.
    """
    state = np.zeros(1, TUBE)
    state["lag"] = lag
    return Tube(archive, np.zeros(int(way / _BIN) + 2, np.int32), np.zeros(longest, np.uint8), state)


@kernel
def lay(tube):
    """Prepare a tube for the solution in its inputs and its length."""
    tube.due[:] = 0
    for number in range(tube.archive.search[0]["cells"]):
        tube.archive.cells[number]["step"] = _NO_FRAME
    tube.archive.cells[0]["place"] = tube.due.shape[0] - 1  # where the search began
    tube.state[0]["laid"] = 0


@kernel
def clear(tube):
    """Drop all cells but that in which the search began, and prepare the tube for its solution."""
    archive, search = tube.archive, tube.archive.search[0]
    archive.table.numbers[:] = EMPTY
    place = find_place(archive.table, archive.cells[0]["key"])
    archive.table.keys[place], archive.table.numbers[place] = archive.cells[0]["key"], 0
    search["cells"], search["nodes"] = 1, 1
    lay(tube)


@kernel
def search_tube(levels, tube, guide, parts, rules, until):
    """Search until so many frames are simulated, or a better solution is found, which becomes that of the tube.

    Frames count from the beginning of the search. Return whether a better solution was found.
    """
    search, nodes = tube.archive.search[0], tube.archive.nodes.shape[0]
    while search["frames"] < until:
        steps = _SHORTEST_RUN << draw(search, _RUNS)
        needed = steps + tube.inputs.shape[0]
        if search["nodes"] + needed > nodes:
            drop_nodes(tube.archive)
            if 4 * (search["nodes"] + needed) > 3 * nodes and search["cells"] > 1:
                clear(tube)  # nodes would have to be dropped again and again
            if search["nodes"] + needed > nodes:
                search["frames"] = until
                return False
        number = choose(tube) if tube.state[0]["laid"] else 0
        if play_run(levels, tube, guide, parts, rules, number, steps):
            return True
    return False


@kernel
def choose(tube):
    """Return a cell: of some drawn at random the one with the fewest visits, counting frames behind as visits."""
    archive, search = tube.archive, tube.archive.search[0]
    best, least = 0, 1e30
    for _ in range(_DRAWN):
        number = draw(search, search["cells"])
        cell = archive.cells[number]
        late = cell["frame"] - tube.due[cell["place"]]
        score = cell["visits"] + _LAG_WEIGHT * max(late, 0)
        if score < least and late <= tube.state[0]["lag"] and cell["frame"] + search["hold"] < last_frame(search):
            best, least = number, score
    archive.cells[best]["visits"] += 1
    return best


@kernel
def play_run(levels, tube, guide, parts, rules, number, steps):
    """Play held inputs from a cell and keep the states on the way; return whether a solution was found.

    Inputs are random, or those of the solution from where its remaining path is as short as that of the cell. A state
    that is earlier than the solution in one of its cells goes on with the inputs of the solution. If the tube is not
    laid yet, the run follows the solution from its beginning.
    """
    archive, search, state = tube.archive, tube.archive.search[0], tube.state[0]
    worlds, scratch, laying = archive.worlds, archive.cells.shape[0], state["laid"] == 0
    node, frame, used = archive.cells[number]["node"], archive.cells[number]["frame"], search["nodes"]
    copy_world(worlds, scratch + 1 if laying else number, worlds, scratch)
    state["joined"], state["left"] = 0, 0
    state["ahead"] = min(tube.due[archive.cells[number]["place"]] - frame, 0)
    if laying:
        join(state, 0)
    step = 0
    while state["joined"] or step < steps:
        step += 1
        code = next_input(tube, frame)
        played = play(levels, worlds, scratch, code, search["hold"])
        search["frames"] += played
        frame += played
        if is_over(worlds, scratch) or frame + 1 >= last_frame(search):
            break
        node = add_node(archive, node, code)
        if laying or step % _KEPT == 0:
            place = due_place(tube, guide, frame, laying)
            if frame - tube.due[place] > state["lag"]:
                break
            if keep(tube, parts, rules, node, frame, place, laying):
                used = search["nodes"]
    search["nodes"] = used
    if laying:
        lengthen_due(tube)
    return is_better(levels, archive, frame) and take_run(tube, node, frame, code)


@kernel
def join(state, ahead):
    """Let the run follow the solution, so many frames ahead of it, to its end."""
    state["joined"], state["ahead"], state["code"], state["left"] = 1, ahead, _COPIED, _TO_THE_END


@kernel
def next_input(tube, frame):
    """Return the input for a frame."""
    search, state = tube.archive.search[0], tube.state[0]
    if state["left"] == 0:
        drawn = draw(search, 2 * len(INPUTS))
        state["code"] = INPUTS[drawn] if drawn < len(INPUTS) else _COPIED
        state["left"] = 1 + draw(search, 2 << draw(search, _HOLDS))
    state["left"] -= 1
    if state["code"] == _COPIED:
        return tube.inputs[min(max(frame + state["ahead"], 0), state["length"] - 1)]
    return state["code"]


@kernel
def take_run(tube, node, frame, code):
    """Make the run that wins in a frame, with an input held after a node, the solution of the tube; return True."""
    hold = tube.archive.search[0]["hold"]
    last = (frame - 1) // hold * hold
    for place in range(last, frame):
        tube.inputs[place] = code
    while last > 0:
        last -= hold
        for place in range(last, last + hold):
            tube.inputs[place] = tube.archive.nodes[node]["input"]
        node = tube.archive.nodes[node]["parent"]
    tube.state[0]["length"] = frame
    lay(tube)
    return True


@kernel
def due_place(tube, guide, frame, laying):
    """Return the place of the remaining path of the world just played in ``due``."""
    way = path_remaining(guide, tube.archive.worlds, tube.archive.cells.shape[0])
    place = min(int(way / _BIN), tube.due.shape[0] - 1)
    if laying:
        tube.due[place] = frame
    return place


@kernel
def lengthen_due(tube):
    """Let a length of the remaining path be due when the longer ones are; the tube is laid."""
    for place in range(tube.due.shape[0] - 2, -1, -1):
        tube.due[place] = max(tube.due[place], tube.due[place + 1])
    tube.state[0]["laid"] = 1


@kernel
def keep(tube, parts, rules, node, frame, due, laying):
    """Keep the world just played if its cell is new or was reached later before; return whether it was kept.

    If the solution is in the cell later, the run goes on with its inputs.
    """
    archive, search, state = tube.archive, tube.archive.search[0], tube.state[0]
    worlds, scratch = archive.worlds, archive.cells.shape[0]
    key = key_of(search, worlds, scratch, parts, rules, frame)
    number = cell_number(archive, key, frame)
    if number < 0:
        return False
    cell = archive.cells[number]
    if laying and cell["step"] == _NO_FRAME:
        cell["step"] = frame
    if cell["frame"] <= frame:
        return False
    copy_world(worlds, scratch, worlds, number)
    cell["frame"], cell["node"], cell["visits"], cell["place"] = frame, node, 0, due
    if not state["joined"] and cell["step"] > frame:
        join(state, cell["step"] - frame)
    return True
