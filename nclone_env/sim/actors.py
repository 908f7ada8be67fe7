"""The move pass and the think pass over the entities of a world (physics 02, sections 4.2 and 4.5).

Types ascending, within a type in order of the records: the order of the entity table.
"""

from __future__ import annotations

from nclone_env.constants import (
    BOOST_PAD,
    BOUNCE_BLOCK,
    CHAINGUN_DRONE,
    CHASER_DRONE,
    DEATH_BALL,
    EVIL_NINJA,
    EXIT,
    FLOOR_GUARD,
    GAUSS_TURRET,
    LASER_DRONE,
    LASER_TURRET,
    MINI_DRONE,
    REGULAR_DOOR,
    ROCKET_TURRET,
    SHOVE_THWUMP,
    THWUMP,
    TOGGLE_MINE,
    ZAP_DRONE,
)
from nclone_env.jit import kernel
from nclone_env.sim.cells import cell_of
from nclone_env.sim.entities import (
    boost_pad,
    bounce_block,
    chaser_drone,
    death_ball,
    door,
    drone,
    evil_ninja,
    floor_guard,
    gauss_turret,
    mine,
    rocket_turret,
    shooting_drone,
    shove_thwump,
    thwump,
)
from nclone_env.sim.entities.laser import turret as laser_turret
from nclone_env.sim.state import NO_CELL

move_drone, move_guard, move_block = drone.move, floor_guard.move, bounce_block.move
move_thwump, move_pad = thwump.move, boost_pad.move
think_door, think_guard, think_thwump = door.think_regular, floor_guard.think, thwump.think
think_mine, think_ball, think_shove = mine.think, death_ball.think, shove_thwump.think
start_drone = drone.start
move_chaser, think_evil = chaser_drone.move, evil_ninja.think
move_shooter, think_shooter = shooting_drone.move, shooting_drone.think
think_rocket, think_gauss, think_laser = rocket_turret.think, gauss_turret.think, laser_turret.think
rest_rocket, rest_gauss, start_laser = rocket_turret.rest, gauss_turret.rest, laser_turret.start


@kernel
def move_entities(levels, worlds, index):
    """Move everything that moves on its own."""
    header = levels.header[worlds.ninjas[index]["level"]]
    for r in range(header["first_run"], header["first_run"] + header["run_count"]):
        move_run(levels, worlds, index, levels.runs[r], header["first_entity"])


@kernel
def move_run(levels, worlds, index, run, base):
    """Move the entities of one type; ``base`` is the first entity of the level."""
    ninja, states = worlds.ninjas[index], worlds.entity_states
    kind, first, stop, shift = run["type"], run["first"], run["stop"], run["shift"]
    if kind == ZAP_DRONE:
        for slot in range(first, stop):
            entity, mover = levels.entities[base + slot], worlds.movers[index, shift + slot]
            move_drone(levels, worlds, index, slot, entity, mover, False)
    elif kind == MINI_DRONE:
        for slot in range(first, stop):
            entity, mover = levels.entities[base + slot], worlds.movers[index, shift + slot]
            move_drone(levels, worlds, index, slot, entity, mover, True)
    elif kind == CHASER_DRONE:
        for slot in range(first, stop):
            entity, mover = levels.entities[base + slot], worlds.movers[index, shift + slot]
            move_chaser(levels, worlds, index, slot, entity, mover)
    elif kind == CHAINGUN_DRONE or kind == LASER_DRONE:
        for slot in range(first, stop):
            entity, mover = levels.entities[base + slot], worlds.movers[index, shift + slot]
            move_shooter(levels, worlds, index, slot, entity, mover)
    elif kind == FLOOR_GUARD:
        for slot in range(first, stop):
            entity, mover = levels.entities[base + slot], worlds.movers[index, shift + slot]
            move_guard(levels, worlds, index, slot, entity, mover)
    elif kind == BOUNCE_BLOCK:
        for slot in range(first, stop):
            entity, mover = levels.entities[base + slot], worlds.movers[index, shift + slot]
            move_block(levels, worlds, index, slot, entity, mover)
    elif kind == THWUMP:
        for slot in range(first, stop):
            entity, mover = levels.entities[base + slot], worlds.movers[index, shift + slot]
            move_thwump(levels, worlds, index, slot, entity, mover)
    elif kind == BOOST_PAD:
        for slot in range(first, stop):
            move_pad(ninja, levels.entities[base + slot], states, index, slot)


