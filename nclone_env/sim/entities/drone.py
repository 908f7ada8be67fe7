"""Drones: zap, mini and chaser drones (physics 02, sections 6.11 to 6.13; physics 03, section 10), and laser and
chaingun drones (physics 03, section 11; section 17, choices D1, D2 and D3).

The state is the heading; of a chaser plus ``CHASING``. ``a`` and ``b`` of the mover are the node that the drone flies
to. Chasers look for the ninja at nodes only (physics 03, section 17, choice C1).

Laser and chaingun drones patrol like others until they see the ninja; then they stop, warn, fire and recover. Touching
one is harmless, so they are in no cell. Bits 0 and 1 of their state are the heading, 2 and 3 the phase; of a firing
chaingun drone bit 4 is the side it sweeps to, and bits 5 to 7 are the shots fired. After a stop ``a`` and ``b`` of the
mover are the point aimed at; ``order`` then keeps the node's coordinate along the heading. ``timer`` counts the frames
of the phase, or those since the last shot.

Evidence of chasers, laser and chaingun drones: the patrol of chasers, two sources; the rest, two ports of the
predecessor rescaled from 40 to 60 frames a second. No recording contains one.
"""

import math
from typing import Any

from nclone_env.game import CHASER_DRONE, KINDS, LASER_DRONE, MINI_DRONE, ZAP_DRONE
from nclone_env.jit import kernel
from nclone_env.sim.geometry import unit, whole_24ths
from nclone_env.sim.ninja import is_targetable, kill, meets
from nclone_env.sim.query import empty_line, half_cell, refresh
from nclone_env.sim.sight import AIM, BEAM, NO_BEAM, SHOT_FIRED, SHOT_SHOWN, sees, shot
from nclone_env.sim.store import movers_of, state_of, states_of

NODE_X, NODE_Y = "a", "b"
HEADING = 3  # bits of the state; chasers and shooting drones keep more above them
HEADING_X, HEADING_Y = (1.0, 0.0, -1.0, 0.0), (0.0, 1.0, 0.0, -1.0)
# Turns to try in this order, by mode: follow the wall clockwise or not, wander clockwise or not.
TURNS = ((1, 0, 3, 2), (3, 0, 1, 2), (0, 1, 3, 2), (0, 3, 1, 2))
_RADIUS, _STEPS, _SPEED = KINDS[ZAP_DRONE].radii[0], 2, 8.0 / 7.0  # steps: half cells between nodes; not of mini drones
_MINI_RADIUS, _MINI_STEPS, _MINI_SPEED = KINDS[MINI_DRONE].radii[0], 1, 1.3
_DIAMETER, _MINI_DIAMETER = int(2 * _RADIUS), int(2 * _MINI_RADIUS)
CHASING = KINDS[CHASER_DRONE].states["chasing"]  # a bit of the state
_PATROL_SPEED, _CHASE_SPEED = 1.1428571428571428, 2.2857142857142856
_SIGHT = 12.0  # largest distance from its line at which the ninja is seen, pixels

PATROL, WARNING, FIRING, RECOVERING = KINDS[LASER_DRONE].states.values()
PHASE, SIDE, SHOT = 12, 16, 32  # bits of the state
AIM_X, AIM_Y, KEPT_NODE, FRAMES = "a", "b", "order", "timer"
_LASER_SPEED, _CHAINGUN_SPEED = 0.2857142857142857, 0.4285714285714285
_LASER_WARNING, _CHAINGUN_WARNING = 45, 52
_LASER_RECOVERY, _CHAINGUN_RECOVERY = 60, 90
_BEAM, _SHOT_INTERVAL, _SHOTS = 80, 9, 7  # frames, frames, shots of a burst


@kernel
def start(entity, mover, states, own, slot):
    """Turn to the heading of the record; the drone is on its node."""
    states[own + slot] = entity["orientation"] >> 1
    mover[NODE_X], mover[NODE_Y] = mover["x"], mover["y"]


def _patrol_by(speed: float, mini: bool) -> Any:
    """Return a kernel that moves the drones of a run, most of which only fly on.

    The cell of a drone is not refreshed in a frame in which it reaches a node.
    """
    steps_x, steps_y = tuple(speed * h for h in HEADING_X), tuple(speed * h for h in HEADING_Y)

    @kernel
    def patrols(levels, worlds, index, base, first, stop, shift):
        ninja = worlds.ninjas[index]
        (states, own), (movers, moved) = states_of(worlds, index), movers_of(worlds, index)
        level = ninja["level"]
        slot = int(first)
        while slot < stop:  # fewer instructions than a range of 16-bit numbers
            mover, heading = movers[moved + shift + slot], states[own + slot] & HEADING
            dx, dy = steps_x[heading], steps_y[heading]
            x, y = mover["x"] + dx, mover["y"] + dy
            if (mover[NODE_X] - x) * dx + (mover[NODE_Y] - y) * dy < 0.0:
                ahead_x, ahead_y = mover[NODE_X] - mover["x"], mover[NODE_Y] - mover["y"]
                mover["x"], mover["y"] = mover[NODE_X], mover[NODE_Y]
                flown = math.sqrt(ahead_x * ahead_x + ahead_y * ahead_y)
                leave_node(levels, level, mini, levels.entities[base + slot], mover, states, own, slot, speed - flown)
            else:
                mover["x"], mover["y"] = x, y
                refresh(ninja, mover)
            slot += 1

    return patrols


