"""The writer of ``graph``: index of the level's graph, node of the ninja, and state of the entities."""

import math

import numpy as np

from nclone_env.game import LOCKED_DOOR, REGULAR_DOOR, TRAP_DOOR
from nclone_env.jit import kernel
from nclone_env.level import NO_NODE, SPACING
from nclone_env.obs.entity_states import matters
from nclone_env.sim import is_closed

PRESENT, CLOSED = 1, 2
NO_LATTICE: np.ndarray = np.zeros((0, 0, 0), np.int16)
NO_LATTICE.flags.writeable = False


@kernel
def write_graph(levels, worlds, index, lattice, row, level, node, entities):
    """Write the dynamic part of a graph.

    Args:
        lattice: (L, 51, 89) int16 of ``Graphs``.
        row: row of the remaining arrays to write.
        level: (n, 1) int32, index of the graph.
        node: (n, 1) int32, place of the free lattice point nearest to the ninja among the 16 around it; ``NO_NODE`` if
            none is free.
        entities: (n, K) uint8, for each entity ``PRESENT`` until it is collected or used up, plus ``CLOSED`` while it
            is a closed door, or the switch of one.
    """
    ninja = worlds.ninjas[index]
    header = levels.header[ninja["level"]]
    level[row, 0] = ninja["level"]
    node[row, 0] = nearest_place(lattice, ninja["level"], ninja["x"], ninja["y"])
    for slot in range(entities.shape[1]):
        value = 0
        if slot < header["entity_count"]:
            kind = levels.entities[header["first_entity"] + slot]["type"]
            state = worlds.entity_states[index, slot]
            if kind == REGULAR_DOOR or matters(kind, state):
                value += PRESENT
            if (kind == REGULAR_DOOR or kind == LOCKED_DOOR or kind == TRAP_DOOR) and is_closed(kind, state):
                value += CLOSED
        entities[row, slot] = value


@kernel
def nearest_place(lattice, level, x, y):
    """Return the place of the nearest free lattice point of the 16 around (x, y); ``NO_NODE`` if none is free."""
    _, rows, columns = lattice.shape
    i0, j0 = int(math.floor(x / SPACING)), int(math.floor(y / SPACING))
    best, found = math.inf, NO_NODE
    for j in range(max(j0 - 1, 0), min(j0 + 2, rows - 1) + 1):
        for i in range(max(i0 - 1, 0), min(i0 + 2, columns - 1) + 1):
            if lattice[level, j, i] >= 0:
                dx, dy = SPACING * i - x, SPACING * j - y
                length = dx * dx + dy * dy
                if length < best:
                    best, found = length, int(lattice[level, j, i])
    return found
