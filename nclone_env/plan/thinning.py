"""Room in a full archive: of each place only some cells are kept, and places are then chosen evenly.

An archive fills with cells of the places where much can differ: doors, entities that the ninja can move, velocities.
The way on often begins in places of which there are few cells. So when all cells are taken, some of each place stay,
and the others make room; fewest stay of places before the newest landmark. A place is a square of positions and the
number of landmarks taken; places are named by hashes, and two that share one count as one.
"""

import numpy as np

from nclone_env.jit import kernel
from nclone_env.plan.kernels import EMPTY, find_place
from nclone_env.sim import copy_world, draw, mix, square

PLACES = 1 << 14
"""Places that are told apart."""
_SQUARE = 24.0
_SHARE = 4  # one in so many cells stays
_STRIDE = 1_000_003  # a prime above the number of cells
_MOST_BEHIND = 3


@kernel
def place_of(worlds, index, step):
    """Return the number of the place of a world in which so many landmarks are taken, 0 .. PLACES - 1."""
    ninja = worlds.ninjas[index]
    position = square(ninja["x"], _SQUARE) << 16 | square(ninja["y"], _SQUARE)
    return np.int64(mix(np.uint64(step), np.uint64(position))) & (PLACES - 1)


@kernel
def thin(archive):
    """Drop cells of a full archive, at least three in four; begin to count the visits of places afresh.

    Nodes stay, and are dropped when all of them are taken.
    """
    ranks, most = archive.renumbered, max(archive.cells.shape[0] // _SHARE, 1)
    rank_cells(archive, ranks)
    keep_cells(archive, ranks, largest_rank(ranks, archive.search[0]["cells"], most), most)
    fill_table(archive)
    archive.visits[:] = 0
    archive.search[0]["thinned"] += 1


@kernel
def rank_cells(archive, ranks):
    """Write for each cell how many of its place come before it, in an order drawn at random; more if it is behind."""
    search, cells, crowd = archive.search[0], archive.cells, archive.crowd
    count, newest = search["cells"], 0
    for number in range(count):
        newest = max(newest, cells[number]["step"])
    crowd[:] = 0
    first = draw(search, count)
    for turn in range(count):
        number = (first + turn * _STRIDE) % count
        place = cells[number]["place"]
        crowd[place] += 1
        ranks[number] = crowd[place] << min(newest - cells[number]["step"], _MOST_BEHIND)
    ranks[0] = 0  # where the search began


@kernel
def largest_rank(ranks, count, most):
    """Return the largest rank such that at most so many cells have this one or a lower one, at least 1."""
    low, high = 1, 1 + count << _MOST_BEHIND
    while high - low > 1:
        middle = (low + high) // 2
        kept = 0
        for number in range(count):
            kept += ranks[number] <= middle
        if kept <= most:
            low = middle
        else:
            high = middle
    return low


@kernel
def keep_cells(archive, ranks, largest, most):
    """Keep at most so many cells, those up to the largest rank, in their order."""
    search, kept = archive.search[0], 0
    for number in range(search["cells"]):
        if ranks[number] <= largest and kept < most:
            if number > kept:
                copy_world(archive.worlds, number, archive.worlds, kept)
                archive.cells[kept] = archive.cells[number]
            kept += 1
    search["cells"] = kept


@kernel
def fill_table(archive):
    """Write the keys of all cells into the emptied table."""
    table = archive.table
    table.numbers[:] = EMPTY
    for number in range(archive.search[0]["cells"]):
        place = find_place(table, archive.cells[number]["key"])
        table.keys[place], table.numbers[place] = archive.cells[number]["key"], number
