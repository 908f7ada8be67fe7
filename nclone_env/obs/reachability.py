"""The writer of ``reachability``; the meaning of each element stands in ``obs.spec.REACHABILITY``.

In two parts, because the fields it reads may have to be computed first, which no kernel of a step can do: a *query*
keeps all that the answer depends on, and the answer is written when the field for it is there. The *key* of a field is
its level, one bit a locked or trap door, set if it is shut, and one bit an exit, set if it is open; where all exits are
open none is set, because both ways count again. So a level without such doors and with one exit has one key.
"""

from __future__ import annotations

import math

import numpy as np

from nclone_env.constants import REGULAR_DOOR
from nclone_env.jit import kernel
from nclone_env.level.level_set import LevelSet
from nclone_env.level.routes.distance import SPACING, direction_by
from nclone_env.level.routes.doors import AREA, PLANES, TO_EXIT, TO_SWITCH, crosses
from nclone_env.obs.entity_facts import is_shut
from nclone_env.obs.objective import open_exit_count

PENDING, _X, _Y, _SWITCH_LEFT, _EXIT_OPEN, KEY = range(6)
"""Columns of a query, float64: 1 until it is answered, the ninja's place, two flags, and the first of the key."""
BITS = 32
"""Bits in each element of a key behind the first; float64 is exact for them."""
NO_QUERIES = np.zeros((0, KEY + 1))

_HALFWAY = 528.0  # pixels, the distance that is written as a half
_HOPS = 3  # of the lattice, 36 pixels
_NEAR = 64.0  # pixels; doors farther away are not between the ninja and the nodes around it


