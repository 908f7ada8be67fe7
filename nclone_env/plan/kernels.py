"""Kernels that searches consist of: a table of what they have seen, path lengths, successors, room in an archive.

The table, of 64-bit keys with open addressing, has a fixed size. Path lengths are by the landmarks and the gold that
are left.

An archive fills with cells of the places where much can differ: doors, entities that the ninja can move, velocities.
The way on often begins in places of which there are few cells. So when all cells are taken, some of each place stay,
and the others make room; fewest stay of places before the newest landmark. A place is a square of positions and the
number of landmarks taken; places are named by hashes, and two that share one count as one.
"""

from typing import NamedTuple

import numpy as np

from nclone_env.errors import check_integer, checked
from nclone_env.game import CELEBRATING, DEAD, EXIT_SWITCH, INPUT_OF_ACTION
from nclone_env.jit import kernel
from nclone_env.level import FAR, NO_FALL, length_at, rise_of
from nclone_env.sim import copy_world, draw, mix, square, state_of, tick

INPUTS = INPUT_OF_ACTION
"""Input bytes that searches choose from."""
EMPTY = -1
_MOST_KEYS = 1 << 31  # numbers are int32
_LOAD = 0.75
"""Largest share of the places that is used; chains of collisions stay short."""
PLACE_BYTES = 12
DIED, WON, SWITCH, DOOR, GOLD = 1, 2, 4, 8, 16
"""Bits of what happened while an input was held: the ninja died or won, took an exit switch, changed a locked or trap
door, collected gold."""

PLACES = 1 << 14
"""Places that are told apart."""
_SQUARE = 24.0
_SHARE = 4  # one in so many cells stays
_STRIDE = 1_000_003  # a prime above the number of cells
_MOST_BEHIND = 3


class KeyTable(NamedTuple):
    """Keys with a number each; the number of places is a power of 2.

    Attributes:
        keys: (P,) uint64.
        numbers: (P,) int32; not negative, ``EMPTY`` where there is no key.
    """

    keys: np.ndarray
    numbers: np.ndarray


def places_for(count: int) -> int:
    """Return the places of a table for so many keys."""
    places = 8
    while places * _LOAD < count:
        places *= 2
    return places


@checked()
def make_table(count: int) -> KeyTable:
    """Return an empty table for at most so many keys."""
    check_integer("count", count, low=0, high=_MOST_KEYS)
    places = places_for(count)
    return KeyTable(np.zeros(places, dtype=np.uint64), np.full(places, EMPTY, dtype=np.int32))


@kernel
def find_place(table, key):
    """Return the place of a key: where it is, or the empty place where it can be inserted.

    Args:
        table: ``KeyTable`` with an empty place.
        key: uint64 with well-mixed low bits.
    """
    last = table.keys.shape[0] - 1
    place = np.int64(key) & last
    while table.numbers[place] != EMPTY and table.keys[place] != key:
        place = (place + 1) & last
    return place


@kernel
def steps_taken(guide, worlds, index):
    """Return the number of the first landmark that is not taken."""
    step = 0
    while step < guide.landmarks.shape[0] and state_of(worlds, index, guide.landmarks[step]) != 0:
        step += 1
    return step


@kernel
def path_to_exit(guide, worlds, index, step):
    """Return the length of the path by the landmarks from number ``step`` on to the exit, pixels."""
    ninja, know_gravity = worlds.ninjas[index], guide.falls.shape[0] > 0
    if know_gravity:
        fall = length_at(guide.falls[step], rise_of(ninja), ninja["x"], ninja["y"])
        if fall < FAR:
            return fall
    length = length_at(guide.fields, step, ninja["x"], ninja["y"])
    if length >= FAR:
        length = guide.longest[step]
    return length + NO_FALL if know_gravity else length


@kernel
def path_remaining(guide, worlds, index):
    """Return the length of the path by what is left of gold and landmarks to the exit, pixels.

    A world with gold left always has a longer path than one without.
    """
    step = steps_taken(guide, worlds, index)
    length = path_to_exit(guide, worlds, index, step)
    if guide.gold.slots.shape[0] > 0:
        nearest, shares = gold_left(guide.gold, worlds, index, step)
        if nearest < FAR:
            length = nearest + shares + guide.longest[step]
        else:
            length += shares
    return length


