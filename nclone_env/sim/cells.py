"""Cells: the order in which the entities of a cell act (physics 02, section 4.3); obstacles on the half-cell lattice.

A cell's list holds its entities in the order in which they entered it. Entities that never leave their cell are sorted
in the level; a mover carries its cell and an order number that grows with every entry, so it sorts behind earlier ones.

An edge of the lattice is an obstacle to entities that move if tiles contribute to it or a closed door lies on it
(physics 01, section 3.14; physics 02, section 4.8).
"""

import math

from nclone_env.game import COLUMNS, ROWS, TRAP_DOOR
from nclone_env.jit import kernel
from nclone_env.level import EDGE_DOOR, EDGE_VALUE, HORIZONTAL, VERTICAL
from nclone_env.sim.geometry import clamp_cell

_LAST_COLUMN, _LAST_ROW = 88, 50


@kernel
def cell_of(x, y):
    """Return the clamped cell number of a position."""
    return clamp_cell(x, COLUMNS - 1) * ROWS + clamp_cell(y, ROWS - 1)


@kernel
def refresh(ninja, mover):
    """Register a mover in the cell of its position, behind the others there, if that cell has changed."""
    if not is_within(mover["cell"], mover["x"], mover["y"]):
        cell = cell_of(mover["x"], mover["y"])
        if cell != mover["cell"]:
            enter(ninja, mover, cell)


@kernel
def is_within(cell, x, y):
    """Return whether a position lies in a cell: the common case, decided without a division."""
    row = whole_24ths(int(y))
    return cell == whole_24ths(int(x)) * ROWS + row and 0 <= row < ROWS


@kernel
def whole_24ths(number):
    """Return ``number // 24`` for whole numbers from 0 to 2**29: the factor is 2**32 / 24, rounded up."""
    return (number * 178956971) >> 32


@kernel
def enter(ninja, mover, cell):
    """Register a mover in a cell, behind the others there."""
    mover["cell"] = cell
    mover["order"] = ninja["next_order"]
    ninja["next_order"] += 1


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
