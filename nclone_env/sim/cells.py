"""Registration of entities in cells, and the order in which the entities of a cell act (physics 02, section 4.3).

A cell's list holds its entities in the order in which they entered it. Entities that never leave their cell are sorted
in the level; a mover carries its cell and an order number that grows with every entry, so it sorts behind earlier ones.
"""

from nclone_env.constants import COLUMNS, ROWS
from nclone_env.jit import kernel
from nclone_env.sim.geometry import clamp_cell


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
