"""Searches for the segment nearest to a surface laser.

A crawling laser searches ten times a frame. :func:`nearest` scans some cells once and lists their segments;
:func:`nearest_listed` then searches that list alone. Both follow the one rule of :func:`is_nearer`.
"""

from nclone_env.constants import ROWS
from nclone_env.jit import called_kernel, kernel
from nclone_env.level import DOOR_CLOSED_AT_0
from nclone_env.sim.query import closest_on, is_absent

MOST_LISTED = 40
FOUND_SLOTS = 2 * MOST_LISTED  # of a list: the index of a segment and its squared distance, alternately
REACH = 12.0  # half side of the square whose cells are searched for segments, pixels
_FAR = 9999999.0


@kernel
def is_nearer(distance, door, best_distance, best_door):
    """Return whether a segment replaces the best so far: among equals doors come first, then the earlier one."""
    return distance <= best_distance and (distance < best_distance or door > best_door)


@called_kernel
def nearest(levels, states, index, level, cells, x, y, found, most):
    """Find the nearest segment in some cells, and list the segments of those cells.

    Args:
        states: (N, E) entity states of the worlds; the segments of open doors are listed, but never the nearest.
        cells: first and last column, first and last row.
        x, y: place of the laser, pixels.
        found: (``FOUND_SLOTS``,) float64; the list, changed in place.
        most: number of segments to list at most, 0 to ``MOST_LISTED``; further ones are only counted.

    Returns:
        (segment, squared distance, number of segments in the cells); segment -1 if there is none.
    """
    best, best_distance, best_door, count = -1, _FAR, False, 0
    for column in range(cells[0], cells[1] + 1):
        start = levels.segment_start[level, column * ROWS + cells[2]]
        stop = levels.segment_start[level, column * ROWS + cells[3] + 1]
        for i in range(start, stop):
            _, a, b = closest_on(levels.segments[i], x, y)
            dx, dy = x - a, y - b
            distance = dx * dx + dy * dy
            if count < most:
                found[2 * count], found[2 * count + 1] = i, distance
            count += 1
            door = levels.segments[i]["kind"] >= DOOR_CLOSED_AT_0
            if is_nearer(distance, door, best_distance, best_door) and not is_absent(levels.segments[i], states, index):
                best, best_distance, best_door = i, distance, door
    return best, best_distance, count


@called_kernel
def nearest_listed(levels, states, index, found, count, x, y):
    """Return (segment, a, b, squared distance) of the nearest segment in a list, as seen from (x, y)."""
    best, best_a, best_b, best_distance, best_door = -1, 0.0, 0.0, _FAR, False
    for k in range(count):
        i = int(found[2 * k])
        if is_absent(levels.segments[i], states, index):
            continue
        _, a, b = closest_on(levels.segments[i], x, y)
        dx, dy = x - a, y - b
        distance = dx * dx + dy * dy
        door = levels.segments[i]["kind"] >= DOOR_CLOSED_AT_0
        if is_nearer(distance, door, best_distance, best_door):
            best, best_a, best_b, best_distance, best_door = i, a, b, distance, door
    return best, best_a, best_b, best_distance


@kernel
def drop_distant(found, count, reach):
    """Keep only the segments of a list within ``reach``; return their number."""
    kept = 0
    for k in range(count):
        if found[2 * k + 1] <= reach * reach:
            found[2 * kept], found[2 * kept + 1] = found[2 * k], found[2 * k + 1]
            kept += 1
    return kept
