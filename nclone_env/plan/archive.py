"""Archive search (Go-Explore; Ecoffet et al., 2021): one world for each cell of states, reached as early as known.

A round takes a cell that was seldom chosen, copies its world, plays random held inputs from there, and keeps every
state in a cell that is new, or that was reached later before. A cell holds its whole world, so that a search goes on
from it without replaying the way there; the way is a chain of nodes, one for each held input.

The memory is fixed when the archive is made. When all cells are taken, either only earlier visits are kept, or
some cells make room (``plan.kernels``). When all nodes are taken, the ones that lead to no cell are dropped.

In the kernels of all searches ``guide`` is a ``Guide``, ``parts`` are ``KeyParts`` and ``rules`` ``Rules``.
"""

from bisect import bisect_right
from typing import NamedTuple

import numpy as np

from nclone_env.jit import kernel
from nclone_env.level import LevelSet, is_trapped
from nclone_env.plan.kernels import (
    EMPTY,
    INPUTS,
    PLACE_BYTES,
    PLACES,
    KeyTable,
    find_place,
    has_won,
    is_over,
    least_path,
    make_table,
    path_remaining,
    place_of,
    places_for,
    play,
    steps_taken,
    thin,
)
from nclone_env.sim import WorldArrays, cell_key, copy_world, draw, make_worlds, mix

HOLD = 4
"""Frames that one random choice is held by default."""
_LONGEST = 8  # choices that an input is held at most
_DRAWN = 100  # cells to choose from
_GREEDS = (0.0, 0.02, 0.1)
"""Visits that a pixel of the remaining path counts for; drawn for each round. None is the best on all levels."""
_STEPS = (8, 16, 30)
"""Held inputs of a round; drawn for each round."""
_GOLD_BITS = 32  # of a key, below the part of the time
_NODES_PER_CELL = 16
_ROOT = 0

CELL = np.dtype(
    [("key", "u8"), ("frame", "i4"), ("node", "i4"), ("visits", "i4"), ("way", "f4"), ("place", "i4"), ("step", "i4")],
    align=True,
)
"""A cell: its key, frames to reach it, node of its way, times that it was chosen since it was reached so early, the
length of the remaining path, pixels, its place (``plan.kernels``), and the landmarks taken."""
NODE = np.dtype([("parent", "i4"), ("input", "u1")], align=True)
"""A held input: the node before it, and the input byte."""
SEARCH = np.dtype(
    [("random", "i8"), ("frames", "i8"), ("seed", "u8"), ("limit", "i8"), ("price", "i8"), ("slowness", "f8")]
    + [(name, "i4") for name in ("cells", "nodes", "best", "best_node", "best_hold", "best_input")]
    + [(name, "i4") for name in ("longest", "hold", "thinned")],
    align=True,
)
"""State of a search: random numbers drawn, frames simulated, seed; solutions must cost less than ``limit``; frames that
a piece of gold left behind costs; ``slowness`` of the rules, or 0; cells and nodes in use; frames of the best solution
(0: none), the node before its last held input, how long that is held, and its input; solutions have at most ``longest``
frames; frames that a choice is held; times that the archive was thinned."""
_NEVER = 1 << 30


class Rules(NamedTuple):
    """Settings of a search.

    Attributes:
        size: side of the squares of positions, pixels.
        speed: side of the squares of velocities, pixels per frame.
        period: frames after which a cell is another one.
        greed: factor of ``_GREEDS``.
        slowness: frames that a pixel of the remaining path takes at least; a state from which the limit cannot be kept
            is not stored.
        thins: whether a full archive is thinned.
    """

    size: float = 30.0
    speed: float = 5.0
    period: int = _NEVER
    greed: float = 1.0
    slowness: float = 0.0
    thins: bool = False


