"""Frames of surface lasers that are searched step by step, remembered with the level (``laser.learn``).

Such a frame depends on position, normal and sense of the laser, and on the doors in reach. The table of a level has
those that its lasers go through while all doors are as at the start of the level. A frame that is not in it, or beside
a door that has opened or closed, is searched. It is a hash table with open addressing, whose size is a power of two.
"""

import numpy as np

from nclone_env.jit import called_kernel, kernel
from nclone_env.level import DOOR_CLOSED_AT_0
from nclone_env.sim.entities.laser.motion import FRAMES_LEFT, MOTION, NORMAL_ANGLE
from nclone_env.sim.geometry import difference
from nclone_env.sim.query import cells_within, segments_of

REACH = 12.0
"""Half side of the square whose cells are searched for segments, pixels."""
UNCHANGED = -1
"""``frames`` of a frame after which the motion is still unknown."""
_GOLDEN, _OTHER, _SHIFT = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(32)


@kernel
def recall(levels, level, mover, states, own, slot):
    """Take a frame from the table; return whether it is there."""
    first, stop = levels.laser_start[level], levels.laser_start[level + 1]
    if first == stop:
        return False
    x, y, angle, sense = mover["x"], mover["y"], mover[NORMAL_ANGLE], states[own + slot]
    known = levels.laser_frames[find(levels.laser_frames, first, stop, x, y, angle, sense)]
    if known["sense"] == 0 or (known["has_door"] and not doors_as_at_start(levels, level, states, own, x, y)):
        return False
    mover["x"], mover["y"], mover[NORMAL_ANGLE] = known["next_x"], known["next_y"], known["next_angle"]
    states[own + slot] = known["next_sense"]
    if known["frames"] != UNCHANGED:
        mover[FRAMES_LEFT], mover[MOTION] = known["frames"], known["motion"]
    return True


@called_kernel
def doors_as_at_start(levels, level, states, own, x, y):
    """Return whether all doors in the cells around (x, y) are open or closed as at the start of the level."""
    cells, entities = cells_within(x, y, REACH), levels.header[level]["first_entity"]
    for column in range(cells[0], cells[1] + 1):
        begin, end = segments_of(levels, level, column, cells[2], cells[3])
        for i in range(begin, end):
            segment = levels.segments[i]
            if segment["kind"] >= DOOR_CLOSED_AT_0:
                owner = segment["owner"]
                if (states[own + owner] == 0) != (levels.entities[entities + owner]["initial"] == 0):
                    return False
    return True


@kernel
def find(table, first, stop, x, y, angle, sense):
    """Return the place of a frame in the table from ``first`` to ``stop``, or of the empty entry where it belongs."""
    word = np.float64(x).view(np.uint64) * _OTHER ^ np.float64(y).view(np.uint64)
    word = (word * _OTHER ^ np.float64(angle).view(np.uint64)) * _GOLDEN
    last = stop - first - 1
    place = np.int64(word >> _SHIFT) & last
    while True:
        known = table[first + place]
        other = difference(known["x"], x) | difference(known["y"], y) | difference(known["angle"], angle)
        if known["sense"] == 0 or (other == 0 and known["sense"] == sense):
            return first + place
        place = (place + 1) & last
