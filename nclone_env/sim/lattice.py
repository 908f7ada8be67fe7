"""Obstacle tests on the half-cell lattice, for entities that move (physics 01, section 3.14; physics 02, section 4.8).

An edge is an obstacle if tiles contribute to it or a closed door lies on it.
"""

import math

from nclone_env.jit import kernel
from nclone_env.kinds import TRAP_DOOR
from nclone_env.level import EDGE_DOOR, EDGE_VALUE, HORIZONTAL, VERTICAL

_LAST_COLUMN, _LAST_ROW = 88, 50


@kernel
def half_cell(value):
    """Return the half-cell coordinate of a pixel coordinate, not clamped."""
    return int(math.floor(value / 12.0))


@kernel
def tile_edge(levels, level, direction, column, row):
    """Return the contribution of the tiles to the clamped lattice edge: 0 open, 1 half-solid, 2 solid."""
    i, j = min(max(column, 0), _LAST_COLUMN), min(max(row, 0), _LAST_ROW)
    return levels.grid[level, direction, j, i] & EDGE_VALUE


@kernel
def is_blocked(levels, states, index, level, direction, column, row):
    """Return whether the clamped lattice edge is an obstacle in a world."""
    i, j = min(max(column, 0), _LAST_COLUMN), min(max(row, 0), _LAST_ROW)
    value = levels.grid[level, direction, j, i]
    if value == 0:
        return False
    if value & EDGE_VALUE:
        return True
    return value & EDGE_DOOR != 0 and closed_door_on(levels, states, index, level, direction, i, j)


@kernel
def closed_door_on(levels, states, index, level, direction, i, j):
    """Return whether a door that is closed in a world lies on a lattice edge."""
    first = levels.header[level]["first_door"]
    for number in range(first, first + levels.header[level]["door_count"]):
        door = levels.doors[number]
        a, b = 2 * door["column"], 2 * door["row"]
        if direction == VERTICAL:
            on_edge = door["vertical"] != 0 and i == a + 2 and (j == b or j == b + 1)
        else:
            on_edge = door["vertical"] == 0 and j == b + 2 and (i == a or i == a + 1)
        if on_edge and (states[index, door["owner"]] != 0) == (door["type"] == TRAP_DOOR):
            return True
    return False


@kernel
def empty_row(levels, states, index, level, first, last, row, direction):
    """Return whether the lower (1) or upper (-1) edges of half-cell columns ``first`` to ``last`` of a row are free."""
    line = row + 1 if direction == 1 else row
    for column in range(first, last + 1):
        if is_blocked(levels, states, index, level, HORIZONTAL, column, line):
            return False
    return direction == 1 or direction == -1


@kernel
def empty_column(levels, states, index, level, column, first, last, direction):
    """Return whether the right (1) or left (-1) edges of half-cell rows ``first`` to ``last`` of a column are free."""
    line = column + 1 if direction == 1 else column
    for row in range(first, last + 1):
        if is_blocked(levels, states, index, level, VERTICAL, line, row):
            return False
    return direction == 1 or direction == -1


@kernel
def empty_line(levels, states, index, level, horizontal, along, first, last, direction):
    """Return :func:`empty_column` for horizontal motion, :func:`empty_row` for vertical, at ``along``."""
    if horizontal:
        return empty_column(levels, states, index, level, along, first, last, direction)
    return empty_row(levels, states, index, level, first, last, along, direction)