class Archive(NamedTuple):
    """The memory of a search for C cells and N nodes.

    Attributes:
        worlds: ``WorldArrays`` of C + 2 worlds; the last but one is played, the last one is where the search begins.
        table: ``KeyTable`` of the cells.
        cells: (C,) ``CELL``.
        nodes: (N,) ``NODE``; parents come before their children.
        renumbered: (N,) int32; scratch.
        visits: (PLACES,) int32; times that each place was chosen since the archive was thinned.
        crowd: (PLACES,) int32; scratch.
        search: (1,) ``SEARCH``.
    """

    worlds: WorldArrays
    table: KeyTable
    cells: np.ndarray
    nodes: np.ndarray
    renumbered: np.ndarray
    visits: np.ndarray
    crowd: np.ndarray
    search: np.ndarray


def make_archive(levels: LevelSet, cells: int, origin: WorldArrays) -> Archive:
    """Return an archive for a number of cells; searches begin in the only world of ``origin`` (``origin_of``)."""
    worlds = make_worlds(cells + 2, levels)
    copy_world(origin, 0, worlds, cells + 1)
    nodes = cells * _NODES_PER_CELL
    sizes = ((cells, CELL), (nodes, NODE), (nodes, "i4"), (PLACES, "i4"), (PLACES, "i4"), (1, SEARCH))
    return Archive(worlds, make_table(cells), *(np.zeros(count, dtype) for count, dtype in sizes))


def archive_bytes(levels: LevelSet, cells: int) -> int:
    """Return the bytes of an archive for a number of cells."""
    one, two = (sum(array.nbytes for array in make_worlds(count, levels)) for count in (1, 2))
    world, ways = two - one, _NODES_PER_CELL * (NODE.itemsize + 4)
    fixed = one + world + 2 * 4 * PLACES + SEARCH.itemsize
    return fixed + PLACE_BYTES * places_for(cells) + cells * (world + CELL.itemsize + ways)


def cells_that_fit(levels: LevelSet, memory: int) -> int:
    """Return the largest number of cells of which an archive fits in so many bytes, 0 if none fits."""
    return max(bisect_right(range(memory), memory, key=lambda cells: archive_bytes(levels, cells)) - 1, 0)


@kernel
def begin(levels, archive, guide, parts, rules, seed):
    """Empty an archive whose limit, longest solution, price and hold are set, and add the world to begin in."""
    for place in range(archive.table.numbers.shape[0]):
        archive.table.numbers[place] = EMPTY
    search = archive.search[0]
    search["random"], search["frames"], search["seed"] = 0, 0, np.uint64(seed)
    search["cells"], search["nodes"], search["best"] = 0, 1, 0
    search["slowness"], search["thinned"] = rules.slowness, 0
    archive.visits[:] = 0
    copy_world(archive.worlds, archive.cells.shape[0] + 1, archive.worlds, archive.cells.shape[0])
    if not in_time(search, guide, archive.worlds, archive.cells.shape[0], 0):
        search["slowness"] = 0.0  # the ninja is faster here, by pads for example, or the guide knows no way
    keep(archive, guide, parts, rules, _ROOT, 0)


@kernel
def explore(levels, archive, guide, parts, rules, until):
    """Search until so many frames are simulated, or a better solution is found, which becomes the limit for the next.

    Frames count from the beginning of the search. Return whether a better solution was found, which ``SEARCH``
    describes.
    """
    search = archive.search[0]
    while search["frames"] < until:
        greed, steps = _GREEDS[draw(search, len(_GREEDS))], _STEPS[draw(search, len(_STEPS))]
        if search["nodes"] + steps > archive.nodes.shape[0]:
            drop_nodes(archive)
            if search["nodes"] + steps > archive.nodes.shape[0]:
                search["frames"] = until
                return False
        if search["cells"] == archive.cells.shape[0] and rules.thins:
            thin(archive)
        number = choose(archive, greed * rules.greed)
        if play_round(levels, archive, guide, parts, rules, number, steps):
            return True
    return False


