"""Fills the tables of ``laser.known``: each laser is followed from its start until it repeats itself.

A laser that goes round and round repeats its searched frames to the bit.
"""

from collections.abc import Mapping
from weakref import WeakSet

import numpy as np

from nclone_env.game import LASER_TURRET
from nclone_env.jit import kernel
from nclone_env.level import DOOR_CLOSED_AT_0, LASER_FRAME, LevelSet
from nclone_env.sim.entities.laser.known import REACH, UNCHANGED, find
from nclone_env.sim.entities.laser.motion import FRAMES_LEFT, MOTION, NORMAL_ANGLE, SPINNER, is_closed_form
from nclone_env.sim.entities.laser.turret import crawl, start
from nclone_env.sim.query import cells_within, segments_of

_FRAMES = 3000  # that each laser is followed
_MOST = 4096  # frames of a level
_FEW = 64  # levels whose tables are made faster than a file
_LAYOUT = {"laser_start": np.dtype("i4"), "laser_frames": LASER_FRAME}
_NO_MOTION = -1
_learned: WeakSet[LevelSet] = WeakSet()
"""The level sets that have their tables."""


def know_lasers(levels: LevelSet, mover: np.ndarray) -> None:
    """Add the tables to the arrays of a level set that has lasers, unless they are there; ``mover`` is scratch."""
    if levels in _learned or not (levels.arrays.runs["type"] == LASER_TURRET).any():
        return
    if len(levels.levels) > _FEW:
        levels.replace(**levels.derived("laser-frames", _LAYOUT, lambda: _tables(levels, mover)))
    else:
        levels.replace(**_tables(levels, mover))
    _learned.add(levels)


def _tables(levels: LevelSet, mover: np.ndarray) -> Mapping[str, np.ndarray]:
    """Return the tables of the levels one after another, and where each begins."""
    header, runs = levels.arrays.header, levels.arrays.runs
    with_lasers = [(runs["type"][row["first_run"] :][: row["run_count"]] == LASER_TURRET).any() for row in header]
    tables, start = [np.zeros(0, LASER_FRAME)], np.zeros(len(header) + 1, np.int32)
    found = np.zeros(_MOST, LASER_FRAME)
    for number in np.flatnonzero(with_lasers).tolist():
        states = levels.entities_of(number)["initial"].copy()
        count = learn(levels.arrays, number, states, mover, np.zeros(2 * _MOST, LASER_FRAME), found)
        if count:
            tables.append(np.zeros(1 << int(2 * count - 1).bit_length(), LASER_FRAME))
            insert(found[:count], tables[-1])
            start[number + 1] = len(tables[-1])
    tables.append(np.zeros(1, LASER_FRAME))  # kernels need a valid first record
    return {"laser_start": start.cumsum(dtype=np.int32), "laser_frames": np.concatenate(tables)}


@kernel
def learn(levels, level, states, movers, table, found):
    """Follow the lasers of a level from their starts; write the frames that are searched to ``found``, return how many.

    Args:
        states: (E,) uint8, the initial states of the level's entities.
        movers: one ``MOVER`` of the simulator, scratch.
        table: empty, twice as long as ``found``, a power of two.
    """
    header, count = levels.header[level], 0
    for r in range(header["first_run"], header["first_run"] + header["run_count"]):
        run = levels.runs[r]
        if run["type"] == LASER_TURRET:
            for slot in range(run["first"], run["stop"]):
                entity = levels.entities[header["first_entity"] + slot]
                count = follow(levels, level, entity, slot, states, movers[0], table, found, count)
    return count


@kernel
def follow(levels, level, entity, slot, states, mover, table, found, count):
    """Follow one laser until it repeats itself; return how many frames are found now."""
    mover["x"], mover["y"], mover[FRAMES_LEFT] = entity["x"], entity["y"], 0
    start(levels, level, entity, mover, states, 0, slot)
    if states[slot] == SPINNER:
        return count
    for _ in range(_FRAMES):
        if mover[FRAMES_LEFT] > 0:
            crawl(levels, level, mover, states, 0, slot)
            continue
        x, y, angle, sense = mover["x"], mover["y"], mover[NORMAL_ANGLE], states[slot]
        known, motion = table[find(table, 0, table.shape[0], x, y, angle, sense)], mover[MOTION]
        if count == found.shape[0] or known["sense"] != 0:
            return count
        known["x"], known["y"], known["angle"], known["sense"] = x, y, angle, sense
        mover[MOTION] = _NO_MOTION
        crawl(levels, level, mover, states, 0, slot)
        segments, doors = count_segments(levels, level, x, y)
        if (mover[MOTION] != _NO_MOTION and is_closed_form(mover)) or segments == 0:
            known["sense"] = 0
        else:
            known["next_x"], known["next_y"], known["next_angle"] = mover["x"], mover["y"], mover[NORMAL_ANGLE]
            known["next_sense"], known["motion"] = states[slot], mover[MOTION]
            known["has_door"] = doors > 0
            known["frames"] = UNCHANGED if mover[MOTION] == _NO_MOTION else mover[FRAMES_LEFT]
            found[count] = known
            count += 1
        if mover[MOTION] == _NO_MOTION:
            mover[MOTION] = motion
    return count


@kernel
def count_segments(levels, level, x, y):
    """Return the numbers of segments in reach of a laser at (x, y), and of those of doors among them."""
    cells, count, doors = cells_within(x, y, REACH), 0, 0
    for column in range(cells[0], cells[1] + 1):
        begin, end = segments_of(levels, level, column, cells[2], cells[3])
        for i in range(begin, end):
            count += 1
            doors += levels.segments[i]["kind"] >= DOOR_CLOSED_AT_0
    return count, doors


@kernel
def insert(frames, table):
    """Put frames into an empty table."""
    for number in range(frames.shape[0]):
        frame = frames[number]
        place = find(table, 0, table.shape[0], frame["x"], frame["y"], frame["angle"], frame["sense"])
        table[place] = frame
