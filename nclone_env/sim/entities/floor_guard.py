"""Floor guards (physics 02, section 6.15)."""

from nclone_env.game import FLOOR_GUARD, KINDS
from nclone_env.jit import kernel
from nclone_env.level import HORIZONTAL
from nclone_env.sim.cells import empty_column, half_cell, refresh, tile_edge
from nclone_env.sim.ninja import is_targetable, kill, meets

_IDLE, _RIGHT, _LEFT = KINDS[FLOOR_GUARD].states.values()
_GUARD_RADIUS = KINDS[FLOOR_GUARD].radii[0]
_SPEED = 3.428571428571428  # one unit in the last place below 24 / 7
_STOP = 6.01  # distance at which it stops before a wall or the end of the floor
_SOLID = 2


@kernel
def move(levels, worlds, index, slot, entity, mover):
    """Run until a wall or the end of a fully solid floor."""
    ninja, states = worlds.ninjas[index], worlds.entity_states
    state = states[index, slot]
    if state == _IDLE:
        return
    sign = 1 if state == _RIGHT else -1
    x, level = mover["x"], ninja["level"]
    ahead = x + sign * _SPEED
    place, next_place = half_cell(x + sign * _GUARD_RADIUS), half_cell(ahead + sign * _GUARD_RADIUS)
    if place != next_place:
        row = half_cell(mover["y"])
        free = empty_column(levels, states, index, level, place, row, row, sign)
        if not free or tile_edge(levels, level, HORIZONTAL, next_place, row + 1) != _SOLID:
            if sign == 1:
                place += 1
            ahead = 12.0 * place - _STOP * sign
            states[index, slot] = _IDLE
    mover["x"] = ahead
    refresh(ninja, mover)


@kernel
def think(levels, worlds, index, slot, entity, mover):
    """Start towards a targetable ninja at the guard's height with nothing in between."""
    ninja, states = worlds.ninjas[index], worlds.entity_states
    if states[index, slot] != _IDLE or not is_targetable(ninja):
        return
    x, y = mover["x"], mover["y"]
    if not y + _GUARD_RADIUS - 24.0 <= ninja["y"] <= y + _GUARD_RADIUS:
        return
    sign = 0
    if ninja["x"] < x:
        sign = -1
    elif ninja["x"] > x:
        sign = 1
    goal, place, row = half_cell(ninja["x"]), half_cell(x), half_cell(y)
    while goal != place:
        if not empty_column(levels, states, index, ninja["level"], place, row, row, sign):
            return
        place += sign
    if sign != 0:
        states[index, slot] = _RIGHT if sign == 1 else _LEFT


@kernel
def touch(ninja, mover):
    """Kill."""
    if meets(ninja, mover["x"], mover["y"], _GUARD_RADIUS):
        kill(ninja)


@kernel
def describe(state):
    """Describe a floor guard, see ``sim.dispatch.describe``."""
    side = 1.0 if state == _RIGHT else (-1.0 if state == _LEFT else 0.0)
    return side * _SPEED, 0.0, side, 0.0, 1.0 if state != _IDLE else 0.0, True, False