@kernel
def least_path(guide, worlds, index):
    """Return an estimate of the remaining path that leaves out gold which need not be collected, pixels."""
    step = steps_taken(guide, worlds, index)
    length = path_to_exit(guide, worlds, index, step)
    if guide.gold.each[0]:
        nearest, shares = gold_left(guide.gold, worlds, index, step)
        if nearest < FAR:
            length = max(length, nearest + shares)
    return length


@kernel
def gold_left(gold, worlds, index, step):
    """Return (path to the nearest piece that is left and can be reached, the shares of all that are left), pixels."""
    ninja = worlds.ninjas[index]
    nearest, shares = FAR, 0.0
    for place in range(gold.slots.shape[0]):
        if state_of(worlds, index, gold.slots[place]) == 0:
            shares += gold.shares[place]
            dx, dy = ninja["x"] - gold.points[place, 0], ninja["y"] - gold.points[place, 1]
            straight = abs(dx) + abs(dy)
            if gold.stages[place] <= step and 0.7 * straight < nearest:  # at most the true distance
                path = length_at(gold.fields, gold.groups[place], ninja["x"], ninja["y"])
                nearest = min(nearest, max(path, 0.7 * straight) if path < FAR else 2.0 * straight + 500.0)
    return nearest, shares


@kernel
def expand(levels, source, rows, count, parts, inputs, hold, target, origins, events, frames):
    """Hold each of A inputs in copies of worlds, until the ninja dies or wins; return how many go on.

    Candidate ``n * A + a`` is world ``rows[n]`` with input a. Those that go on are in the first rows of ``target``.

    Args:
        levels: ``LevelArrays``.
        source: ``WorldArrays``.
        rows: (n,) integers; worlds of ``source``.
        count: how many of the rows to expand, N.
        parts: ``KeyParts`` of the level.
        inputs: (A,) uint8 input bytes.
        hold: frames that an input is held.
        target: ``WorldArrays`` for at least N A worlds, overwritten; not ``source``.
        origins: (N A,) int32, overwritten; candidate in each row of ``target``.
        events: (N A,) uint8, overwritten; bits of what happened, by candidate.
        frames: (N A,) int32, overwritten; frames simulated, by candidate.
    """
    kept = 0
    for place in range(count):
        for number in range(inputs.shape[0]):
            candidate = place * inputs.shape[0] + number
            copy_world(source, rows[place], target, kept)
            frames[candidate] = play(levels, target, kept, inputs[number], hold)
            events[candidate] = events_since(levels, source, rows[place], target, kept, parts)
            if events[candidate] & (DIED | WON) == 0:
                origins[kept] = candidate
                kept += 1
    return kept


@kernel
def play(levels, worlds, index, code, hold):
    """Hold an input in one world for so many frames, or until the ninja dies or wins; return the frames played."""
    for frame in range(hold):
        tick(levels, worlds, index, code)
        if is_over(worlds, index):
            return frame + 1
    return hold


@kernel
def is_over(worlds, index):
    """Return whether the ninja is dead or has won."""
    return worlds.ninjas[index]["state"] >= DEAD


@kernel
def has_won(worlds, index):
    """Return whether the ninja has won."""
    return worlds.ninjas[index]["state"] == CELEBRATING


@kernel
def events_since(levels, old_worlds, old, new_worlds, new, parts):
    """Return the bits of what happened between two states of a world."""
    before, after = old_worlds.ninjas[old], new_worlds.ninjas[new]
    found = 0
    if is_over(new_worlds, new):
        found |= WON if has_won(new_worlds, new) else DIED
    if after["gold"] != before["gold"]:
        found |= GOLD
    first = levels.header[after["level"]]["first_entity"]
    for place in range(parts.switches.shape[0]):
        slot = parts.switches[place]
        if state_of(old_worlds, old, slot) != state_of(new_worlds, new, slot):
            found |= SWITCH if levels.entities[first + slot]["type"] == EXIT_SWITCH else DOOR
    return found


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
