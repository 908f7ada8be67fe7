"""The start of all entities of a world, and their two passes in a frame (physics 02, sections 4.2 and 4.5).

All visit the entities in the order of the entity table: by kind, within a kind in the order of the records.
"""

from __future__ import annotations

from nclone_env.jit import kernel
from nclone_env.kinds import KINDS, bits
from nclone_env.sim import dispatch
from nclone_env.sim.cells import cell_of
from nclone_env.sim.state import NO_CELL

_STARTS_IN_CELL = bits(kind for kind in KINDS if kind.has_mover and kind.starts_in_cell)


@kernel
def move_entities(levels, worlds, index):
    """Move the entities that move on their own."""
    header = levels.header[worlds.ninjas[index]["level"]]
    for r in range(header["first_run"], header["first_run"] + header["run_count"]):
        dispatch.move(levels, worlds, index, levels.runs[r], header["first_entity"])


@kernel
def think_entities(levels, worlds, index):
    """Let the entities think."""
    header = levels.header[worlds.ninjas[index]["level"]]
    for r in range(header["first_run"], header["first_run"] + header["run_count"]):
        dispatch.think(levels, worlds, index, levels.runs[r], header["first_entity"])


@kernel
def start_entities(levels, worlds, index):
    """Put every entity of a world at its start."""
    ninja = worlds.ninjas[index]
    header = levels.header[ninja["level"]]
    first, states = header["first_entity"], worlds.entity_states
    for slot in range(states.shape[1]):
        states[index, slot] = levels.entities[first + slot]["initial"] if slot < header["entity_count"] else 0
    for number in range(worlds.movers.shape[1]):
        start_mover(levels, worlds, index, number, number < header["mover_count"])
    for row in range(worlds.trail.shape[1]):
        worlds.trail[index, row, 0], worlds.trail[index, row, 1] = 0.0, 0.0
    ninja["next_order"] = header["entity_count"]


@kernel
def start_mover(levels, worlds, index, number, used):
    """Put one mover at its start, or clear a record that the level does not use."""
    mover = worlds.movers[index, number]
    mover["x"], mover["y"], mover["a"], mover["b"] = 0.0, 0.0, 0.0, 0.0
    mover["order"], mover["cell"], mover["timer"] = 0, NO_CELL, 0
    if not used:
        return
    header = levels.header[worlds.ninjas[index]["level"]]
    slot = levels.mover_slots[header["first_mover"] + number]
    entity = levels.entities[header["first_entity"] + slot]
    kind = int(entity["type"])
    mover["x"], mover["y"], mover["order"] = entity["x"], entity["y"], entity["order"]
    if _STARTS_IN_CELL >> kind & 1:
        mover["cell"] = cell_of(mover["x"], mover["y"])
    dispatch.start(levels, worlds, index, kind, slot, entity, mover)
