"""Zap drones and mini drones (physics 02, sections 6.11 to 6.13).

State: the heading, 0 right, 1 down, 2 left, 3 up. The mover's pair is the node it flies to.
"""

from __future__ import annotations

import math

from nclone_env.constants import MINI_DRONE, RADIUS
from nclone_env.jit import kernel
from nclone_env.sim.cells import refresh, whole_24ths
from nclone_env.sim.geometry import discs_overlap
from nclone_env.sim.lattice import empty_line
from nclone_env.sim.life import is_targetable, kill

HEADING_X, HEADING_Y = (1.0, 0.0, -1.0, 0.0), (0.0, 1.0, 0.0, -1.0)
# Turns to try in this order, by mode: follow the wall clockwise or not, wander clockwise or not.
TURNS = ((1, 0, 3, 2), (3, 0, 1, 2), (0, 1, 3, 2), (0, 3, 1, 2))
_RADIUS, _STEPS, ZAP_SPEED = 7.5, 2, 8.0 / 7.0  # radius and half cells between nodes of all but mini drones
_MINI_RADIUS, _MINI_STEPS, MINI_SPEED = 4.0, 1, 1.3
_DIAMETER, _MINI_DIAMETER = int(2 * _RADIUS), int(2 * _MINI_RADIUS)


@kernel
def start(entity, mover, states, index, slot):
    """Face the way of the record and be on the node."""
    states[index, slot] = entity["orientation"] >> 1
    mover["ux"], mover["uy"] = mover["x"], mover["y"]


@kernel
def move(levels, worlds, index, slot, entity, mover, mini):
    """Fly on, or choose the next node when this one is reached; the cell is not refreshed in that frame."""
    ninja, states = worlds.ninjas[index], worlds.entity_states
    speed = MINI_SPEED if mini else ZAP_SPEED
    reached, left = fly(mover, states[index, slot], speed)
    if not reached:
        refresh(ninja, mover)
        return
    heading = choose(levels, ninja["level"], mini, entity["mode"], mover, states, index, states[index, slot])
    if heading >= 0:
        states[index, slot] = heading
        advance(mover, heading, speed - left)


@kernel
def fly(mover, heading, speed):
    """Fly a frame, but no farther than to the node; return (node reached, distance to it before, 0 if not reached).

    The node is straight ahead or here, so what is left along the heading alone says whether it is reached.
    """
    hx, hy = HEADING_X[heading], HEADING_Y[heading]
    tx, ty, x, y = mover["ux"], mover["uy"], mover["x"], mover["y"]
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
def choose(levels, level, mini, mode, mover, states, index, heading):
    """Turn to the first free way in the order of the mode; return the new heading, -1 if every way is blocked."""
    for attempt in range(4):
        turned = (heading + TURNS[mode][attempt]) & 3
        if try_way(levels, level, mini, mover, states, index, turned):
            return turned
    return -1


@kernel
def try_way(levels, level, mini, mover, states, index, heading):
    """Make the next node in a direction the target if the way to it is free of obstacles; return whether it is."""
    diameter, steps = (_MINI_DIAMETER, _MINI_STEPS) if mini else (_DIAMETER, _STEPS)
    horizontal, direction = heading & 1 == 0, 1 if heading < 2 else -1
    x, y = int(mover["x"]), int(mover["y"])  # nodes have whole coordinates
    along, across = (x, y) if horizontal else (y, x)
    place = half_cell_of(2 * along + direction * diameter)
    first, last = half_cell_of(2 * across - diameter), half_cell_of(2 * across + diameter)
    for _ in range(steps):
        if not empty_line(levels, states, index, level, horizontal, place, first, last, direction):
            return False
        place += direction
    length = 12.0 * steps
    mover["ux"], mover["uy"] = x + length * HEADING_X[heading], y + length * HEADING_Y[heading]
    return True


@kernel
def half_cell_of(doubled):
    """Return the half-cell coordinate of half a whole number of pixels, at least -384."""
    return whole_24ths(doubled + 768) - 32


@kernel
def touch(ninja, entity, mover):
    """Kill."""
    radius = _MINI_RADIUS if entity["type"] == MINI_DRONE else _RADIUS
    if is_targetable(ninja) and discs_overlap(mover["x"], mover["y"], ninja["x"], ninja["y"], radius + RADIUS):
        kill(ninja)
