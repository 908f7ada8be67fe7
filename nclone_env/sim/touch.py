"""Contacts of the ninja with the entities around it (physics 01, section 9.1; physics 02, sections 4.4 and 5.2)."""

from __future__ import annotations

from nclone_env._jit import kernel
from nclone_env.constants import COLUMNS, EXIT, EXIT_SWITCH, GOLD, MINE, ROWS
from nclone_env.sim.entities import exit as exits
from nclone_env.sim.entities import gold, mine
from nclone_env.sim.geometry import clamp_cell

touch_mine, touch_gold = mine.touch, gold.touch
touch_exit, touch_switch = exits.touch_exit, exits.touch_switch


@kernel
def touch_entities(levels, worlds, index, x0, y0):
    """Let every entity in the nine cells around the ninja act on it, column by column.

    Args:
        levels: ``LevelArrays``.
        worlds: ``WorldArrays``, changed in place.
        index: world.
        x0: x of the ninja before it moved, pixels.
        y0: y of the ninja before it moved, pixels.
    """
    ninja = worlds.heads[index]
    level = ninja["level"]
    first_entity = levels.header[level]["first_entity"]
    column, row = clamp_cell(ninja["x"], COLUMNS - 1), clamp_cell(ninja["y"], ROWS - 1)
    first_row, last_row = max(row - 1, 0), min(row + 1, ROWS - 1)
    switch_taken = False
    for c in range(max(column - 1, 0), min(column + 1, COLUMNS - 1) + 1):
        start = levels.member_start[level, c * ROWS + first_row]
        stop = levels.member_start[level, c * ROWS + last_row + 1]
        for i in range(start, stop):
            slot = levels.members[i]
            entity = levels.entities[first_entity + slot]
            if touch(ninja, entity, worlds.entity_states, index, slot, x0, y0):
                switch_taken = True
    if switch_taken:
        open_exits(levels, worlds, index)


@kernel
def touch(ninja, entity, states, index, slot, x0, y0):
    """Let one entity act on the ninja; return whether an exit switch was taken."""
    kind = entity["type"]
    if kind == GOLD:
        touch_gold(ninja, entity, states, index, slot)
    elif kind == MINE:
        touch_mine(ninja, entity, states, index, slot)
    elif kind == EXIT:
        touch_exit(ninja, entity, states, index, slot, x0, y0)
    elif kind == EXIT_SWITCH:
        return touch_switch(ninja, entity, states, index, slot)
    return False


@kernel
def open_exits(levels, worlds, index):
    """Open every exit whose switch is taken.

    It happens after the contacts of a frame: an exit cannot be entered in the frame of its switch
    (physics 01, section 12.4).
    """
    header = levels.header[worlds.heads[index]["level"]]
    first = header["first_exit"]
    for number in range(header["exit_count"]):
        slot = first + 2 * number
        worlds.entity_states[index, slot] = worlds.entity_states[index, slot + 1]