@kernel
def choose(archive, greed):
    """Return a cell: of some drawn at random the one with the fewest visits, counting the remaining path as visits.

    Once the archive was thinned, visits of its place count as well.
    """
    search = archive.search[0]
    best, least = 0, 1e30
    for _ in range(_DRAWN):
        number = draw(search, search["cells"])
        cell = archive.cells[number]
        score = cell["visits"] + greed * cell["way"]
        if search["thinned"] > 0:
            score += archive.visits[cell["place"]]
        if score < least and cell["frame"] + search["hold"] < last_frame(search):
            best, least = number, score
    archive.cells[best]["visits"] += 1
    archive.visits[archive.cells[best]["place"]] += 1
    return best


@kernel
def last_frame(search):
    """Return the frame that solutions must not reach."""
    return min(search["limit"], search["longest"] + 1)


@kernel
def gold_price(levels, worlds, index, price):
    """Return what the gold that is left costs."""
    ninja = worlds.ninjas[index]
    return price * (levels.header[ninja["level"]]["gold_count"] - ninja["gold"])


@kernel
def play_round(levels, archive, guide, parts, rules, number, steps):
    """Play random held inputs from a cell and keep the states on the way; return whether a solution was found.

    Nodes after the last state that was kept are given back.
    """
    search, worlds, scratch = archive.search[0], archive.worlds, archive.cells.shape[0]
    copy_world(worlds, number, worlds, scratch)
    node, frame = archive.cells[number]["node"], archive.cells[number]["frame"]
    used = search["nodes"]
    code, left = INPUTS[0], 0
    for _ in range(steps):
        if left == 0:
            drawn = draw(search, len(INPUTS) * _LONGEST)
            code, left = INPUTS[drawn % len(INPUTS)], 1 + drawn // len(INPUTS)
        left -= 1
        played = play(levels, worlds, scratch, code, search["hold"])
        search["frames"] += played
        frame += played
        if is_over(worlds, scratch) or frame + 1 >= last_frame(search):
            search["nodes"] = used
            if is_better(levels, archive, frame):
                search["best"], search["best_node"] = frame, node
                search["best_hold"], search["best_input"] = played, code
                search["nodes"] = max(used, node + 1)
                return True
            return False
        node = add_node(archive, node, code)
        if keep(archive, guide, parts, rules, node, frame):
            used = search["nodes"]
    search["nodes"] = used
    return False


@kernel
def is_better(levels, archive, frame):
    """Return whether the world just played has won and costs less than the limit, which becomes its cost."""
    search, worlds, scratch = archive.search[0], archive.worlds, archive.cells.shape[0]
    cost = frame + gold_price(levels, worlds, scratch, search["price"])
    if has_won(worlds, scratch) and frame < last_frame(search) and cost < search["limit"]:
        search["limit"] = cost
        return True
    return False


@kernel
def add_node(archive, parent, code):
    """Add an input held after a node; return its node."""
    node = archive.search[0]["nodes"]
    archive.nodes[node]["parent"], archive.nodes[node]["input"] = parent, code
    archive.search[0]["nodes"] += 1
    return node


@kernel
def cell_number(archive, key, frame):
    """Return the cell of a key; if there is none a new one, reached after ``frame``, or -1 if the archive is full."""
    search = archive.search[0]
    place = find_place(archive.table, key)
    number = archive.table.numbers[place]
    if number == EMPTY:
        number = search["cells"]
        if number >= archive.cells.shape[0]:
            return -1
        search["cells"] += 1
        archive.table.keys[place], archive.table.numbers[place] = key, number
        archive.cells[number]["key"], archive.cells[number]["frame"], archive.cells[number]["step"] = key, frame + 1, -1
    return number


