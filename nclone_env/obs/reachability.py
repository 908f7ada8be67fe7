"""The writer of ``reachability``; ``obs.spec.REACHABILITY`` defines its elements.

It works in two stages, because a field may have to be computed first, which no kernel of a step can do. The step writes
a *query*, a float64 row with everything that the answer depends on; the answer is written once the field for it is
cached. The *key* of a field identifies it:

==================== ==========================================================================================
columns              content of a query
==================== ==========================================================================================
``PENDING``          1 until it is answered, then 0
``X``, ``Y``         position of the ninja, pixels
``SWITCH_REMAINING`` 1 while an exit switch is uncollected
``EXIT_OPEN``        1 once an exit is open
``KEY`` on           the key, which begins with the level number
``WORDS`` on         the rest of the key: words of ``WORD_BITS`` bits, stored as whole numbers, which float64 holds
                     exactly; one bit per locked or trap door of the level, set while it is closed, then one bit per
                     exit, set while it is open; none of these is set once all exits are open
==================== ==========================================================================================

So a level without such doors and with one exit has a single key.
"""

import math

import numpy as np

from nclone_env.game import REGULAR_DOOR
from nclone_env.jit import kernel, local_f64
from nclone_env.level import (
    AREA,
    FIELD_SHAPE,
    NODES,
    PLANES,
    SPACING,
    TO_EXIT,
    TO_SWITCH,
    LevelSet,
    crosses,
    direction_to,
    follow,
)
from nclone_env.obs.game_state import open_exit_count
from nclone_env.obs.half import write_vector
from nclone_env.obs.spec import REACHABILITY
from nclone_env.sim import is_closed, state_of

PENDING, X, Y, SWITCH_REMAINING, EXIT_OPEN, KEY, WORDS = range(7)
WORD_BITS = 32
NO_QUERIES: np.ndarray = np.zeros((0, KEY + 1))

_SIZE = len(REACHABILITY)
_HALFWAY = 528.0  # pixels; this path length is written as 0.5
_HOPS = 3  # lattice steps, 36 pixels
_NEAR = 64.0  # pixels; doors farther away cannot lie between the ninja and the nodes around it