move_zaps, move_minis = _patrol_by(_SPEED, mini=False), _patrol_by(_MINI_SPEED, mini=True)


@kernel
def patrol(levels, worlds, index, slot, entity, mover, mini, speed):
    """Fly on, or choose the next node when this one is reached."""
    level = worlds.ninjas[index]["level"]
    states, own = states_of(worlds, index)
    reached, flown = fly(mover, states[own + slot], speed)
    if reached:
        leave_node(levels, level, mini, entity, mover, states, own, slot, speed - flown)


@kernel
def leave_node(levels, level, mini, entity, mover, states, own, slot, rest):
    """Choose the next node, and fly towards it for the rest of the frame."""
    heading = choose(levels, level, mini, entity["mode"], mover, states, own, states[own + slot])
    if heading >= 0:
        states[own + slot] = heading
        advance(mover, heading, rest)


@kernel
def fly(mover, heading, speed):
    """Fly a frame, but no farther than to the node; return (node reached, distance flown to it, 0 if not reached).

    The node is here or straight ahead, so the remaining distance along the heading decides whether it is reached.
    """
    hx, hy = HEADING_X[heading], HEADING_Y[heading]
    tx, ty, x, y = mover[NODE_X], mover[NODE_Y], mover["x"], mover["y"]
    ahead_x, ahead_y = x + speed * hx, y + speed * hy
    if (tx - ahead_x) * hx + (ty - ahead_y) * hy < 0.0:
        mover["x"], mover["y"] = tx, ty
        dx, dy = tx - x, ty - y
        return True, math.sqrt(dx * dx + dy * dy)
    mover["x"], mover["y"] = ahead_x, ahead_y
    return False, 0.0


@kernel
def advance(mover, heading, distance):
    """Move a drone along a heading."""
    mover["x"] += distance * HEADING_X[heading]
    mover["y"] += distance * HEADING_Y[heading]


@kernel
def choose(levels, level, mini, mode, mover, states, own, heading):
    """Choose the first free heading in the order of the mode and return it, -1 if all are blocked."""
    for attempt in range(4):
        turned = (heading + TURNS[mode][attempt]) & 3
        if try_heading(levels, level, mini, mover, states, own, turned):
            return turned
    return -1


@kernel
def try_heading(levels, level, mini, mover, states, own, heading):
    """Make the next node in a direction the target if the path to it is free; return whether it is."""
    diameter, steps = (_MINI_DIAMETER, _MINI_STEPS) if mini else (_DIAMETER, _STEPS)
    horizontal, direction = heading & 1 == 0, 1 if heading < 2 else -1
    x, y = int(mover["x"]), int(mover["y"])  # nodes have whole coordinates
    along, across = (x, y) if horizontal else (y, x)
    place = half_cell_of(2 * along + direction * diameter)
    first, last = half_cell_of(2 * across - diameter), half_cell_of(2 * across + diameter)
    for _ in range(steps):
        if not empty_line(levels, states, own, level, horizontal, place, first, last, direction):
            return False
        place += direction
    length = 12.0 * steps
    mover[NODE_X], mover[NODE_Y] = x + length * HEADING_X[heading], y + length * HEADING_Y[heading]
    return True


@kernel
def half_cell_of(doubled):
    """Return the half-cell coordinate of half a whole number of pixels, at least -384."""
    return whole_24ths(doubled + 768) - 32


@kernel
def touch(ninja, entity, mover):
    """Kill."""
    radius = _MINI_RADIUS if entity["type"] == MINI_DRONE else _RADIUS
    if meets(ninja, mover["x"], mover["y"], radius):
        kill(ninja)


@kernel
def describe(entity, state):
    """Describe a zap or mini drone, see ``sim.dispatch.describe``."""
    speed = _MINI_SPEED if entity["type"] == MINI_DRONE else _SPEED
    hx, hy = HEADING_X[state & HEADING], HEADING_Y[state & HEADING]
    return speed * hx, speed * hy, hx, hy, 1.0, True, False


