"""Zap drones and mini drones (physics 02, sections 6.11 to 6.13).

State: the heading, 0 right, 1 down, 2 left, 3 up. The mover's pair is the node it flies to.
"""

from __future__ import annotations

import math

from nclone_env._jit import kernel
from nclone_env.constants import RADIUS, ZAP_DRONE
from nclone_env.sim.cells import refresh
from nclone_env.sim.geometry import discs_overlap
from nclone_env.sim.lattice import empty_line, half_cell
from nclone_env.sim.life import is_targetable, kill

_HEADING_X, _HEADING_Y = (1.0, 0.0, -1.0, 0.0), (0.0, 1.0, 0.0, -1.0)
# Turns to try in this order, by mode: follow the wall clockwise or not, wander clockwise or not.
_TURNS = ((1, 0, 3, 2), (3, 0, 1, 2), (0, 1, 3, 2), (0, 3, 1, 2))
_ZAP_RADIUS, _ZAP_STEP, _ZAP_SPEED = 7.5, 24.0, 8.0 / 7.0
_MINI_RADIUS, _MINI_STEP, _MINI_SPEED = 4.0, 12.0, 1.3
_ARRIVED = 0.000001


@kernel
def start(entity, mover, states, index, slot):
    """Face the way of the record and be on the node."""
    states[index, slot] = entity["orientation"] >> 1
    mover["ux"], mover["uy"] = mover["x"], mover["y"]


@kernel
def move(levels, head, entity, mover, states, index, slot):
    """Fly on, or choose the next node when this one is reached; the cell is not refreshed in that frame."""
    zap = entity["type"] == ZAP_DRONE
    speed = _ZAP_SPEED if zap else _MINI_SPEED
    heading = states[index, slot]
    sx, sy = speed * _HEADING_X[heading], speed * _HEADING_Y[heading]
    tx, ty, x, y = mover["ux"], mover["uy"], mover["x"], mover["y"]
    dx, dy = tx - x, ty - y
    left = math.sqrt(dx * dx + dy * dy)
    if not (left < _ARRIVED or dx * (tx - (x + sx)) + dy * (ty - (y + sy)) < 0.0):
        mover["x"], mover["y"] = x + sx, y + sy
        refresh(head, mover)
        return
    mover["x"], mover["y"] = tx, ty
    if choose(levels, head, entity, mover, states, index, slot):
        heading = states[index, slot]
        rest = speed - left
        mover["x"] += rest * _HEADING_X[heading]
        mover["y"] += rest * _HEADING_Y[heading]


@kernel
def choose(levels, head, entity, mover, states, index, slot):
    """Take the first free heading in the order of the mode; return whether there is one."""
    old = states[index, slot]
    for attempt in range(4):
        heading = (old + _TURNS[entity["mode"]][attempt]) & 3
        if is_free(levels, head["level"], entity["type"] == ZAP_DRONE, mover, states, index, heading):
            step = _ZAP_STEP if entity["type"] == ZAP_DRONE else _MINI_STEP
            mover["ux"] = mover["x"] + step * _HEADING_X[heading]
            mover["uy"] = mover["y"] + step * _HEADING_Y[heading]
            states[index, slot] = heading
            return True
    return False


@kernel
def is_free(levels, level, zap, mover, states, index, heading):
    """Return whether the way to the next node in a direction is free of obstacles."""
    radius, step = (_ZAP_RADIUS, _ZAP_STEP) if zap else (_MINI_RADIUS, _MINI_STEP)
    ex, ey = _HEADING_X[heading], _HEADING_Y[heading]
    horizontal = ey == 0.0
    along, across = (mover["x"], mover["y"]) if horizontal else (mover["y"], mover["x"])
    sign = ex if horizontal else ey
    direction = 1 if sign > 0.0 else -1
    place, end = half_cell(along + sign * radius), half_cell((along + step * sign) + sign * radius)
    first, last = half_cell(across - radius), half_cell(across + radius)
    while place != end:
        if not empty_line(levels, states, index, level, horizontal, place, first, last, direction):
            return False
        place += direction
    return True


@kernel
def touch(ninja, entity, mover):
    """Kill."""
    radius = _ZAP_RADIUS if entity["type"] == ZAP_DRONE else _MINI_RADIUS
    if is_targetable(ninja) and discs_overlap(mover["x"], mover["y"], ninja["x"], ninja["y"], radius + RADIUS):
        kill(ninja)