@kernel
def think_entities(levels, worlds, index):
    """Let everything think that does; mines other than toggle mines need not."""
    header = levels.header[worlds.ninjas[index]["level"]]
    for r in range(header["first_run"], header["first_run"] + header["run_count"]):
        think_run(levels, worlds, index, levels.runs[r], header["first_entity"])


@kernel
def think_run(levels, worlds, index, run, base):
    """Let the entities of one type think; ``base`` is the first entity of the level."""
    ninja, states = worlds.ninjas[index], worlds.entity_states
    kind, first, stop, shift = run["type"], run["first"], run["stop"], run["shift"]
    if kind == REGULAR_DOOR:
        for slot in range(first, stop):
            think_door(states, index, slot)
    elif kind == CHAINGUN_DRONE or kind == LASER_DRONE:
        for slot in range(first, stop):
            entity, mover = levels.entities[base + slot], worlds.movers[index, shift + slot]
            think_shooter(levels, worlds, index, slot, entity, mover)
    elif kind == FLOOR_GUARD:
        for slot in range(first, stop):
            entity, mover = levels.entities[base + slot], worlds.movers[index, shift + slot]
            think_guard(levels, worlds, index, slot, entity, mover)
    elif kind == ROCKET_TURRET:
        for slot in range(first, stop):
            entity, mover = levels.entities[base + slot], worlds.movers[index, shift + slot]
            think_rocket(levels, worlds, index, slot, entity, mover)
    elif kind == GAUSS_TURRET:
        for slot in range(first, stop):
            entity, mover = levels.entities[base + slot], worlds.movers[index, shift + slot]
            think_gauss(levels, worlds, index, slot, entity, mover)
    elif kind == THWUMP:
        for slot in range(first, stop):
            entity, mover = levels.entities[base + slot], worlds.movers[index, shift + slot]
            think_thwump(levels, worlds, index, slot, entity, mover)
    elif kind == TOGGLE_MINE:
        for slot in range(first, stop):
            think_mine(ninja, levels.entities[base + slot], states, index, slot)
    elif kind == EVIL_NINJA:
        for slot in range(first, stop):
            entity, mover = levels.entities[base + slot], worlds.movers[index, shift + slot]
            think_evil(levels, worlds, index, slot, entity, mover)
    elif kind == LASER_TURRET:
        for slot in range(first, stop):
            entity, mover = levels.entities[base + slot], worlds.movers[index, shift + slot]
            think_laser(levels, worlds, index, slot, entity, mover)
    elif kind == DEATH_BALL:
        for slot in range(first, stop):
            think_ball(levels, worlds, index, shift + slot, shift + stop)
    elif kind == SHOVE_THWUMP:
        for slot in range(first, stop):
            entity, mover = levels.entities[base + slot], worlds.movers[index, shift + slot]
            think_shove(levels, worlds, index, slot, entity, mover)


@kernel
def start_entities(levels, worlds, index):
    """Put every entity of a world at its start; closed exits and shooting drones are in no cell."""
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
    mover["x"], mover["y"], mover["ux"], mover["uy"] = 0.0, 0.0, 0.0, 0.0
    mover["order"], mover["cell"], mover["timer"] = 0, NO_CELL, 0
    if not used:
        return
    header = levels.header[worlds.ninjas[index]["level"]]
    slot = levels.mover_slots[header["first_mover"] + number]
    entity = levels.entities[header["first_entity"] + slot]
    kind = entity["type"]
    mover["x"], mover["y"], mover["order"] = entity["x"], entity["y"], entity["order"]
    shoots = kind == CHAINGUN_DRONE or kind == LASER_DRONE
    if kind == ROCKET_TURRET:
        rest_rocket(entity, mover)
    elif kind == GAUSS_TURRET:
        rest_gauss(entity, mover)
    elif kind == LASER_TURRET:
        start_laser(levels, worlds.ninjas[index]["level"], entity, mover, worlds.entity_states, index, slot)
    elif kind != EXIT and not shoots:
        mover["cell"] = cell_of(mover["x"], mover["y"])
    if kind == ZAP_DRONE or kind == MINI_DRONE or kind == CHASER_DRONE or shoots:
        start_drone(entity, mover, worlds.entity_states, index, slot)