def key_width(levels: LevelSet) -> int:
    """Return the number of columns of a key."""
    header = levels.arrays.header
    before = np.append(0, np.cumsum(levels.arrays.doors["type"] != REGULAR_DOOR))
    switched = before[header["first_door"] + header["door_count"]] - before[header["first_door"]]
    exits = header["exit_count"]
    bits = int((switched + np.where(exits > 1, exits, 0)).max())
    return 1 + -(-bits // WORD_BITS)


def key_bits(key: np.ndarray) -> np.ndarray:
    """Return the bits of a key, those of the doors first, (32 (key - 1),) bool."""
    words = [int(word) for word in key[WORDS - KEY :]]
    return np.array([word >> bit & 1 for word in words for bit in range(WORD_BITS)], dtype=np.bool_)


def make_queries(count: int, levels: LevelSet) -> np.ndarray:
    """Return (count, 5 + key) float64 queries, none of them pending."""
    return np.zeros((count, KEY + key_width(levels)))


@kernel
def write_query(levels, worlds, index, queries):
    """Write the query of a world into the row of the same index."""
    ninja = worlds.ninjas[index]
    header = levels.header[ninja["level"]]
    for column in range(KEY, queries.shape[1]):
        queries[index, column] = 0.0
    queries[index, PENDING], queries[index, X], queries[index, Y] = 1.0, ninja["x"], ninja["y"]
    queries[index, KEY] = ninja["level"]
    bit = 0
    for number in range(header["first_door"], header["first_door"] + header["door_count"]):
        door = levels.doors[number]
        if door["type"] != REGULAR_DOOR:
            if is_closed(door["type"], state_of(worlds, index, door["owner"])):
                set_bit(queries, index, bit)
            bit += 1
    exits_open, exits = open_exit_count(levels, worlds, index), header["exit_count"]
    queries[index, SWITCH_REMAINING] = 1.0 if exits_open < exits else 0.0
    queries[index, EXIT_OPEN] = 1.0 if exits_open > 0 else 0.0
    if 0 < exits_open < exits:
        for number in range(exits):
            if state_of(worlds, index, header["first_exit"] + 2 * number) != 0:
                set_bit(queries, index, bit + number)


@kernel
def set_bit(queries, index, bit):
    """Set a bit of a query's key that is not set."""
    queries[index, WORDS + bit // WORD_BITS] += float(1 << (bit % WORD_BITS))


@kernel
def has_bit(queries, index, bit):
    """Return whether a bit of a query's key is set."""
    return (int(queries[index, WORDS + bit // WORD_BITS]) >> (bit % WORD_BITS)) & 1 != 0


@kernel
def find_slot(keys, queries, index, hint):
    """Return the row of ``keys``, (S, key) float64, that equals the key of a query, or -1; try ``hint`` first."""
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
def write_reachability(levels, fields, rows, slot, queries, index, vector):
    """Answer a query.

    Args:
        fields: (3 S * 51 * 89,) float32, see ``level.routes.distance.write_reach_fields``.
        rows: (1, 51) ``FIELD_ROW`` of each of these fields.
        slot: cache slot of the query's key, with three fields.
        queries: (N, Q) float64.
        vector: (11,) float32, or the words of float32 or float16 (``obs.half``); written.
    """
    out = local_f64(_SIZE)
    doors_near = has_door_near(levels, queries, index)
    out[0], out[5] = queries[index, SWITCH_REMAINING], queries[index, EXIT_OPEN]
    first = NODES * PLANES * slot
    write_path(levels, fields, rows, first + NODES * TO_SWITCH, queries, index, doors_near, 1, out)
    write_path(levels, fields, rows, first + NODES * TO_EXIT, queries, index, doors_near, 6, out)
    if queries[index, SWITCH_REMAINING] == 0.0:
        out[1], out[2], out[3], out[4] = 0.0, 1.0, 0.0, 0.0
    first += NODES * AREA
    distance, j, i = seen_node(levels, fields, first, queries, index, doors_near, 0.0)
    out[10] = fields[first + FIELD_SHAPE[1] * j + i] if distance < math.inf else 0.0
    write_vector(out, vector)


@kernel
def write_path(levels, fields, rows, first, queries, index, doors_near, column, out):
    """Write four columns about a path: whether it exists, its scaled length, and its direction."""
    x, y = queries[index, X], queries[index, Y]
    length, j, i = seen_node(levels, fields, first, queries, index, doors_near, 1.0)
    if length == math.inf:
        out[column], out[column + 1], out[column + 2], out[column + 3] = 0.0, 1.0, 0.0, 0.0
    else:
        out[column], out[column + 1] = 1.0, length / (length + _HALFWAY)
        j, i = follow(fields, first, rows, 0, j, i, _HOPS)
        out[column + 2], out[column + 3] = direction_to(j, i, x, y)


@kernel
def has_door_near(levels, queries, index):
    """Return whether a closed door is near the ninja."""
    header = levels.header[int(queries[index, KEY])]
    bit = 0
    for number in range(header["first_door"], header["first_door"] + header["door_count"]):
        door = levels.doors[number]
        if door["type"] != REGULAR_DOOR:
            dx, dy = door["x"] - queries[index, X], door["y"] - queries[index, Y]
            if abs(dx) < _NEAR and abs(dy) < _NEAR and has_bit(queries, index, bit):
                return True
            bit += 1
    return False


@kernel
def seen_node(levels, fields, first, queries, index, doors_near, weight):
    """Return (distance, row, column) of the best of the 16 nodes around the ninja that no closed door hides.

    The distance is the distance to the node plus ``weight`` times the field there; infinite if there is no such node.
    """
    rows, columns = FIELD_SHAPE
    x, y = queries[index, X], queries[index, Y]
    i0, j0 = int(math.floor(x / SPACING)), int(math.floor(y / SPACING))
    best, best_row, best_column = math.inf, 0, 0
    for j in range(max(j0 - 1, 0), min(j0 + 2, rows - 1) + 1):
        for i in range(max(i0 - 1, 0), min(i0 + 2, columns - 1) + 1):
            onward = fields[first + columns * j + i]
            if onward < math.inf:
                dx, dy = SPACING * i - x, SPACING * j - y
                length = weight * onward + math.sqrt(dx * dx + dy * dy)
                if length < best and not (doors_near and is_hidden(levels, queries, index, SPACING * i, SPACING * j)):
                    best, best_row, best_column = length, j, i
    return best, best_row, best_column


@kernel
def is_hidden(levels, queries, index, node_x, node_y):
    """Return whether a closed door lies between the ninja and a node."""
    header = levels.header[int(queries[index, KEY])]
    bit = 0
    for number in range(header["first_door"], header["first_door"] + header["door_count"]):
        door = levels.doors[number]
        if door["type"] != REGULAR_DOOR:
            if has_bit(queries, index, bit) and crosses(door, queries[index, X], queries[index, Y], node_x, node_y):
                return True
            bit += 1
    return False
