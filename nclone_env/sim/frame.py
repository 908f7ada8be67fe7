"""One frame of one world, and the start of a world (physics 01, sections 4 and 5)."""

from nclone_env.game import (
    DEAD,
    DISABLED,
    FALL_GRAVITY,
    INPUT_JUMP,
    INPUT_LEFT,
    INPUT_RIGHT,
    INPUT_SUICIDE,
    KINDS,
    REGULAR_DRAG,
    bits,
)
from nclone_env.jit import kernel, local_f64
from nclone_env.sim import dispatch
from nclone_env.sim.ninja import CONTACT_SLOTS, kill, think, turn
from nclone_env.sim.ninja_move import NEAR_SLOTS, clear_near, collide, integrate, settle, visit
from nclone_env.sim.query import cell_of
from nclone_env.sim.state import NO_CELL
from nclone_env.sim.store import NO_TRAIL, mover_of, states_of

_STARTS_IN_CELL = bits(kind for kind in KINDS if kind.has_mover and kind.starts_in_cell)


@kernel
def tick(levels, worlds, index, inputs):
    """Advance one world by one frame.

    Args:
        levels: ``LevelArrays``.
        worlds: ``WorldArrays``, changed in place.
        index: world.
        inputs: input byte, 0..15: jump 1, right 2, left 4 (left wins), suicide 8 (physics 01, section 14.4).
    """
    ninja = worlds.ninjas[index]
    ninja["frame"] += 1
    jump = inputs & INPUT_JUMP
    direction = 0
    if inputs & INPUT_LEFT:
        direction = -1
    elif inputs & INPUT_RIGHT:
        direction = 1
    header = levels.header[ninja["level"]]
    if header["run_count"] > 0:
        act_entities(levels, worlds, index)
    if ninja["state"] != DEAD and ninja["state"] != DISABLED:
        play(levels, worlds, index)
    think(ninja, direction, jump)
    turn(ninja, direction)
    if inputs & INPUT_SUICIDE:  # at the very end of the frame; dead one frame later (physics 03, section 5)
        kill(ninja)


@kernel
def play(levels, worlds, index):
    """Move a living ninja and settle its contacts."""
    ninja = worlds.ninjas[index]
    contacts, near = local_f64(CONTACT_SLOTS), local_f64(NEAR_SLOTS, 0)
    clear_near(near)
    x0, y0 = ninja["x"], ninja["y"]
    integrate(ninja)
    impact_vx, impact_vy = ninja["vx"], ninja["vy"]
    collide(levels, worlds, index, near, contacts, x0, y0)
    visit(levels, worlds, index, near, contacts, x0, y0, False)
    settle(levels, worlds, index, contacts, impact_vx, impact_vy)


@kernel
def start(levels, worlds, index, level):
    """Put a world, which has room for it, at the start of a level."""
    header, room = levels.header[level], worlds.rooms[index]
    ninja = worlds.ninjas[index]
    room["entities"]["used"], room["movers"]["used"] = header["entity_count"], header["mover_count"]
    room["trail"]["used"], room["trail_begin"] = header["trail_count"], NO_TRAIL
    ninja["x"], ninja["y"] = header["spawn_x"], header["spawn_y"]
    ninja["vx"], ninja["vy"] = 0.0, 0.0
    ninja["gravity"], ninja["drag"] = FALL_GRAVITY, REGULAR_DRAG
    ninja["floor_x"], ninja["floor_y"] = 0.0, -1.0
    ninja["wall_normal"] = 0.0
    ninja["pad_x"], ninja["pad_y"] = 0.0, 0.0
    ninja["finish_fraction"] = 0.0
    ninja["frame"], ninja["level"], ninja["gold"] = 0, level, 0
    ninja["state"], ninja["airborne"], ninja["walled"], ninja["facing"] = 0, 0, 0, 1
    ninja["jump_held"], ninja["jump_duration"] = 0, 0
    ninja["jump_buffer"], ninja["floor_buffer"] = -1, -1
    ninja["wall_buffer"], ninja["pad_buffer"] = -1, -1
    start_entities(levels, worlds, index)


@kernel
def act_entities(levels, worlds, index):
    """Let all entities move on their own, then all think."""
    header = levels.header[worlds.ninjas[index]["level"]]
    first, stop = header["first_run"], header["first_run"] + header["run_count"]
    for r in range(first, stop):
        dispatch.move(levels, worlds, index, levels.runs[r], header["first_entity"])
    for r in range(first, stop):
        dispatch.think(levels, worlds, index, levels.runs[r], header["first_entity"])


@kernel
def start_entities(levels, worlds, index):
    """Put every entity of a world at its start."""
    ninja = worlds.ninjas[index]
    header = levels.header[ninja["level"]]
    first = header["first_entity"]
    states, own = states_of(worlds, index)
    for slot in range(header["entity_count"]):
        states[own + slot] = levels.entities[first + slot]["initial"]
    for number in range(header["mover_count"]):
        start_mover(levels, worlds, index, number)
    ninja["next_order"] = header["entity_count"]


@kernel
def start_mover(levels, worlds, index, number):
    """Put one mover at its start."""
    mover = mover_of(worlds, index, number)
    mover["x"], mover["y"], mover["a"], mover["b"] = 0.0, 0.0, 0.0, 0.0
    mover["order"], mover["cell"], mover["timer"] = 0, NO_CELL, 0
    header = levels.header[worlds.ninjas[index]["level"]]
    slot = levels.mover_slots[header["first_mover"] + number]
    entity = levels.entities[header["first_entity"] + slot]
    kind = int(entity["type"])
    mover["x"], mover["y"], mover["order"] = entity["x"], entity["y"], entity["order"]
    if _STARTS_IN_CELL >> kind & 1:
        mover["cell"] = cell_of(mover["x"], mover["y"])
    dispatch.start(levels, worlds, index, kind, slot, entity, mover)
