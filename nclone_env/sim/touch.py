"""Contacts of the ninja with the entities around it (physics 01, sections 7 and 9.1; physics 02, sections 4.4 and 5).

Two passes visit the nine cells around the ninja, column by column, and within a cell the entities in the order in which
they entered it: *push* asks the solid ones before each collision with the tiles, *touch* asks all of them once
afterwards. A pass sees the list as it was at its beginning: an exit that opens during it is met in the next frame.
"""

from nclone_env.constants import COLUMNS, ROWS
from nclone_env.jit import called_kernel, kernel
from nclone_env.kinds import BOUNCE_BLOCK, ONE_WAY, THWUMP
from nclone_env.sim import dispatch
from nclone_env.sim.cells import cell_of
from nclone_env.sim.contacts import CRUSHABLE, WALL, add_contact, add_crush

# Slots of the scratch that lists the movers around a cell: the cell, their count, their numbers.
NEAR_CELL, NEAR_COUNT, NEAR_FIRST = 0, 1, 2
NEAR_SLOTS = 64
_NEAR_MOST = NEAR_SLOTS - NEAR_FIRST  # with more movers around, all are searched each time


@kernel
def clear_near(near):
    """Forget the list of movers around the ninja: no cell has the number -1."""
    near[NEAR_CELL] = -1.0


@kernel
def find_near(levels, worlds, index, cell, near):
    """List the movers that are registered in the nine cells around a cell, unless they are listed already."""
    if near[NEAR_CELL] == cell:
        return
    count = 0
    row = cell % ROWS
    for number in range(levels.header[worlds.ninjas[index]["level"]]["mover_count"]):
        place = worlds.movers[index, number]["cell"]
        if abs(place - cell) > ROWS + 1:  # more than a column away, as most are
            continue
        if place >= 0 and abs(place % ROWS - row) <= 1:  # rows next to each other cannot be two columns apart here
            if count < _NEAR_MOST:
                insert(worlds, index, near, count, number)
            count += 1
    near[NEAR_CELL], near[NEAR_COUNT] = cell, count


@kernel
def insert(worlds, index, near, count, number):
    """Put a mover into the list of those around the ninja, which is sorted by cell, then by order."""
    cell, order = worlds.movers[index, number]["cell"], worlds.movers[index, number]["order"]
    place = NEAR_FIRST + count
    while place > NEAR_FIRST:
        other = worlds.movers[index, int(near[place - 1])]
        if other["cell"] < cell or (other["cell"] == cell and other["order"] < order):
            break
        near[place] = near[place - 1]
        place -= 1
    near[place] = number


@kernel
def next_mover(levels, worlds, index, near, cell, after, before):
    """Return the mover of a cell with the smallest order above ``after`` and below ``before``, -1 if there is none."""
    listed = int(near[NEAR_COUNT])
    if listed > _NEAR_MOST:
        return search_mover(levels, worlds, index, cell, after, before)
    for i in range(NEAR_FIRST, NEAR_FIRST + listed):
        mover = worlds.movers[index, int(near[i])]
        if mover["cell"] == cell and after < mover["order"] < before:
            return int(near[i])
    return -1


@called_kernel
def search_mover(levels, worlds, index, cell, after, before):
    """Return the same as :func:`next_mover`, by a search through all movers of the world."""
    best, best_order = -1, before
    for number in range(levels.header[worlds.ninjas[index]["level"]]["mover_count"]):
        mover = worlds.movers[index, number]
        if mover["cell"] == cell and after < mover["order"] < best_order:
            best, best_order = number, mover["order"]
    return best