@kernel
def move_chaser(levels, worlds, index, slot, entity, mover):
    """Fly on, or look for the ninja and choose the next node when this one is reached."""
    ninja = worlds.ninjas[index]
    states, own = states_of(worlds, index)
    heading, speed = states[own + slot] & HEADING, speed_of(states[own + slot])
    reached, flown = fly(mover, heading, speed)
    if not reached:
        refresh(ninja, mover)
    elif decide(levels, ninja, entity, mover, states, own, slot):
        rest = speed_of(states[own + slot]) - flown
        if rest > 0.0:  # a drone that stopped chasing may have moved too far already
            advance(mover, states[own + slot] & HEADING, rest)


@kernel
def speed_of(state):
    """Return the speed in a state, pixels per frame."""
    return _CHASE_SPEED if state & CHASING != 0 else _PATROL_SPEED


@kernel
def decide(levels, ninja, entity, mover, states, own, slot):
    """Continue the chase, else chase the ninja if it is in sight, else patrol; return whether a heading is free."""
    level, mode = ninja["level"], entity["mode"]
    ahead = states[own + slot] & HEADING
    heading = ahead
    if states[own + slot] & CHASING != 0:
        if try_heading(levels, level, False, mover, states, own, ahead):
            return True
        heading = (ahead + 4 - TURNS[mode][0]) & HEADING
        states[own + slot] = heading
    if is_targetable(ninja):
        for turn in range(3):  # to the left, ahead, to the right
            side = (ahead + 3 + turn) & HEADING
            if spots(levels, ninja, mover, states, own, side):
                if try_heading(levels, level, False, mover, states, own, side):
                    states[own + slot] = side | CHASING
                    return True
    heading = choose(levels, level, False, mode, mover, states, own, heading)
    if heading >= 0:
        states[own + slot] = heading
    return heading >= 0


@kernel
def spots(levels, ninja, mover, states, own, heading):
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
        if not empty_line(levels, states, own, ninja["level"], horizontal, place, lane, lane, direction):
            return False
        place += direction
    return True


@kernel
def describe_chaser(state):
    """Describe a chaser drone, see ``sim.dispatch.describe``."""
    speed, phase = speed_of(state), 1.0 if state & CHASING != 0 else 0.0
    hx, hy = HEADING_X[state & HEADING], HEADING_Y[state & HEADING]
    return speed * hx, speed * hy, hx, hy, phase, True, False


@kernel
def move_shooting(levels, worlds, index, slot, entity, mover):
    """Patrol; stay in place in the other phases."""
    if state_of(worlds, index, slot) & PHASE == PATROL:
        speed = _LASER_SPEED if entity["type"] == LASER_DRONE else _CHAINGUN_SPEED
        patrol(levels, worlds, index, slot, entity, mover, False, speed)


@kernel
def think_shooting(levels, worlds, index, slot, entity, mover):
    """Look for the ninja, warn, fire, recover."""
    ninja = worlds.ninjas[index]
    states, own = states_of(worlds, index)
    phase, laser = states[own + slot] & PHASE, entity["type"] == LASER_DRONE
    if phase == FIRING:
        fire(levels, ninja, laser, mover, states, own, slot)
    elif phase == WARNING:
        warn(ninja, laser, mover, states, own, slot)
    else:
        if phase == RECOVERING:
            mover[FRAMES] += 1
            if mover[FRAMES] < (_LASER_RECOVERY if laser else _CHAINGUN_RECOVERY):
                return
        if sees(levels, worlds, index, entity["mover"], mover["x"], mover["y"]):
            acquire(ninja, mover, states, own, slot)
        elif phase == RECOVERING:
            resume(mover, states, own, slot)


@kernel
def enter(mover, states, own, slot, phase):
    """Begin a phase; the heading stays."""
    states[own + slot] = (states[own + slot] & HEADING) | phase
    mover[FRAMES] = 0


@kernel
def acquire(ninja, mover, states, own, slot):
    """Stop, aim at the ninja and warn it; a drone that patrolled keeps its node."""
    if states[own + slot] & PHASE == PATROL:
        upright = states[own + slot] & 1
        mover[KEPT_NODE] = int(mover[NODE_Y] if upright else mover[NODE_X])
    mover[AIM_X], mover[AIM_Y] = ninja["x"], ninja["y"]
    enter(mover, states, own, slot, WARNING)


@kernel
def resume(mover, states, own, slot):
    """Resume the flight to the node."""
    upright = states[own + slot] & 1
    mover[NODE_X], mover[NODE_Y] = mover["x"], mover["y"]
    if upright:
        mover[NODE_Y] = mover[KEPT_NODE]
    else:
        mover[NODE_X] = mover[KEPT_NODE]
    enter(mover, states, own, slot, PATROL)