def key_width(levels: LevelSet) -> int:
    """Return the number of elements of a key."""
    header = levels.arrays.header
    before = np.append(0, np.cumsum(levels.arrays.doors["type"] != REGULAR_DOOR))
    switched = before[header["first_door"] + header["door_count"]] - before[header["first_door"]]
    exits = header["exit_count"]
    most = int((switched + np.where(exits > 1, exits, 0)).max())
    return 1 + -(-most // BITS)


def make_queries(count: int, levels: LevelSet) -> np.ndarray:
    """Return queries for a number of worlds, (count, 5 + key) float64, none of them pending."""
    return np.zeros((count, KEY + key_width(levels)))


@kernel
def note_query(levels, worlds, index, queries):
    """Write the query about a world into the row of the same index."""
    ninja = worlds.ninjas[index]
    header = levels.header[ninja["level"]]
    for column in range(KEY, queries.shape[1]):
        queries[index, column] = 0.0
    queries[index, PENDING], queries[index, _X], queries[index, _Y] = 1.0, ninja["x"], ninja["y"]
    queries[index, KEY] = ninja["level"]
    bit = 0
    for number in range(header["first_door"], header["first_door"] + header["door_count"]):
        door = levels.doors[number]
        if door["type"] != REGULAR_DOOR:
            if is_shut(door["type"], worlds.entity_states[index, door["owner"]]):
                set_bit(queries, index, bit)
            bit += 1
    exits_open, exits = open_exit_count(levels, worlds, index), header["exit_count"]
    queries[index, _SWITCH_LEFT] = 1.0 if exits_open < exits else 0.0
    queries[index, _EXIT_OPEN] = 1.0 if exits_open > 0 else 0.0
    if 0 < exits_open < exits:
        for number in range(exits):
            if worlds.entity_states[index, header["first_exit"] + 2 * number] != 0:
                set_bit(queries, index, bit + number)


@kernel
def set_bit(queries, index, bit):
    """Set a bit of a key that is not set."""
    queries[index, KEY + 1 + bit // BITS] += float(1 << (bit % BITS))


@kernel
def has_bit(queries, index, bit):
    """Return whether a bit of a key is set."""
    return (int(queries[index, KEY + 1 + bit // BITS]) >> (bit % BITS)) & 1 != 0


@kernel
def find_slot(keys, queries, index, hint):
    """Return the row of ``keys``, (S, key) float64, that is the key of a query, the first one to try given; else -1."""
    if same_key(keys, hint, queries, index):
        return hint
    for slot in range(keys.shape[0]):
        if same_key(keys, slot, queries, index):
            return slot
    return -1


@kernel
def same_key(keys, slot, queries, index):
    """Return whether a slot has the key of a query."""
    for column in range(keys.shape[1]):  # noqa: SIM110 - a kernel has no generators
        if keys[slot, column] != queries[index, KEY + column]:
            return False
    return True


@kernel
def write_reachability(levels, fields, slot, queries, index, row, out):
    """Answer a query.

    Args:
        levels: ``LevelArrays``.
        fields: (3 S, 51, 89) float32, see ``level.reach.write_reach_fields``.
        slot: whose three fields belong to the query's key.
        queries: (N, Q) float64.
        index: query.
        row: row of ``out`` to write.
        out: (n, 11) float32.
    """
    doors_near = has_door_near(levels, queries, index)
    out[row, 0], out[row, 5] = queries[index, _SWITCH_LEFT], queries[index, _EXIT_OPEN]
    write_path(levels, fields, PLANES * slot + TO_SWITCH, queries, index, doors_near, row, 1, out)
    write_path(levels, fields, PLANES * slot + TO_EXIT, queries, index, doors_near, row, 6, out)
    if queries[index, _SWITCH_LEFT] == 0.0:
        out[row, 1], out[row, 2], out[row, 3], out[row, 4] = 0.0, 1.0, 0.0, 0.0
    plane = PLANES * slot + AREA
    distance, j, i = seen_node(levels, fields, plane, queries, index, doors_near, 0.0)
    out[row, 10] = fields[plane, j, i] if distance < math.inf else 0.0


@kernel
def write_path(levels, fields, plane, queries, index, doors_near, row, column, out):
    """Write whether there is a way by a field, its length and its direction, from a column on."""
    x, y = queries[index, _X], queries[index, _Y]
    length, j, i = seen_node(levels, fields, plane, queries, index, doors_near, 1.0)
    if length == math.inf:
        out[row, column], out[row, column + 1], out[row, column + 2], out[row, column + 3] = 0.0, 1.0, 0.0, 0.0
    else:
        out[row, column], out[row, column + 1] = 1.0, length / (length + _HALFWAY)
        out[row, column + 2], out[row, column + 3] = direction_by(fields, plane, j, i, x, y, _HOPS)


@kernel
def has_door_near(levels, queries, index):
    """Return whether a shut door is near the ninja."""
    header = levels.header[int(queries[index, KEY])]
    bit = 0
    for number in range(header["first_door"], header["first_door"] + header["door_count"]):
        door = levels.doors[number]
        if door["type"] != REGULAR_DOOR:
            dx, dy = door["x"] - queries[index, _X], door["y"] - queries[index, _Y]
            if abs(dx) < _NEAR and abs(dy) < _NEAR and has_bit(queries, index, bit):
                return True
            bit += 1
    return False


@kernel
def seen_node(levels, fields, plane, queries, index, doors_near, weight):
    """Return (distance, row, column) of the best of the 16 nodes around the ninja that no shut door hides.

    The distance is that to the node plus the field there times ``weight``; it is infinite if there is no such node.
    """
    _, rows, columns = fields.shape
    x, y = queries[index, _X], queries[index, _Y]
    i0, j0 = int(math.floor(x / SPACING)), int(math.floor(y / SPACING))
    best, best_row, best_column = math.inf, 0, 0
    for j in range(max(j0 - 1, 0), min(j0 + 2, rows - 1) + 1):
        for i in range(max(i0 - 1, 0), min(i0 + 2, columns - 1) + 1):
            if fields[plane, j, i] < math.inf:
                dx, dy = SPACING * i - x, SPACING * j - y
                length = weight * fields[plane, j, i] + math.sqrt(dx * dx + dy * dy)
                if length < best and not (doors_near and is_hidden(levels, queries, index, SPACING * i, SPACING * j)):
                    best, best_row, best_column = length, j, i
    return best, best_row, best_column


@kernel
def is_hidden(levels, queries, index, node_x, node_y):
    """Return whether a shut door lies between the ninja and a node."""
    header = levels.header[int(queries[index, KEY])]
    bit = 0
    for number in range(header["first_door"], header["first_door"] + header["door_count"]):
        door = levels.doors[number]
        if door["type"] != REGULAR_DOOR:
            if has_bit(queries, index, bit) and crosses(door, queries[index, _X], queries[index, _Y], node_x, node_y):
                return True
            bit += 1
    return False
