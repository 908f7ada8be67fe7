"""Evil ninjas: they repeat the way of the ninja, some seconds behind (physics 03, section 12; section 17, choice E1).

State: a phase. The mover's pair is the frame in which the ninja touched it and its ordinal among those touched.
The way is kept in the world's trail, from the first touch on: the centre at the end of frame j is in row j modulo its
length. The k-th needs the last 120 k - 1 of them.

Evidence: one source. No recording contains one.
"""

from __future__ import annotations

from nclone_env.constants import EVIL_DELAY, EVIL_NINJA, RADIUS
from nclone_env.jit import kernel
from nclone_env.sim.cells import refresh
from nclone_env.sim.geometry import discs_overlap
from nclone_env.sim.life import is_targetable, kill

WAITING, TOUCHED, CHARGING, ACTIVE = 0, 1, 2, 3
_WAITING_RADIUS, _ACTIVE_RADIUS = 10.0, 6.0


@kernel
def think(levels, worlds, index, slot, entity, mover):
    """Take an ordinal, come to the place of the touch, then follow."""
    states, ninja = worlds.entity_states, worlds.ninjas[index]
    if states[index, slot] == WAITING:
        return
    if states[index, slot] == TOUCHED:
        mover["uy"] = 1 + count_ordinals(levels, worlds, index)
        states[index, slot] = CHARGING
        return
    remember(ninja, worlds.trail, index)
    frame, ordinal = ninja["frame"], int(mover["uy"])
    begin = int(mover["ux"]) + EVIL_DELAY * ordinal
    if frame >= begin:
        states[index, slot] = ACTIVE
        mover["x"], mover["y"] = recall(worlds.trail, index, frame - EVIL_DELAY * ordinal + 1)
        refresh(ninja, mover)
    elif frame > begin - EVIL_DELAY:
        charge(ninja, entity, mover, worlds.trail, index, (frame - (begin - EVIL_DELAY)) / EVIL_DELAY)


@kernel
def charge(ninja, entity, mover, trail, index, fraction):
    """Move a part of the way from home to where the ninja was a frame after the touch."""
    x, y = recall(trail, index, int(mover["ux"]) + 1)
    mover["x"] = entity["x"] + fraction * (x - entity["x"])
    mover["y"] = entity["y"] + fraction * (y - entity["y"])
    refresh(ninja, mover)


@kernel
def count_ordinals(levels, worlds, index):
    """Return how many evil ninjas of a world have an ordinal."""
    header = levels.header[worlds.ninjas[index]["level"]]
    count = 0
    for r in range(header["first_run"], header["first_run"] + header["run_count"]):
        if levels.runs[r]["type"] == EVIL_NINJA:
            for slot in range(levels.runs[r]["first"], levels.runs[r]["stop"]):
                if worlds.entity_states[index, slot] >= CHARGING:
                    count += 1
    return count


@kernel
def remember(ninja, trail, index):
    """Keep where the ninja was at the end of the last frame; every evil ninja under way writes the same."""
    row = (ninja["frame"] - 1) % trail.shape[1]
    trail[index, row, 0], trail[index, row, 1] = ninja["x"], ninja["y"]


@kernel
def recall(trail, index, frame):
    """Return where the ninja was at the end of a frame."""
    row = frame % trail.shape[1]
    return trail[index, row, 0], trail[index, row, 1]


@kernel
def touch(ninja, mover, states, index, slot):
    """Wake up if waiting, kill if active."""
    phase = states[index, slot]
    if phase == TOUCHED or phase == CHARGING or not is_targetable(ninja):
        return
    reach = (_WAITING_RADIUS if phase == WAITING else _ACTIVE_RADIUS) + RADIUS
    if not discs_overlap(mover["x"], mover["y"], ninja["x"], ninja["y"], reach):
        return
    if phase == WAITING:
        states[index, slot] = TOUCHED
        mover["ux"] = ninja["frame"]
    else:
        kill(ninja)