@kernel
def warn(ninja, laser, mover, states, own, slot):
    """Wait, then begin to fire; a chaingun drone aims again and sweeps to the side of the ninja's motion."""
    if not is_targetable(ninja):
        enter(mover, states, own, slot, RECOVERING)
        return
    mover[FRAMES] += 1
    if mover[FRAMES] < (_LASER_WARNING if laser else _CHAINGUN_WARNING):
        return
    enter(mover, states, own, slot, FIRING)
    if not laser:
        mover[AIM_X], mover[AIM_Y] = ninja["x"], ninja["y"]
        ux, uy = unit(ninja["x"] - mover["x"], ninja["y"] - mover["y"], 1.0, 0.0)
        if -uy * ninja["vx"] + ux * ninja["vy"] < 0.0:
            states[own + slot] |= SIDE


@kernel
def fire(levels, ninja, laser, mover, states, own, slot):
    """Fire if it is time; recover at the end."""
    mover[FRAMES] += 1
    dx, dy = unit(mover[AIM_X] - mover["x"], mover[AIM_Y] - mover["y"], 1.0, 0.0)
    if not laser:
        if mover[FRAMES] < _SHOT_INTERVAL:
            return
        mover[FRAMES] = 0
        if states[own + slot] >= _SHOTS * SHOT:
            enter(mover, states, own, slot, RECOVERING)
            return
        states[own + slot] += SHOT
        dx, dy = swept(mover, states[own + slot], dx, dy)
    if shot(levels, states, own, ninja, mover["x"], mover["y"], dx, dy):
        kill(ninja)
    if laser and mover[FRAMES] >= _BEAM:
        enter(mover, states, own, slot, RECOVERING)


@kernel
def swept(mover, state, ux, uy):
    """Return the direction of a shot of a burst around (ux, uy): from behind the ninja's motion to ahead of it."""
    if mover[AIM_X] == mover["x"] and mover[AIM_Y] == mover["y"]:
        return ux, uy  # it aims at itself (section 11.3)
    wx, wy = (uy, -ux) if state & SIDE != 0 else (-uy, ux)
    aside = ((state // SHOT) / 6.0 - 0.5) * 0.3
    return unit(ux + aside * wx, uy + aside * wy, 1.0, 0.0)


@kernel
def next_leg(levels, worlds, index, entity, mover, state):
    """Put a zap, mini or chaser drone that sees no ninja on its node and choose the next; return its state, or -1.

    Only ``mover`` is changed, so that a copy of a mover can fly on alone.
    """
    level, mode, mini = worlds.ninjas[index]["level"], entity["mode"], entity["type"] == MINI_DRONE
    states, own = states_of(worlds, index)
    mover["x"], mover["y"] = mover[NODE_X], mover[NODE_Y]
    if state & CHASING != 0:
        if try_heading(levels, level, mini, mover, states, own, state & HEADING):
            return state
        return choose(levels, level, mini, mode, mover, states, own, (state + 4 - TURNS[mode][0]) & HEADING)
    return choose(levels, level, mini, mode, mover, states, own, state)


@kernel
def frames_to_node(mover, speed):
    """Return the frames that a drone needs to the node it flies to; it flies along one axis."""
    return (abs(mover[NODE_X] - mover["x"]) + abs(mover[NODE_Y] - mover["y"])) / speed


@kernel
def describe_shooting(entity, mover, state):
    """Describe a laser or chaingun drone, see ``sim.dispatch.describe``."""
    phase, speed = state & PHASE, 0.0
    hx, hy = HEADING_X[state & HEADING], HEADING_Y[state & HEADING]
    if phase == PATROL:
        speed = _LASER_SPEED if entity["type"] == LASER_DRONE else _CHAINGUN_SPEED
    facing_x, facing_y = hx, hy
    if phase == WARNING or phase == FIRING:
        facing_x, facing_y = unit(mover[AIM_X] - mover["x"], mover[AIM_Y] - mover["y"], 0.0, 0.0)
    progress = 1.0 if phase == FIRING else (0.5 if phase == WARNING else 0.0)
    return speed * hx, speed * hy, facing_x, facing_y, progress, False, False


@kernel
def beam_shooting(entity, mover, state):
    """Return (emission, dx, dy): a laser drone's line of warning and beam, a chaingun drone's last shot."""
    emission, phase = NO_BEAM, state & PHASE
    dx, dy = unit(mover[AIM_X] - mover["x"], mover[AIM_Y] - mover["y"], 1.0, 0.0)
    if entity["type"] == LASER_DRONE:
        if phase == WARNING:
            emission = AIM
        elif phase == FIRING:
            emission = BEAM
    elif phase == FIRING and state >= SHOT and mover[FRAMES] < SHOT_SHOWN:
        emission = SHOT_FIRED
        dx, dy = swept(mover, state, dx, dy)
    return emission, dx, dy
