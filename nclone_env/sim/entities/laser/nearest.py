"""What a surface laser finds around it: the nearest segment, and lists of those that may become it."""

from __future__ import annotations

from nclone_env.constants import ROWS
from nclone_env.jit import called_kernel, kernel
from nclone_env.level.segments import DOOR_SHUT_AT_0
from nclone_env.sim.query import closest_on, is_absent

MOST_LISTED = 40
FOUND_SLOTS = 2 * MOST_LISTED
REACH = 12.0  # of the square whose cells are searched for segments
_FAR = 9999999.0


@called_kernel
def nearest(levels, states, index, level, cells, x, y):
    """Return (segment, back-facing, a, b, squared distance) of the nearest segment in some cells; -1 if there is none.

    Among equals doors come first, then the earlier one.
    """
    best, best_back, best_a, best_b, best_distance = -1, False, 0.0, 0.0, _FAR
    best_door = False
    for column in range(cells[0], cells[1] + 1):
        start = levels.segment_start[level, column * ROWS + cells[2]]
        stop = levels.segment_start[level, column * ROWS + cells[3] + 1]
        for i in range(start, stop):
            if is_absent(levels.segments[i], states, index):
                continue
            back, a, b = closest_on(levels.segments[i], x, y)
            dx, dy = x - a, y - b
            distance = dx * dx + dy * dy
            door = levels.segments[i]["kind"] >= DOOR_SHUT_AT_0
            if distance < best_distance or (distance == best_distance and door and not best_door):
                best, best_back, best_a, best_b, best_distance, best_door = i, back, a, b, distance, door
    return best, best_back, best_a, best_b, best_distance


@called_kernel
def survey(levels, level, cells, x, y, found):
    """List the segments of some cells in ``found``: number, squared distance; return how many, or more than fit.

    Those of open doors are listed too.
    """
    count = 0
    for column in range(cells[0], cells[1] + 1):
        start = levels.segment_start[level, column * ROWS + cells[2]]
        stop = levels.segment_start[level, column * ROWS + cells[3] + 1]
        for i in range(start, stop):
            if count == MOST_LISTED:
                return count + 1
            _, a, b = closest_on(levels.segments[i], x, y)
            found[2 * count], found[2 * count + 1] = i, (x - a) * (x - a) + (y - b) * (y - b)
            count += 1
    return count


@kernel
def keep_near(found, count, reach):
    """Leave only the segments of a list within ``reach``; return how many."""
    kept = 0
    for k in range(count):
        if found[2 * k + 1] <= reach * reach:
            found[2 * kept], found[2 * kept + 1] = found[2 * k], found[2 * k + 1]
            kept += 1
    return kept


@kernel
def nearest_surveyed(levels, states, index, found, count):
    """Return the nearest segment of a list by the distances in it and the rule of :func:`nearest`."""
    best, best_distance, best_door = -1, _FAR, False
    for k in range(count):
        i, distance = int(found[2 * k]), found[2 * k + 1]
        if distance <= best_distance and not is_absent(levels.segments[i], states, index):
            door = levels.segments[i]["kind"] >= DOOR_SHUT_AT_0
            if distance < best_distance or (door and not best_door):
                best, best_distance, best_door = i, distance, door
    return best


@called_kernel
def nearest_listed(levels, states, index, found, count, x, y):
    """Return (segment, a, b, squared distance) of the nearest in a list, by the rule of :func:`nearest`."""
    best, best_a, best_b, best_distance, best_door = -1, 0.0, 0.0, _FAR, False
    for k in range(count):
        i = int(found[2 * k])
        if is_absent(levels.segments[i], states, index):
            continue
        _, a, b = closest_on(levels.segments[i], x, y)
        dx, dy = x - a, y - b
        distance = dx * dx + dy * dy
        door = levels.segments[i]["kind"] >= DOOR_SHUT_AT_0
        if distance < best_distance or (distance == best_distance and door and not best_door):
            best, best_a, best_b, best_distance, best_door = i, a, b, distance, door
    return best, best_a, best_b, best_distance