@kernel
def keep(archive, guide, parts, rules, node, frame):
    """Keep the world just played if its cell is new or was reached later before; return whether it was kept."""
    search, worlds, scratch = archive.search[0], archive.worlds, archive.cells.shape[0]
    if not in_time(search, guide, worlds, scratch, frame):
        return False
    if guide.traps.slots.shape[0] > 0 and is_trapped(guide.traps, worlds, scratch, steps_taken(guide, worlds, scratch)):
        return False
    key = key_of(search, worlds, scratch, parts, rules, frame)
    number = cell_number(archive, key, frame)
    if number < 0 or archive.cells[number]["frame"] <= frame:
        return False
    cell = archive.cells[number]
    copy_world(worlds, scratch, worlds, number)
    cell["frame"], cell["node"], cell["visits"] = frame, node, 0
    rate_cell(cell, guide, worlds, scratch)
    return True


@kernel
def in_time(search, guide, worlds, index, frame):
    """Return whether the remaining path from a world does not take too long for the limit."""
    if search["slowness"] == 0.0:
        return frame < last_frame(search)
    return not frame + least_path(guide, worlds, index) * search["slowness"] >= last_frame(search)  # also if it is nan


@kernel
def key_of(search, worlds, index, parts, rules, frame):
    """Return the key of the cell of a world in a frame, which contains the pieces of gold if they count."""
    moment = frame // rules.period
    if search["price"] > 0:
        moment = moment << _GOLD_BITS | worlds.ninjas[index]["gold"]
    return cell_of(worlds, index, parts, rules, moment)


@kernel
def cell_of(worlds, index, parts, rules, moment):
    """Return the key of the cell of a world in a part of the time, 0 if cells do not change."""
    return mix(cell_key(worlds, index, parts, rules.size, rules.speed), np.uint64(moment))


@kernel
def rate_cells(archive, guide):
    """Rate all cells by another guide; those from which there is no way on are not chosen again."""
    for number in range(archive.search[0]["cells"]):
        cell = archive.cells[number]
        rate_cell(cell, guide, archive.worlds, number)
        if is_trapped(guide.traps, archive.worlds, number, cell["step"]):
            cell["visits"] = _NEVER


@kernel
def rate_cell(cell, guide, worlds, index):
    """Write the remaining path of a world, its place and the landmarks taken into its cell."""
    cell["way"], cell["step"] = path_remaining(guide, worlds, index), steps_taken(guide, worlds, index)
    cell["place"] = place_of(worlds, index, cell["step"])


@kernel
def drop_nodes(archive):
    """Drop the nodes that lead neither to a cell nor to the best solution, and number the others afresh, in order."""
    search, nodes, renumbered = archive.search[0], archive.nodes, archive.renumbered
    for node in range(search["nodes"]):
        renumbered[node] = _ROOT
    if search["best"] > 0:
        mark_way(nodes, renumbered, search["best_node"])
    for number in range(search["cells"]):
        mark_way(nodes, renumbered, archive.cells[number]["node"])
    count = 1
    for node in range(1, search["nodes"]):
        if renumbered[node] != _ROOT:
            nodes[count]["parent"] = renumbered[nodes[node]["parent"]]
            nodes[count]["input"] = nodes[node]["input"]
            renumbered[node] = count
            count += 1
    search["nodes"] = count
    if search["best"] > 0:
        search["best_node"] = renumbered[search["best_node"]]
    for number in range(search["cells"]):
        archive.cells[number]["node"] = renumbered[archive.cells[number]["node"]]


@kernel
def mark_way(nodes, marked, node):
    """Mark a node and those before it with 1; the first is the root of all."""
    while node != _ROOT and marked[node] == _ROOT:
        marked[node] = 1
        node = nodes[node]["parent"]


def best_inputs(archive: Archive) -> np.ndarray:
    """Return (T,) uint8: the inputs of the best solution of a search that has one, one byte a frame."""
    search = archive.search[0]
    held, node = [], int(search["best_node"])
    while node != _ROOT:
        held.append(int(archive.nodes[node]["input"]))
        node = int(archive.nodes[node]["parent"])
    inputs = np.repeat(np.array(held[::-1], dtype=np.uint8), search["hold"])
    return np.append(inputs, np.full(search["best_hold"], search["best_input"], dtype=np.uint8))
