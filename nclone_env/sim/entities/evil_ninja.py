"""Evil ninjas: they repeat the path of the ninja, some seconds behind (physics 03, section 12; section 17, choice E1).

The state is a phase. ``a`` of the mover is the frame in which the ninja touched it, ``b`` its ordinal among those
touched. The path of the ninja is kept in the world's trail, from the first touch on: the centre at the end of frame j
is in row j modulo its length. The k-th evil ninja needs the last 120 k - 1 of them.

Evidence: one source. No recording contains one.
"""

from nclone_env.game import EVIL_DELAY, EVIL_NINJA, KINDS
from nclone_env.jit import kernel
from nclone_env.sim.cells import refresh
from nclone_env.sim.ninja import kill, meets

WAITING, TOUCHED, CHARGING, ACTIVE = KINDS[EVIL_NINJA].states.values()
TOUCH_FRAME, ORDINAL = "a", "b"
_WAITING_RADIUS, _ACTIVE_RADIUS = (KINDS[EVIL_NINJA].radii[state] for state in (WAITING, ACTIVE))


@kernel
def think(levels, worlds, index, slot, entity, mover):
    """Take an ordinal, move to the place of the touch, then follow."""
    states, ninja = worlds.entity_states, worlds.ninjas[index]
    if states[index, slot] == WAITING:
        return
    if states[index, slot] == TOUCHED:
        mover[ORDINAL] = 1 + count_ordinals(levels, worlds, index)
        states[index, slot] = CHARGING
        return
    remember(ninja, worlds.trail, index)
    frame, ordinal = ninja["frame"], int(mover[ORDINAL])
    begin = int(mover[TOUCH_FRAME]) + EVIL_DELAY * ordinal
    if frame >= begin:
        states[index, slot] = ACTIVE
        mover["x"], mover["y"] = recall(worlds.trail, index, frame - EVIL_DELAY * ordinal + 1)
        refresh(ninja, mover)
    elif frame > begin - EVIL_DELAY:
        charge(ninja, entity, mover, worlds.trail, index, (frame - (begin - EVIL_DELAY)) / EVIL_DELAY)


@kernel
def charge(ninja, entity, mover, trail, index, fraction):
    """Move to a fraction of the line from home to the ninja's position one frame after the touch."""
    x, y = recall(trail, index, int(mover[TOUCH_FRAME]) + 1)
    mover["x"] = entity["x"] + fraction * (x - entity["x"])
    mover["y"] = entity["y"] + fraction * (y - entity["y"])
    refresh(ninja, mover)


@kernel
def count_ordinals(levels, worlds, index):
    """Return the number of evil ninjas of a world that have an ordinal."""
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
    """Store the ninja's position at the end of the last frame; every evil ninja that does so stores the same."""
    row = (ninja["frame"] - 1) % trail.shape[1]
    trail[index, row, 0], trail[index, row, 1] = ninja["x"], ninja["y"]


@kernel
def recall(trail, index, frame):
    """Return the ninja's position at the end of a frame."""
    row = frame % trail.shape[1]
    return trail[index, row, 0], trail[index, row, 1]


@kernel
def touch(ninja, mover, states, index, slot):
    """Wake up if waiting, kill if active."""
    phase = states[index, slot]
    if phase == TOUCHED or phase == CHARGING or not meets(ninja, mover["x"], mover["y"], radius(phase)):
        return
    if phase == WAITING:
        states[index, slot] = TOUCHED
        mover[TOUCH_FRAME] = ninja["frame"]
    else:
        kill(ninja)


@kernel
def describe(worlds, index, entity, mover, state):
    """Describe an evil ninja, see ``sim.dispatch.describe``."""
    vx, vy = next_motion(worlds, index, entity, mover, state)
    phase = 1.0 if state == ACTIVE else (0.5 if state != WAITING else 0.0)
    return vx, vy, 0.0, 0.0, phase, state == ACTIVE, False


@kernel
def next_motion(worlds, index, entity, mover, state):
    """Return the displacement of an evil ninja in the next frame, pixels."""
    frame, met, ordinal = worlds.ninjas[index]["frame"], int(mover[TOUCH_FRAME]), int(mover[ORDINAL])
    begin = met + EVIL_DELAY * ordinal
    if state == ACTIVE:
        x, y = recall(worlds.trail, index, frame - EVIL_DELAY * ordinal + 2)
        return x - mover["x"], y - mover["y"]
    if state == CHARGING and frame > begin - EVIL_DELAY and frame > met + 1:
        x, y = recall(worlds.trail, index, met + 1)
        return (x - entity["x"]) / EVIL_DELAY, (y - entity["y"]) / EVIL_DELAY
    return 0.0, 0.0


@kernel
def radius(state):
    """Return the radius, pixels."""
    return _ACTIVE_RADIUS if state == ACTIVE else _WAITING_RADIUS
