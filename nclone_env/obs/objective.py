"""The objective of the ninja, and the remaining path length to the exit."""

from __future__ import annotations

import math

from nclone_env.jit import kernel
from nclone_env.level.routes.distance import distance_at


@kernel
def open_exit_count(levels, worlds, index):
    """Return how many exits of a world are open."""
    header = levels.header[worlds.ninjas[index]["level"]]
    count = 0
    for number in range(header["exit_count"]):
        if worlds.entity_states[index, header["first_exit"] + 2 * number] != 0:
            count += 1
    return count


@kernel
def objective(levels, fields, worlds, index):
    """Return (field, slot) of the objective: its row in ``fields`` and its entity.

    Until a switch is collected, it is the switch nearest in a straight line, with the field of the shortest path by any
    switch to its exit; then the open exit with the shortest path.
    """
    ninja = worlds.ninjas[index]
    header = levels.header[ninja["level"]]
    first_exit, first_field, first_entity = header["first_exit"], header["first_field"], header["first_entity"]
    x, y = ninja["x"], ninja["y"]
    exits_open = open_exit_count(levels, worlds, index) > 0
    found, best, best_field, best_slot = False, 0.0, first_field, first_exit
    for number in range(header["exit_count"]):
        slot = first_exit + 2 * number
        field = first_field
        if exits_open:
            if worlds.entity_states[index, slot] == 0:
                continue
            field = first_field + 1 + number
            length = distance_at(fields, field, x, y)
        else:
            slot += 1
            entity = levels.entities[first_entity + slot]
            dx, dy = entity["x"] - x, entity["y"] - y
            length = math.sqrt(dx * dx + dy * dy)
        if not found or length < best:
            found, best, best_field, best_slot = True, length, field, slot
    return best_field, best_slot


@kernel
def path_remaining(levels, fields, worlds, index):
    """Return the remaining path length as a multiple of the initial one; infinite without a path."""
    field, _ = objective(levels, fields, worlds, index)
    ninja = worlds.ninjas[index]
    initial = levels.header[ninja["level"]]["start_distance"]
    return distance_at(fields, field, ninja["x"], ninja["y"]) / initial