@kernel
def visit(levels, worlds, index, near, contacts, x0, y0, pushing):
    """Visit the entities around the ninja and let each push or touch it; return how many pushed it.

    Args:
        worlds: ``WorldArrays``, changed in place.
        near: (``NEAR_SLOTS``,) float64; the movers around the ninja, kept from one pass of a frame to the next.
        contacts: (``CONTACT_SLOTS``,) float64, changed in place.
        x0: x of the ninja before it moved, pixels.
        y0: y of the ninja before it moved, pixels.
        pushing: True to push, False to touch.
    """
    ninja = worlds.ninjas[index]
    centre = cell_of(ninja["x"], ninja["y"])
    find_near(levels, worlds, index, centre, near)
    before = ninja["next_order"]
    column, row = centre // ROWS, centre % ROWS
    first_row, last_row = max(row - 1, 0), min(row + 1, ROWS - 1)
    pushes = 0
    for c in range(max(column - 1, 0), min(column + 1, COLUMNS - 1) + 1):
        if near[NEAR_COUNT] == 0.0:
            first, last = c * ROWS + first_row, c * ROWS + last_row
            pushes += visit_members(levels, worlds, index, contacts, x0, y0, pushing, first, last)
        else:
            for cell in range(c * ROWS + first_row, c * ROWS + last_row + 1):
                pushes += visit_cell(levels, worlds, index, near, contacts, x0, y0, pushing, cell, before)
    return pushes


@kernel
def visit_members(levels, worlds, index, contacts, x0, y0, pushing, first_cell, last_cell):
    """Visit the entities of a run of cells in which there are no movers."""
    level = worlds.ninjas[index]["level"]
    first_entity = levels.header[level]["first_entity"]
    pushes = 0
    for i in range(levels.member_start[level, first_cell], levels.member_start[level, last_cell + 1]):
        slot = levels.members[i]
        entity = levels.entities[first_entity + slot]
        if pushing:
            pushes += push(worlds, index, entity, slot, contacts, x0, y0)
        else:
            touch(worlds, index, entity, slot, contacts, x0, y0)
    return pushes


@kernel
def visit_cell(levels, worlds, index, near, contacts, x0, y0, pushing, cell, before):
    """Visit the entities of one cell, movers and others merged by the order in which they entered it."""
    level = worlds.ninjas[index]["level"]
    first_entity, first_mover = levels.header[level]["first_entity"], levels.header[level]["first_mover"]
    i, stop = levels.member_start[level, cell], levels.member_start[level, cell + 1]
    number = next_mover(levels, worlds, index, near, cell, -1, before)
    pushes = 0
    while i < stop or number >= 0:
        member_order = levels.entities[first_entity + levels.members[i]]["order"] if i < stop else before
        if number >= 0 and worlds.movers[index, number]["order"] < member_order:
            slot = levels.mover_slots[first_mover + number]
            order = worlds.movers[index, number]["order"]
            number = next_mover(levels, worlds, index, near, cell, order, before)
        else:
            slot = levels.members[i]
            i += 1
        entity = levels.entities[first_entity + slot]
        if pushing:
            pushes += push(worlds, index, entity, slot, contacts, x0, y0)
        else:
            touch(worlds, index, entity, slot, contacts, x0, y0)
    return pushes


@kernel
def push(worlds, index, entity, slot, contacts, x0, y0):
    """Let one entity push the ninja out; return 1 if it does, else 0 (physics 01, section 7)."""
    mover = worlds.movers[index, max(entity["mover"], 0)]
    hit, nx, ny, length = dispatch.push(worlds, index, entity, slot, mover, x0, y0)
    if not hit:
        return 0
    apply_push(worlds.ninjas[index], contacts, entity["type"], nx, ny, length)
    return 1


@kernel
def apply_push(ninja, contacts, kind, nx, ny, length):
    """Move the ninja by a push and change its velocity as the kind demands (physics 01, section 7, steps 1 to 6)."""
    push_x, push_y = nx * length, ny * length
    ninja["x"] += push_x
    ninja["y"] += push_y
    if kind != BOUNCE_BLOCK:
        add_crush(contacts, push_x, push_y, length)
    if kind == THWUMP:
        contacts[CRUSHABLE] = 1.0
    if kind == ONE_WAY:
        z = ninja["vx"] * ny - ninja["vy"] * nx
        ninja["vx"], ninja["vy"] = z * ny, z * (-nx)
    else:
        ninja["vx"] += push_x
        ninja["vy"] += push_y
    add_contact(contacts, nx, ny, ny)


@kernel
def touch(worlds, index, entity, slot, contacts, x0, y0):
    """Let one entity act on the ninja; keep the first wall normal that is reported (physics 01, section 9.1)."""
    wall = dispatch.touch(worlds, index, entity, slot, contacts, x0, y0)
    if wall != 0.0 and contacts[WALL] == 0.0:
        contacts[WALL] = wall
