"""The objective of the ninja, and the remaining path length to the exit."""

import math

from nclone_env.jit import kernel
from nclone_env.level import distance_at


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
def objective(levels, paths, worlds, index):
    """Return (field, slot) of the objective: its row in ``paths.fields`` and its entity.

    In a level with landmarks, it is the first that has not been visited. In the others it is, until a switch is
    collected, the switch nearest in a straight line, with the field of the shortest path by any switch to its exit;
    then the open exit with the shortest path.
    """
    if paths.header[worlds.ninjas[index]["level"]]["landmark_count"] > 0:
        return next_landmark(paths, worlds, index)
    return nearest_objective(levels, paths, worlds, index)


@kernel
def next_landmark(paths, worlds, index):
    """Return (field, slot) of the first landmark that has not been visited; the exit if there is no other."""
    header = paths.header[worlds.ninjas[index]["level"]]
    first, number = header["first_landmark"], 0
    while number < header["landmark_count"] - 1 and worlds.entity_states[index, paths.landmarks[first + number]] != 0:
        number += 1
    return header["first_field"] + number, paths.landmarks[first + number]


@kernel
def nearest_objective(levels, paths, worlds, index):
    """Return (field, slot) of the nearest switch, or of the nearest open exit if there is one."""
    ninja = worlds.ninjas[index]
    header = paths.header[ninja["level"]]
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
            length = distance_at(paths.fields, field, x, y)
        else:
            slot += 1
            entity = levels.entities[first_entity + slot]
            dx, dy = entity["x"] - x, entity["y"] - y
            length = math.sqrt(dx * dx + dy * dy)
        if not found or length < best:
            found, best, best_field, best_slot = True, length, field, slot
    return best_field, best_slot


@kernel
def path_remaining(levels, paths, worlds, index):
    """Return the remaining path length as a multiple of the initial one; infinite without a path."""
    field, _ = objective(levels, paths, worlds, index)
    ninja = worlds.ninjas[index]
    return distance_at(paths.fields, field, ninja["x"], ninja["y"]) / paths.header[ninja["level"]]["start_distance"]
