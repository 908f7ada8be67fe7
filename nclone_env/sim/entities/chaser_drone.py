"""Chaser drones (physics 03, section 10; section 17, choice C1: they look for the ninja at nodes only).

The state is the heading, as of any drone, plus ``CHASING``. ``a`` and ``b`` of the mover are the node that it flies to.

Evidence: the patrol, two sources; the chase, two ports of the predecessor rescaled from 40 to 60 frames a second. No
recording contains one.
"""

from nclone_env.game import CHASER_DRONE, KINDS
from nclone_env.jit import kernel
from nclone_env.sim.cells import empty_line, half_cell, refresh
from nclone_env.sim.entities.drone import HEADING, HEADING_X, HEADING_Y, TURNS, advance, choose, fly, try_heading
from nclone_env.sim.ninja import is_targetable

CHASING = KINDS[CHASER_DRONE].states["chasing"]  # a bit of the state
_PATROL_SPEED, _CHASE_SPEED = 1.1428571428571428, 2.2857142857142856
_SIGHT = 12.0  # largest distance from its line at which the ninja is seen, pixels


@kernel
def move(levels, worlds, index, slot, entity, mover):
    """Fly on, or look for the ninja and choose the next node when this one is reached."""
    ninja, states = worlds.ninjas[index], worlds.entity_states
    heading, speed = states[index, slot] & HEADING, speed_of(states[index, slot])
    reached, flown = fly(mover, heading, speed)
    if not reached:
        refresh(ninja, mover)
    elif decide(levels, ninja, entity, mover, states, index, slot):
        rest = speed_of(states[index, slot]) - flown
        if rest > 0.0:  # a drone that stopped chasing may have moved too far already
            advance(mover, states[index, slot] & HEADING, rest)


@kernel
def speed_of(state):
    """Return the speed in a state, pixels per frame."""
    return _CHASE_SPEED if state & CHASING != 0 else _PATROL_SPEED


@kernel
def decide(levels, ninja, entity, mover, states, index, slot):
    """Continue the chase, else chase the ninja if it is in sight, else patrol; return whether a heading is free."""
    level, mode = ninja["level"], entity["mode"]
    ahead = states[index, slot] & HEADING
    heading = ahead
    if states[index, slot] & CHASING != 0:
        if try_heading(levels, level, False, mover, states, index, ahead):
            return True
        heading = (ahead + 4 - TURNS[mode][0]) & HEADING
        states[index, slot] = heading
    if is_targetable(ninja):
        for turn in range(3):  # to the left, ahead, to the right
            side = (ahead + 3 + turn) & HEADING
            if spots(levels, ninja, mover, states, index, side):
                if try_heading(levels, level, False, mover, states, index, side):
                    states[index, slot] = side | CHASING
                    return True
    heading = choose(levels, level, False, mode, mover, states, index, heading)
    if heading >= 0:
        states[index, slot] = heading
    return heading >= 0


@kernel
def spots(levels, ninja, mover, states, index, heading):
    """Return whether the ninja is in a direction, close to the line, with nothing in between.

    The view runs along the half row or half column of the drone's centre; of a drone in the middle of a cell that is
    the lower or the right half.
    """
    ex, ey = HEADING_X[heading], HEADING_Y[heading]
    dx, dy = ninja["x"] - mover["x"], ninja["y"] - mover["y"]
    if not (ex * dx + ey * dy > 0.0 and abs(ex * dy - ey * dx) <= _SIGHT):
        return False
    horizontal = ey == 0.0
    along, across = (mover["x"], mover["y"]) if horizontal else (mover["y"], mover["x"])
    place, end = half_cell(along), half_cell(ninja["x"] if horizontal else ninja["y"])
    lane, direction = half_cell(across), 1 if ex + ey > 0.0 else -1
    while place != end:
        if not empty_line(levels, states, index, ninja["level"], horizontal, place, lane, lane, direction):
            return False
        place += direction
    return True


@kernel
def describe(state):
    """Describe a chaser drone, see ``sim.dispatch.describe``."""
    speed, phase = speed_of(state), 1.0 if state & CHASING != 0 else 0.0
    hx, hy = HEADING_X[state & HEADING], HEADING_Y[state & HEADING]
    return speed * hx, speed * hy, hx, hy, phase, True, False
